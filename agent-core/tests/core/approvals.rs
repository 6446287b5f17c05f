use agent_core::{
    Agent, AgentExt, ChatAgent, ChatMessage, Content, Draft, Error, ErrorKind, Event, Limits, Role, RunContext,
    Session, StopReason, ToolOutput, exit_loop,
    testing::{ScriptedClient, assert_laws},
};
use serde_json::json;

use crate::support::{
    Log, agent, answer, asks, call, constant, cut, event, guarded, invalid_call, limited, noted, replies, request,
    result, seen, session, show, text, told, tool_call,
};

/// An agent with `look` (needs no approval), `del` and `send` (do), and an exit.
fn keeper(client: &ScriptedClient, log: &Log) -> ChatAgent {
    agent("a", client)
        .tool(noted("look", log))
        .tool(guarded("del", log))
        .tool(guarded("send", log))
        .tool(exit_loop())
        .tool(constant("alarm", ToolOutput::text("raised").escalate()))
        .tool(constant("stop", ToolOutput::text("stops").end_turn()))
}

async fn run(agent: &ChatAgent, session: &mut Session) -> StopReason {
    match assert_laws(agent, session, &RunContext::default()).await.last() {
        Some(agent_core::Update::Done(stop)) => *stop,
        other => unreachable!("the laws hold: {other:?}"),
    }
}

async fn fails(agent: &ChatAgent, session: &mut Session) -> Error {
    let before = session.clone();
    let error = agent.complete(session, &RunContext::default()).await.unwrap_err();
    assert_eq!((error.kind(), &*session), (ErrorKind::Invalid, &before));
    error
}

fn del(id: &str, what: &str) -> Content {
    Content::ToolCall(tool_call(id, "del", json!({"what": what})))
}

fn ok() -> ChatMessage {
    ChatMessage::assistant("ok")
}

#[tokio::test]
async fn calls_that_need_no_approval_run_at_once_and_the_others_are_asked_about_once_in_one_message() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c2", "look"), call("c3", "send")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    assert_eq!(log.all(), ["look"]);
    assert_eq!(
        session.open_approvals(),
        [tool_call("c1", "del", json!({"what": "x"})), tool_call("c3", "send", json!({}))]
    );
    let asked = session.messages().len();
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    assert_eq!((session.messages().len(), client.requests().len()), (asked, 1), "asked once");
    session.push(ChatMessage::approve("c1"));
    session.push(ChatMessage::reject("c3", "too early"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), ["look", r#"del {"what":"x"}"#]);
    insta::assert_snapshot!(show(session.messages()), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c2 look + call c3 send
    tool(a): c2 = done
    assistant(a): may c1 del {"what":"x"}? + may c3 send?
    user: yes c1
    user: no c3too early
    tool(a): c1 = done
    tool(a): c3 ! not run: the caller rejected it: too early
    assistant(a): ok
    "#);
    insta::assert_snapshot!(seen(&client, 1), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c2 look + call c3 send
    tool(a): c1 = done
    tool(a): c2 = done
    tool(a): c3 ! not run: the caller rejected it: too early
    "#);
}

#[tokio::test]
async fn answers_may_come_one_by_one() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c3", "send")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push(ChatMessage::approve("c3"));
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    assert_eq!((log.all(), client.requests().len()), (vec!["send".to_owned()], 1));
    session.push(ChatMessage::new(Role::User, [answer("c1", false)]));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    insta::assert_snapshot!(seen(&client, 1), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c3 send
    tool(a): c1 ! not run: the caller rejected it
    tool(a): c3 = done
    "#);
}

#[tokio::test]
async fn a_question_survives_being_stored() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    let mut session: Session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
    session.push(ChatMessage::approve("c1"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), [r#"del {"what":"x"}"#]);
}

#[tokio::test]
async fn answers_that_fit_no_open_request_are_invalid_and_nothing_runs() {
    let yes = ChatMessage::approve;
    let no = |id: &str| ChatMessage::reject(id, "no");
    let both = |a: &str, b: &str| ChatMessage::new(Role::User, [answer(a, true), answer(b, false)]);
    let words_and = ChatMessage::new(Role::User, [text("do it"), answer("c9", true)]);
    let table: Vec<(&str, Vec<ChatMessage>)> = vec![
        ("forged", vec![yes("c9")]),
        ("of a call that needs none", vec![yes("c2")]),
        ("given twice", vec![yes("c1"), yes("c1")]),
        ("yes and no", vec![yes("c1"), no("c1")]),
        ("no and yes in one message", vec![both("c3", "c3")]),
        ("one right, one forged", vec![both("c1", "c9")]),
        ("after new words", vec!["go on".into(), yes("c9")]),
        ("with new words", vec![words_and]),
    ];
    let mut errors = vec![];
    for (what, answers) in table {
        let log = Log::default();
        let client = replies([asks([del("c1", "x"), call("c2", "look"), call("c3", "send")]), ok()]);
        let agent = keeper(&client, &log);
        let mut session = session("go");
        run(&agent, &mut session).await;
        for answer in answers {
            session.push(answer);
        }
        errors.push(format!("{what}: {}", told(&fails(&agent, &mut session).await)));
        assert_eq!((log.all(), client.requests().len()), (vec!["look".to_owned()], 1), "{what}");
        session.push(yes("c1"));
        fails(&agent, &mut session).await;
        session.push("never mind");
        assert_eq!(run(&agent, &mut session).await, StopReason::Completed, "{what}: new words make it usable");
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    forged: Invalid: answer to `c9`, which fits no open approval request; waiting for one answer each: `c1`, `c3`
    of a call that needs none: Invalid: answer to `c2`, which fits no open approval request; waiting for one answer each: `c1`, `c3`
    given twice: Invalid: answer to `c1`, which fits no open approval request; waiting for one answer each: `c3`
    yes and no: Invalid: answer to `c1`, which fits no open approval request; waiting for one answer each: `c3`
    no and yes in one message: Invalid: answer to `c3`, which fits no open approval request; waiting for one answer each: `c1`
    one right, one forged: Invalid: answer to `c9`, which fits no open approval request; waiting for one answer each: `c3`
    after new words: Invalid: answer to `c9`, which fits no open approval request; waiting for one answer each: `c1`, `c3`
    with new words: Invalid: answer to `c9`, which fits no open approval request; waiting for one answer each: `c1`, `c3`
    ");
}

#[tokio::test]
async fn a_repeated_answer_is_invalid_after_its_call_was_settled() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x")]), ok(), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push(ChatMessage::approve("c1"));
    run(&agent, &mut session).await;
    session.push(ChatMessage::approve("c1"));
    insta::assert_snapshot!(told(&fails(&agent, &mut session).await), @"Invalid: answer to `c1`, which fits no open approval request; no call waits for an answer");
    session.push("thanks");
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all().len(), 1);
}

#[tokio::test]
async fn a_forged_answer_before_anything_was_asked_is_invalid_until_there_are_new_words() {
    let log = Log::default();
    for history in [vec![], vec![ChatMessage::user("hi"), ChatMessage::assistant("hello"), ChatMessage::user("go")]] {
        let client = replies([ok()]);
        let agent = keeper(&client, &log);
        let mut session = Session::new();
        for message in history {
            session.push(message);
        }
        session.push(ChatMessage::approve("c1"));
        fails(&agent, &mut session).await;
        session.push(ChatMessage::approve("c1"));
        fails(&agent, &mut session).await;
        session.push("never mind");
        assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    }
    assert_eq!(log.all().len(), 0);
}

#[tokio::test]
async fn an_answer_before_new_words_settles_what_it_fits_and_is_ignored_where_it_fits_nothing() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c3", "send")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push(ChatMessage::approve("c1"));
    session.push(ChatMessage::approve("c9"));
    session.push("and then rest");
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), [r#"del {"what":"x"}"#], "the other call is superseded");
    insta::assert_snapshot!(seen(&client, 1), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c3 send
    tool(a): c1 = done
    tool(a): c3 ! not run: the caller went on to something else
    user: and then rest
    "#);
}

#[tokio::test]
async fn words_and_answers_in_one_message_settle_and_supersede() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c3", "send")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push(ChatMessage::new(Role::User, [answer("c1", true), text("and then rest")]));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all().len(), 1);
    insta::assert_snapshot!(seen(&client, 1), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c3 send
    tool(a): c1 = done
    tool(a): c3 ! not run: the caller went on to something else
    user: and then rest
    "#);
}

#[tokio::test]
async fn new_words_supersede_open_calls() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c2", "look")]), ok(), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push("never mind");
    assert_eq!((run(&agent, &mut session).await, log.all().len()), (StopReason::Completed, 1));
    assert_eq!(session.open_approvals(), []);
    insta::assert_snapshot!(show(session.messages()), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c2 look
    tool(a): c2 = done
    assistant(a): may c1 del {"what":"x"}?
    user: never mind
    tool(a): c1 ! not run: the caller went on to something else
    assistant(a): ok
    "#);
    session.push(ChatMessage::approve("c1"));
    fails(&agent, &mut session).await;
}

#[tokio::test]
async fn a_call_from_before_the_turn_that_was_never_asked_about_is_superseded_too() {
    let log = Log::default();
    let client = replies([ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    let crashed = asks([call("c1", "look"), del("c2", "x"), invalid_call("c3", "look")]).by("a");
    session.apply(&event("a", vec![crashed], vec![]));
    session.push("never mind");
    assert_eq!((run(&agent, &mut session).await, log.all().len()), (StopReason::Completed, 0));
    insta::assert_snapshot!(seen(&client, 0), @r#"
    user: go
    assistant(a): call c1 look + call c2 del {"what":"x"} + call c3 look
    tool(a): c1 ! not run: the caller went on to something else
    tool(a): c2 ! not run: the caller went on to something else
    tool(a): c3 ! not run: the arguments of `look` could not be read: it was cut
    user: never mind
    "#);
}

#[tokio::test]
async fn ids_that_services_reuse_are_matched_in_order_of_appearance() {
    let log = Log::default();
    let client = replies([
        asks([del("c", "one")]),
        asks([call("c", "look")]),
        asks([del("c", "two")]),
        ok(),
        asks([del("c", "three")]),
        ok(),
    ]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    session.push(ChatMessage::approve("c"));
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    session.push(ChatMessage::reject("c", "no"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    session.push("once more");
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    session.push(ChatMessage::approve("c"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), [r#"del {"what":"one"}"#, "look", r#"del {"what":"three"}"#]);
    insta::assert_snapshot!(seen(&client, 5), @r#"
    user: go
    assistant(a): call c del {"what":"one"}
    tool(a): c = done
    assistant(a): call c look
    tool(a): c = done
    assistant(a): call c del {"what":"two"}
    tool(a): c ! not run: the caller rejected it: no
    assistant(a): ok
    user: once more
    assistant(a): call c del {"what":"three"}
    tool(a): c = done
    "#);
}

#[tokio::test]
async fn two_calls_of_one_id_in_one_answer_are_two_questions_answered_in_order() {
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let log = Log::default();
        let client = replies([asks([del("c", "one"), del("c", "two")]), ok()]);
        let agent = keeper(&client, &log);
        let mut session = session("go");
        run(&agent, &mut session).await;
        assert_eq!(session.open_approvals().len(), 2);
        session.push(ChatMessage::new(Role::User, [answer("c", first), answer("c", second)]));
        assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
        let ran = [(first, r#"del {"what":"one"}"#), (second, r#"del {"what":"two"}"#)];
        assert_eq!(log.all(), ran.iter().filter(|(yes, _)| *yes).map(|(_, entry)| *entry).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn of_two_calls_of_one_id_the_one_that_was_asked_about_is_the_one_that_waits() {
    let others = || [call("c", "look"), call("c", "unknown"), invalid_call("c", "del")];
    for other in others() {
        for del_first in [true, false] {
            let calls = if del_first { vec![del("c", "x"), other.clone()] } else { vec![other.clone(), del("c", "x")] };
            let log = Log::default();
            let client = replies([asks(calls), ok()]);
            let agent = keeper(&client, &log);
            let mut session = session("go");
            assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
            assert_eq!(session.open_approvals(), [tool_call("c", "del", json!({"what": "x"}))], "{other:?}");
            let looked = log.all();
            session.push(ChatMessage::approve("c"));
            assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
            assert_eq!(log.all()[looked.len()..], [r#"del {"what":"x"}"#], "{other:?} {del_first}");
        }
    }
}

#[tokio::test]
async fn an_approved_call_runs_as_it_was_asked_about() {
    let log = Log::default();
    let client = replies([ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    let asked = Content::ApprovalRequest(tool_call("c1", "del", json!({"what": "as asked"})));
    session.apply(&event("a", vec![asks([del("c1", "as called")]).by("a"), asks([asked]).by("a")], vec![]));
    session.push(ChatMessage::approve("c1"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), [r#"del {"what":"as asked"}"#]);
}

#[tokio::test]
async fn an_approved_call_of_a_tool_that_is_gone_has_an_error_result() {
    let log = Log::default();
    let mut session = session("go");
    run(&keeper(&replies([asks([del("c1", "x")])]), &log), &mut session).await;
    session.push(ChatMessage::approve("c1"));
    let client = replies([ok()]);
    assert_eq!(run(&agent("a", &client), &mut session).await, StopReason::Completed);
    insta::assert_snapshot!(seen(&client, 0), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"}
    tool(a): c1 ! there is no tool named `del`; there are none
    "#);
}

#[tokio::test]
async fn an_agent_settles_only_its_own_calls_and_nobodys() {
    let log = Log::default();
    let mut session = session("go");
    let calls = |author: Option<&str>, id: &str| {
        let message = asks([call(id, "look")]);
        author.map_or(message.clone(), |author| message.clone().by(author))
    };
    for (author, id) in [(Some("b"), "b1"), (None, "n1"), (Some("a"), "a1")] {
        session.push(calls(author, id));
    }
    let client = replies([ok()]);
    assert_eq!(run(&keeper(&client, &log), &mut session).await, StopReason::Completed);
    assert_eq!(log.all().len(), 2);
    insta::assert_snapshot!(seen(&client, 0), @"
    user: go
    assistant(b): call b1 look
    tool: b1 ! no result yet: the call belongs to another agent and is still open
    assistant: call n1 look
    tool(a): n1 = done
    assistant(a): call a1 look
    tool(a): a1 = done
    ");
}

#[tokio::test]
async fn equal_calls_of_two_agents_are_two_calls() {
    let (a_log, b_log) = (Log::default(), Log::default());
    let mut session = session("go");
    for (author, message) in [
        ("a", asks([call("c", "del")])),
        ("b", asks([call("c", "del")])),
        ("b", asks([request("c", "del")])),
        ("a", asks([request("c", "del")])),
    ] {
        session.apply(&event(author, vec![message.by(author)], vec![]));
    }
    session.push(ChatMessage::new(Role::User, [answer("c", true), answer("c", false)]));
    run(&keeper(&replies([ok()]), &a_log), &mut session.clone()).await;
    let b = agent("b", &replies([ok()])).tool(guarded("del", &b_log));
    run(&b, &mut session).await;
    assert_eq!((a_log.all().len(), b_log.all().len()), (0, 1), "b asked first, so the first answer is to b");
}

#[tokio::test]
async fn equal_ids_of_two_agents_are_two_calls() {
    // Two branches merged: both used the id `c`; b's call was answered, asked about and approved after a's was made.
    let (a_log, b_log) = (Log::default(), Log::default());
    let mut session = session("go");
    let say = |session: &mut Session, author: &str, message: ChatMessage| {
        session.apply(&event(author, vec![message.by(author)], vec![]));
    };
    let asked = |what: &str| asks([Content::ApprovalRequest(tool_call("c", "del", json!({"what": what})))]);
    say(&mut session, "a", asks([del("c", "a's")]));
    say(&mut session, "b", asks([call("c", "look")]));
    say(&mut session, "b", result("c", "b looked"));
    say(&mut session, "b", asks([del("c", "b's")]));
    say(&mut session, "b", asked("b's"));
    say(&mut session, "a", asked("a's"));
    let open: Vec<_> = session.open_approvals().into_iter().map(|call| call.arguments["what"].clone()).collect();
    assert_eq!(open, ["b's", "a's"], "in the order in which they were asked");
    session.push(ChatMessage::new(Role::User, [answer("c", true), answer("c", false)]));
    let (a_client, b_client) = (replies([ok()]), replies([ok()]));
    let b = agent("b", &b_client).tool(noted("look", &b_log)).tool(guarded("del", &b_log));
    let mut fork = session.clone();
    run(&keeper(&a_client, &a_log), &mut fork).await;
    run(&b, &mut session).await;
    assert_eq!((a_log.all(), b_log.all()), (vec![], vec![r#"del {"what":"b's"}"#.to_owned()]));
    insta::assert_snapshot!(seen(&a_client, 0), @r#"
    user: go
    assistant(a): call c del {"what":"a's"}
    tool(a): c ! not run: the caller rejected it
    assistant(b): call c look
    tool(b): c = b looked
    assistant(b): call c del {"what":"b's"}
    tool: c ! no result yet: the call belongs to another agent and is still open
    "#);
}

#[tokio::test]
async fn an_exit_beside_open_requests_waits_with_them() {
    for (yes, ran) in [(true, 1), (false, 0)] {
        for (exit, stop) in [("exit_loop", StopReason::Escalated), ("stop", StopReason::Completed)] {
            let log = Log::default();
            let client = replies([asks([call("c0", exit), del("c1", "x"), call("c2", "send")])]);
            let agent = keeper(&client, &log);
            let mut session = session("go");
            assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
            let record = json!({"turn": 0, "escalate": exit == "exit_loop", "end_turn": true});
            assert_eq!(session.state().get("exit:a"), Some(&record));
            session.push(ChatMessage::new(Role::User, [answer("c1", yes)]));
            assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
            assert_eq!(session.state().get("exit:a"), Some(&record), "kept while one is open");
            session.push(ChatMessage::reject("c2", "no"));
            let response = agent.complete(&mut session, &RunContext::default()).await.unwrap();
            assert_eq!((response.stop, client.requests().len(), log.all().len()), (stop, 1, ran));
            let last = response.events.last().unwrap();
            assert_eq!((last.escalate, session.state().len()), (exit == "exit_loop", 0), "removed with the end");
        }
    }
}

#[tokio::test]
async fn an_escalation_beside_open_requests_lets_the_model_speak_once_they_are_answered() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c0", "alarm")]), ok(), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    session.push(ChatMessage::approve("c1"));
    let response = agent.complete(&mut session, &RunContext::default()).await.unwrap();
    assert_eq!((response.stop, response.text().as_str()), (StopReason::Escalated, "ok"));
    assert_eq!((response.events.last().map(|e| e.escalate), session.state().len()), (Some(true), 0));
    session.push("next");
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
}

#[tokio::test]
async fn an_escalation_of_an_earlier_answer_waits_with_a_later_answers_requests() {
    let log = Log::default();
    let client = replies([asks([call("c0", "alarm")]), asks([del("c1", "x")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    assert_eq!(session.state()["exit:a"], json!({"turn": 0, "escalate": true, "end_turn": false}));
    session.push(ChatMessage::approve("c1"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Escalated);
    assert_eq!(session.state().len(), 0);
}

#[tokio::test]
async fn new_words_forget_an_exit() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c0", "exit_loop")]), ok(), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push("wait, go on");
    assert_eq!((run(&agent, &mut session).await, session.state().len()), (StopReason::Completed, 0));
    // Also where the answer came before the words.
    let client = replies([asks([del("c1", "x"), call("c0", "exit_loop")]), ok(), ok()]);
    let agent = keeper(&client, &log);
    let mut session = crate::support::session("go");
    run(&agent, &mut session).await;
    session.push(ChatMessage::approve("c1"));
    session.push("and go on");
    assert_eq!((run(&agent, &mut session).await, session.state().len()), (StopReason::Completed, 0));
    assert_eq!(log.all(), [r#"del {"what":"x"}"#]);
}

#[tokio::test]
async fn an_exit_is_the_agents_that_asked_for_it() {
    let log = Log::default();
    let mut session = session("go");
    run(&keeper(&replies([asks([del("c1", "x"), call("c0", "exit_loop")])]), &log), &mut session).await;
    let client = replies([ok()]);
    assert_eq!(run(&agent("b", &client), &mut session).await, StopReason::Completed);
    assert!(session.state().contains_key("exit:a"));
}

#[tokio::test]
async fn a_limit_beside_open_requests_ends_the_run_and_the_requests_can_be_answered_later() {
    let log = Log::default();
    let client = replies([asks([del("c1", "x"), call("c2", "look")]), ok()]);
    let agent = keeper(&client, &log);
    let mut session = session("go");
    let cx = limited(Limits { tool_calls: Some(0), ..Limits::default() });
    let stop = agent.complete(&mut session, &cx).await.unwrap().stop;
    assert_eq!((stop, log.all().len()), (StopReason::BudgetExhausted, 0));
    assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
    assert_eq!(session.open_approvals().len(), 1);
    session.push(ChatMessage::approve("c1"));
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    insta::assert_snapshot!(seen(&client, 1), @r#"
    user: go
    assistant(a): call c1 del {"what":"x"} + call c2 look
    tool(a): c1 = done
    tool(a): c2 ! not run: budget exhausted
    "#);
}

/// Runs a script of three answers with an approval in the middle, cut after so many updates of its first and its
/// second run; returns what ran, and whether both runs were cut.
async fn crashed(first: usize, second: usize) -> (Vec<String>, bool) {
    let log = Log::default();
    // A model that knows from the conversation where it stands, as a real one does.
    let client = crate::support::FnClient(|request: agent_core::ChatRequest| {
        let results = request.messages.iter().flat_map(ChatMessage::tool_results).count();
        let message = match results {
            0 => asks([del("c1", "x"), call("c2", "look"), call("c3", "send")]),
            3 => asks([call("c1", "look")]),
            _ => ChatMessage::assistant("all done"),
        };
        futures::StreamExt::boxed(ScriptedStream::of(message))
    });
    let strict = agent_core::testing::PairingClient::new(client);
    let agent = ChatAgent::new("a", strict, agent_core::ChatAgentOptions::default())
        .tool(noted("look", &log))
        .tool(guarded("del", &log))
        .tool(guarded("send", &log));
    let mut session = session("go");
    let cx = RunContext::default();
    let mut cuts = 0;
    cuts += usize::from(!cut(agent.run(&mut session, &cx), first).await);
    while session.open_approvals().len() < 2 {
        run(&agent, &mut session).await;
    }
    session.push(ChatMessage::approve("c1"));
    session.push(ChatMessage::reject("c3", "no"));
    cuts += usize::from(!cut(agent.run(&mut session, &cx), second).await);
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(session.messages().last().unwrap().text(), "all done");
    (log.all(), cuts == 2)
}

struct ScriptedStream;

impl ScriptedStream {
    fn of(message: ChatMessage) -> impl futures::Stream<Item = agent_core::Result<agent_core::ChatUpdate>> {
        let response = agent_core::ChatResponse {
            message,
            usage: agent_core::Usage::default(),
            stop: StopReason::Completed,
            model: "m".to_owned(),
        };
        futures::stream::iter([Ok(agent_core::ChatUpdate::Done(response))])
    }
}

#[tokio::test]
async fn whenever_a_run_is_cut_the_next_one_goes_on_and_an_approved_call_runs_once() {
    let mut both = 0;
    for first in 0..6 {
        for second in 0..9 {
            let (ran, cut) = crashed(first, second).await;
            both += usize::from(cut);
            let deletions = ran.iter().filter(|entry| entry.starts_with("del")).count();
            // What a poll did is recorded in the same poll: no cut comes between the two.
            assert_eq!(deletions, 1, "cut after {first} and {second}: {ran:?}");
            assert!(!ran.iter().any(|entry| entry == "send"), "{ran:?}");
            assert_eq!(ran.iter().filter(|entry| *entry == "look").count(), 2, "cut after {first} and {second}");
        }
    }
    assert!(both >= 12, "some cuts have to hit: {both}");
}

#[tokio::test]
async fn whenever_a_run_is_cut_an_exit_beside_open_requests_is_not_lost() {
    // Calls of one id are asked about before the results beside them are recorded, others after.
    for (exit, first, second) in ["c0", "c1"]
        .into_iter()
        .flat_map(|exit| (1..5).flat_map(move |first| (0..2).map(move |second| (exit, first, second))))
    {
        let log = Log::default();
        let client = replies([asks([call(exit, "exit_loop"), del("c1", "x"), call("c2", "look")])]);
        let agent = keeper(&client, &log);
        let mut session = session("go");
        let cx = RunContext::default();
        cut(agent.run(&mut session, &cx), first).await;
        if session.open_approvals().is_empty() {
            assert_eq!(run(&agent, &mut session).await, StopReason::AwaitingApproval);
        }
        session.push(ChatMessage::approve("c1"));
        cut(agent.run(&mut session, &cx), second).await;
        assert_eq!(run(&agent, &mut session).await, StopReason::Escalated, "{exit}: cut after {first} and {second}");
        assert_eq!((log.all().len(), client.requests().len(), session.state().len()), (2, 1, 0));
    }
}

#[tokio::test]
async fn a_cut_between_the_effect_and_its_record_runs_the_call_again() {
    let log = Log::default();
    let noted = log.clone();
    let slow = agent_core::tool_fn("slow", "", move |_: serde_json::Value, _| {
        noted.note("effect");
        async {
            tokio::task::yield_now().await;
            Ok("done")
        }
    });
    let client = replies([asks([call("c1", "slow")]), ok()]);
    let agent = agent("a", &client).tool(slow.needs_approval());
    let mut session = session("go");
    run(&agent, &mut session).await;
    session.push(ChatMessage::approve("c1"));
    let cx = RunContext::default();
    let mut pulled = agent.run(&mut session, &cx);
    assert!(futures::FutureExt::now_or_never(futures::StreamExt::next(&mut pulled)).is_none());
    drop(pulled);
    assert_eq!(run(&agent, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), ["effect", "effect"]);
}

#[tokio::test]
async fn answers_in_the_middle_of_parallel_branches_reach_their_own() {
    let (log, other) = (Log::default(), Log::default());
    let branch = |name: &str, log: &Log| {
        let client = replies([asks([call("c1", "del")]), ok()]);
        agent(name, &client).tool(guarded("del", log))
    };
    let both = agent_core::ParallelAgent::new("both").branch(branch("a", &log)).branch(branch("b", &other)).branch(
        agent_core::agent_fn("talker", |session, out| {
            Box::pin(async move {
                out.record(session, Draft::message(ChatMessage::assistant("so it is"))).await;
                Ok(StopReason::Completed)
            })
        }),
    );
    let mut session = session("go");
    let cx = RunContext::default();
    assert_eq!(both.complete(&mut session, &cx).await.unwrap().stop, StopReason::AwaitingApproval);
    assert_eq!(session.open_approvals().len(), 2);
    session.push(ChatMessage::approve("c1"));
    assert_eq!(both.complete(&mut session, &cx).await.unwrap().stop, StopReason::AwaitingApproval);
    assert_eq!((log.all().len(), other.all().len()), (1, 0));
    session.push(ChatMessage::reject("c1", "no"));
    assert_eq!(both.complete(&mut session, &cx).await.unwrap().stop, StopReason::Completed);
    assert_eq!((log.all().len(), other.all().len(), session.state().len()), (1, 0, 0));
}

#[test]
fn an_open_approval_is_told_apart_from_the_callers_own_words() {
    let mut session = session("go");
    session.apply(&event(Event::CALLER, vec![ChatMessage::user("c1")], vec![]));
    assert_eq!(session.open_approvals(), []);
}
