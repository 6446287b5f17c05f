//! D: approvals and resuming.

use agent_core::{
    Agent, AgentExt, ChatMessage, Content, Draft, ErrorKind, Limits, Role, RunContext, Session, StopReason, agent_fn,
    exit_loop, testing::ScriptedClient,
};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use serde_json::json;

use crate::support::{
    Count, Log, acts, asked, cap, chat, cut, fresh, gated, go, never, outcome, reloaded, said, says, scripted,
    tool_turn, try_go, until,
};

fn buyer(client: &ScriptedClient, options: LoopOptions) -> (LoopAgent, Count) {
    let (pay, paid) = gated("pay");
    (LoopAgent::new("loop", chat("a", client).tool(pay), options), paid)
}

/// D1, D2
#[tokio::test]
async fn an_approval_is_taken_up_elsewhere_and_everything_goes_on() {
    for options in [cap(3), fresh(3)] {
        let client = ScriptedClient::new().says("1").calls("c", "pay", json!({})).says("2").says("3");
        let log = Log::default();
        let seen = log.clone();
        let (agent, paid) = buyer(&client, options);
        let agent = agent.evaluator(evaluate_fn("e", move |cx| {
            let earlier: Vec<_> = cx.earlier.iter().map(|i| (i.feedback.clone(), i.response.events.len())).collect();
            let request: String = cx.request.iter().map(ChatMessage::text).collect();
            seen.add(format!("{}{}: {request} {earlier:?}", cx.iteration, if cx.is_last { "!" } else { "" }));
            LoopEvaluation::feedback(format!("f{}", cx.iteration))
        }));
        let mut session = asked("buy");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        let waiting = outcome(&session);
        assert_eq!((waiting.stop, waiting.iterations.len()), (Some(StopReason::AwaitingApproval), 1));

        let mut session = reloaded(&session);
        session.push(ChatMessage::approve("c"));
        let waiting_session = session.clone();
        let response = go(&agent, &mut session).await;
        assert_eq!((response.stop, paid.get(), client.requests().len()), (StopReason::IterationLimit, 1, 4));
        assert_eq!(
            log.get(), // pass 2 has the result of the approved call and the answer
            [r"1: buy []", r#"2: buy [(Some("f1"), 0)]"#, r#"3!: buy [(Some("f1"), 0), (Some("f2"), 2)]"#]
        );
        assert_eq!(outcome(&session).iterations.len(), 3);
        assert_eq!(stops_seen(&response, waiting_session)[0], None, "while it runs again the outcome has no stop");
    }
}

/// The outcome's stop after each event.
fn stops_seen(response: &agent_core::AgentResponse, mut folded: Session) -> Vec<Option<StopReason>> {
    response
        .events
        .iter()
        .map(|event| {
            folded.apply(event);
            LoopOutcome::of(&folded, "loop").unwrap().stop
        })
        .collect()
}

/// D3: an approval that came with new words belongs to a loop that begins anew; its call is run once all the same.
#[tokio::test]
async fn an_approved_call_runs_once_when_new_words_come_with_the_answer() {
    for options in [cap(3), fresh(3)] {
        let client = ScriptedClient::new().calls("c", "pay", json!({})).says("1").says("2").says("3");
        let (agent, paid) = buyer(&client, options);
        let agent = agent.evaluator(until(9));
        let mut session = asked("buy");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        session.push(ChatMessage::approve("c"));
        session.push("and hurry");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!((paid.get(), outcome(&session).iterations.len()), (1, 3), "{options:?}");
        let results: Vec<_> = session.messages().iter().filter(|message| message.role == Role::Tool).collect();
        assert_eq!(results.len(), 1);
    }
}

/// D3
#[tokio::test]
async fn a_forged_or_repeated_answer_is_an_error_until_new_words_come() {
    for forged in [
        vec![ChatMessage::approve("other")],
        vec![ChatMessage::approve("c"), ChatMessage::approve("c")],
        vec![ChatMessage::approve("c"), ChatMessage::reject("c", "no")],
    ] {
        let client = ScriptedClient::new().calls("c", "pay", json!({})).says("ok");
        let (agent, paid) = buyer(&client, cap(3));
        let agent = agent.evaluator(until(1));
        let mut session = asked("buy");
        go(&agent, &mut session).await;
        for answer in forged {
            session.push(answer);
        }
        for _ in 0..2 {
            assert_eq!(try_go(&agent, &mut session).await.unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!((paid.get(), client.requests().len()), (0, 1));
        }
        session.push("start over");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    }
}

/// D3: what runs is what was asked for.
#[tokio::test]
async fn name_and_arguments_come_from_the_request() {
    let client = ScriptedClient::new().calls("c", "pay", json!({"eur": 5})).says("ok");
    let log = Log::default();
    let seen = log.clone();
    let pay = agent_core::tool_fn("pay", "Pays.", move |args: serde_json::Value, _: agent_core::ToolContext| {
        seen.add(args.to_string());
        async { Ok("paid") }
    });
    let agent = LoopAgent::new("loop", chat("a", &client).tool(pay.needs_approval()), cap(3));
    let mut session = asked("buy");
    go(&agent, &mut session).await;
    session.push(ChatMessage::approve("c"));
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(log.get(), [r#"{"eur":5}"#]);
}

/// D4
#[tokio::test]
async fn approvals_are_answered_one_by_one_or_together() {
    for together in [false, true] {
        let calls = tool_turn(&[("1", "pay"), ("2", "pay"), ("3", "look")]);
        let client = ScriptedClient::new().reply(calls, agent_core::Usage::default()).says("ok");
        let ((pay, paid), looked) = (gated("pay"), Count::default());
        let count = looked.clone();
        let look = agent_core::tool_fn("look", "Looks.", move |_: serde_json::Value, _: agent_core::ToolContext| {
            count.up();
            async { Ok("seen") }
        });
        let agent = LoopAgent::new("loop", chat("a", &client).tool(pay).tool(look), cap(3)).evaluator(until(1));
        let mut session = asked("buy");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        assert_eq!((paid.get(), looked.get()), (0, 1), "calls that need none do not wait");
        session.push(ChatMessage::approve("2"));
        if !together {
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
            assert_eq!((paid.get(), client.requests().len()), (1, 1));
        }
        session.push(ChatMessage::reject("1", "too dear"));
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
        assert_eq!((paid.get(), looked.get(), client.requests().len()), (1, 1, 2));
        assert_eq!(outcome(&session).iterations.len(), 1, "one pass, however often it waited");
    }
}

/// D5
#[tokio::test]
async fn new_words_instead_of_an_answer_begin_anew_with_a_valid_history() {
    for options in [cap(3), fresh(3)] {
        let client = ScriptedClient::new().says("1").calls("c", "pay", json!({})).says("2").says("3");
        let (agent, paid) = buyer(&client, options);
        let agent = agent.evaluator(until(2));
        let mut session = asked("buy");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        session.push("rather not");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
        assert_eq!((paid.get(), outcome(&session).iterations.len()), (0, 2), "{options:?}");
        assert!(session.open_approvals().is_empty());
        let heard = client.requests()[2].messages.iter().map(crate::support::show).collect::<Vec<_>>();
        assert_eq!(heard.last().unwrap(), "user: rather not");
        assert!(heard.iter().any(|line| line.contains("error c = not run: the caller went on to something else")));
    }
}

/// D6
#[tokio::test]
async fn after_a_crash_the_loop_goes_on_at_the_recorded_iteration() {
    for options in [cap(5), fresh(5)] {
        let (agent, runs) = says("w");
        let agent = LoopAgent::new("loop", agent, options).evaluator(until(9));
        let mut session = asked("go");
        let cx = RunContext::default();
        // begin, (pass, step) three times: the third step has been recorded
        assert!(!cut(agent.run(&mut session, &cx), 7).await);
        assert_eq!((runs.get(), outcome(&session).stop, outcome(&session).iterations.len()), (3, None, 3));
        let mut session = reloaded(&session);
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!((runs.get(), outcome(&session).iterations.len()), (5, 5));
    }
}

/// D6: at every update there is.
#[tokio::test]
async fn a_crash_at_any_update_repeats_one_pass_at_most() {
    for options in [cap(4), fresh(4)] {
        for at in 0.. {
            let (agent, runs) =
                acts("w", |_| (vec![Draft::message(ChatMessage::assistant("x"))], Ok(StopReason::Completed)));
            let agent = LoopAgent::new("loop", agent, options).evaluator(until(4));
            let (mut session, cx) = (asked("go"), RunContext::default());
            cut(agent.run(&mut session, &cx), at).await;
            if LoopOutcome::of(&session, "loop").is_some_and(|outcome| outcome.passed()) {
                break;
            }
            let crashed = runs.get();
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed, "cut at {at}");
            assert!(runs.get() <= 5 && crashed <= 4, "cut at {at}: {} passes", runs.get());
            let feedback: Vec<_> = outcome(&session).iterations.into_iter().map(|record| record.feedback).collect();
            assert_eq!(feedback, [Some("f1".into()), Some("f2".into()), Some("f3".into()), None], "cut at {at}");
            let words = crate::support::user_words(session.messages());
            match options.context {
                agent_loop::ContextMode::Shared => assert_eq!(words, ["go", "f1", "f2", "f3"], "cut at {at}"),
                agent_loop::ContextMode::Fresh => {
                    assert_eq!(words, ["go", "## Feedback\n\n- f1\n- f2\n- f3"], "cut at {at}");
                }
            }
        }
    }
}

/// D7
#[tokio::test]
async fn an_exit_beside_an_open_approval_waits_for_the_answer() {
    for answer in [ChatMessage::approve("c"), ChatMessage::reject("c", "no")] {
        let calls = tool_turn(&[("c", "pay"), ("x", "exit_loop")]);
        let client = ScriptedClient::new().reply(calls, agent_core::Usage::default());
        let (pay, paid) = gated("pay");
        let agent = LoopAgent::new("loop", chat("a", &client).tool(pay).tool(exit_loop()), cap(3)).evaluator(never());
        let mut session = asked("buy");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        let approved = matches!(answer.contents[0], Content::ApprovalResponse { approved: true, .. });
        session.push(answer);
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
        assert_eq!((paid.get(), client.requests().len()), (u32::from(approved), 1));
        assert_eq!(outcome(&session).by.as_deref(), Some("a"));
    }
}

/// D7
#[tokio::test]
async fn new_words_forget_an_exit_that_waits() {
    let calls = tool_turn(&[("c", "pay"), ("x", "exit_loop")]);
    let client = ScriptedClient::new().reply(calls, agent_core::Usage::default()).says("1").says("2");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(gated("pay").0).tool(exit_loop()), cap(3));
    let agent = agent.evaluator(until(2));
    let mut session = asked("buy");
    go(&agent, &mut session).await;
    session.push("go on");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((client.requests().len(), outcome(&session).by), (3, None));
}

/// D2
#[tokio::test]
async fn a_cap_that_was_lowered_meanwhile_ends_the_loop_unrun() {
    let script = |runs: &Count| {
        let runs = runs.clone();
        agent_fn("w", move |session, out| {
            runs.up();
            Box::pin(async move {
                out.record(session, Draft::message(ChatMessage::assistant("x"))).await;
                Ok(StopReason::Completed)
            })
        })
    };
    let runs = Count::default();
    let cancelling = evaluate_fn("e", |cx| {
        if cx.iteration == 3 {
            cx.run.cancel().cancel();
        }
        LoopEvaluation::feedback(format!("f{}", cx.iteration))
    });
    let mut session = asked("go");
    let agent = LoopAgent::new("loop", script(&runs), cap(5)).evaluator(cancelling);
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Cancelled);
    for lowered in [cap(3), cap(2)] {
        let mut session = session.clone();
        let agent = LoopAgent::new("loop", script(&runs), lowered).evaluator(never());
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        let outcome = outcome(&session);
        assert_eq!((outcome.by.as_deref(), outcome.why.as_deref()), (Some("e"), Some("f3")));
        assert_eq!((runs.get(), outcome.iterations.len()), (3, 3));
        assert_eq!(said(&session).last().unwrap(), "w: x", "f3 is not said");
        assert_eq!(session.state()["loop:loop"].get("input"), None, "and will not be");
    }
}

/// D2: taken up is what is suspended, in the same turn; nothing else.
#[tokio::test]
async fn out_of_budget_is_taken_up_too() {
    let client = ScriptedClient::new().says("1").says("2").says("3");
    let agent = LoopAgent::new("loop", chat("a", &client), cap(3)).evaluator(until(3));
    let mut session = asked("go");
    let cx = RunContext::new(Limits { model_calls: Some(1), ..Limits::default() });
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!(said(&session), ["user: go", "a: 1", "loop: f1"]);
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(said(&session), ["user: go", "a: 1", "loop: f1", "a: 2", "loop: f2", "a: 3"]);
    assert_eq!(outcome(&session).iterations.len(), 3);
}

/// D2: guards that compare passes see those from before.
#[tokio::test]
async fn digests_feedback_and_usage_of_earlier_passes_survive() {
    let agent = LoopAgent::new(
        "loop",
        acts("w", |run| {
            (vec![Draft::message(ChatMessage::assistant(if run == 1 { "a" } else { "b" }))], Ok(StopReason::Completed))
        })
        .0,
        cap(5),
    )
    .evaluator(agent_loop::Stalled::new(2))
    .evaluator(scripted("e", &[LoopEvaluation::feedback("f")]));
    let mut session = asked("go");
    let cx = RunContext::default();
    assert!(!cut(agent.run(&mut session, &cx), 5).await, "two passes and their steps");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Halted);
    let outcome = outcome(&session);
    assert_eq!((outcome.by.as_deref(), outcome.iterations.len()), (Some("stalled"), 3));
}

/// D2: what a pass did before an approval is part of what it came to.
#[tokio::test]
async fn a_digest_covers_the_whole_pass_also_across_an_approval() {
    let pays = |what: &str| (format!("c{what}"), json!({"what": what}));
    let digests = async |calls: [(String, serde_json::Value); 2]| {
        let [(first, one), (second, two)] = calls;
        let client = ScriptedClient::new().calls(first, "pay", one).says("ok").calls(second, "pay", two).says("ok");
        let (agent, _) = buyer(&client, cap(5));
        let agent = agent.evaluator(agent_loop::Stalled::new(2)).evaluator(until(3));
        let mut session = asked("go");
        let mut stop = go(&agent, &mut session).await.stop;
        for _ in 0..2 {
            assert_eq!(stop, StopReason::AwaitingApproval);
            let open = session.open_approvals().remove(0);
            session.push(ChatMessage::approve(open.id));
            session = reloaded(&session);
            stop = try_go(&agent, &mut session).await.map_or(StopReason::Completed, |response| response.stop);
        }
        let iterations = outcome(&session).iterations;
        (iterations[0].digest, iterations[1].digest, outcome(&session).by)
    };
    let (first, second, by) = digests([pays("5"), pays("6")]).await;
    assert_ne!(first, second, "they paid for different things");
    assert_eq!(by, None, "nothing stalled");
    let (first, second, by) = digests([pays("5"), pays("5")]).await;
    assert_eq!((first, by.as_deref()), (second, Some("stalled")));
}
