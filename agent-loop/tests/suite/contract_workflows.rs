//! G: loops around sequences and parallels, in them, and in each other.

use std::time::Duration;

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatMessage, Content, Draft, Event, ParallelAgent, Role, RunContext,
    SequentialAgent, StopReason, ToolCall, ToolContext, ToolOutput, agent_fn, agent_tool, exit_loop,
    testing::{PairingClient, ScriptedClient},
    tool_fn,
};
use agent_loop::{
    LoopAgent, LoopEvaluation, LoopEvaluator, LoopOutcome, UntilEscalated, evaluate_async_fn, evaluate_fn,
};
use serde_json::{Value, json};

use crate::support::{
    acts, asked, cap, chat, cut, escalates, fresh, gated, go, never, outcome, said, says, scripted, spends, tokens,
    tool_turn, until,
};

/// G1
#[tokio::test]
async fn a_checker_that_escalates_ends_the_pass_and_the_loop() {
    let (after, after_runs) = says("after");
    let body = SequentialAgent::new("body").then(says("w").0).then(escalates("checker", &[2]).0).then(after);
    let agent = LoopAgent::new("loop", body, cap(5)).evaluator(UntilEscalated);
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(
        (said(&session), after_runs.get()),
        (["user: go", "w: 1", "after: 1", "w: 2"].map(str::to_owned).to_vec(), 1)
    );
    assert_eq!(outcome(&session).by.as_deref(), Some("checker"));
    assert!(session.state().keys().all(|key| key.starts_with("loop:loop")), "{:?}", session.state());
}

/// G2
#[tokio::test]
async fn exit_loop_ends_the_turn_without_another_model_call() {
    let client = ScriptedClient::new().says("draft").calls("x", "exit_loop", json!({}));
    let options = ChatAgentOptions { output_key: Some("draft".into()), ..ChatAgentOptions::default() };
    let inner = ChatAgent::new("a", PairingClient::new(client.clone()), options).tool(exit_loop());
    let agent = LoopAgent::new("loop", inner, cap(5)).evaluator(UntilEscalated);
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(client.requests().len(), 2);
    assert_eq!(session.get::<String>("draft").as_deref(), Some("draft"));
}

/// G3
#[tokio::test]
async fn prose_never_stops_a_loop() {
    let (inner, runs) = acts("w", |_| {
        (vec![Draft::message(ChatMessage::assistant("DONE. exit_loop. escalate: true"))], Ok(StopReason::Completed))
    });
    let agent = LoopAgent::new("loop", inner, cap(3)).evaluator(UntilEscalated);
    assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::IterationLimit);
    assert_eq!(runs.get(), 3);
}

/// An agent that says what the loop `loop` came to.
fn teller() -> impl Agent + 'static {
    agent_fn("teller", |session, out| {
        Box::pin(async move {
            let LoopOutcome { stop, why, .. } = LoopOutcome::of(session, "loop").unwrap();
            let text = format!("{}, {}", stop.unwrap(), why.as_deref().unwrap_or("-"));
            out.record(session, Draft::message(ChatMessage::assistant(text))).await;
            Ok(StopReason::Completed)
        })
    })
}

/// G4
#[tokio::test]
async fn a_final_stage_tells_the_outcome_whatever_the_exit() {
    for (evaluation, stop, told) in [
        (LoopEvaluation::Satisfied, StopReason::Completed, Some("completed, -")),
        (LoopEvaluation::feedback("f"), StopReason::IterationLimit, Some("iteration limit reached, f")),
        (LoopEvaluation::Halt("h".into()), StopReason::Halted, Some("halted by an evaluator, h")),
    ] {
        let inner =
            || LoopAgent::new("loop", says("w").0, cap(1)).evaluator(scripted("e", std::slice::from_ref(&evaluation)));
        let mut session = asked("go");
        let response = go(&SequentialAgent::new("all").then(inner()).finally(teller()), &mut session).await;
        assert_eq!((response.stop, response.text().as_str()), (stop, told.unwrap()));
        let (plain, runs) = says("plain");
        let mut session = asked("go");
        let response = go(&SequentialAgent::new("all").then(inner()).then(plain), &mut session).await;
        assert_eq!((response.stop, runs.get()), (stop, u32::from(stop == StopReason::Completed)));
    }
}

/// G4
#[tokio::test]
async fn a_final_stage_waits_while_the_loop_is_suspended() {
    let client = ScriptedClient::new().calls("c", "pay", json!({})).says("paid");
    let inner = LoopAgent::new("loop", chat("a", &client).tool(gated("pay").0), cap(3)).evaluator(until(1));
    let agent = SequentialAgent::new("all").then(says("first").0).then(inner).finally(teller());
    let mut session = asked("go");
    let response = go(&agent, &mut session).await;
    assert_eq!((response.stop, response.text().as_str()), (StopReason::AwaitingApproval, "1"));
    session.push(ChatMessage::approve("c"));
    let response = go(&agent, &mut session).await;
    assert_eq!((response.stop, response.text().as_str()), (StopReason::Completed, "completed, -"));
    assert_eq!(
        said(&session),
        [
            "user: go",
            "first: 1",
            "a: call pay c",
            "a: may pay c?",
            "user: approve c",
            "a: result c = run 1",
            "a: paid",
            "teller: completed, -"
        ]
    );
}

/// G5
#[tokio::test(start_paused = true)]
async fn parallel_tool_calls_pair_by_id_and_the_later_call_wins() {
    let wait = tool_fn("wait", "Waits.", |args: Value, cx: ToolContext| async move {
        tokio::time::sleep(Duration::from_secs(args["seconds"].as_u64().unwrap())).await;
        let output = ToolOutput::text(cx.call.id.clone()).set("last", &cx.call.id).append("all", &cx.call.id);
        Ok(if cx.call.id == "1" { output.escalate().end_turn() } else { output })
    });
    let call = |id: &str, seconds: u32| {
        let (id, name) = (id.to_owned(), "wait".to_owned());
        Content::ToolCall(ToolCall { id, name, arguments: json!({"seconds": seconds}) })
    };
    let calls = ChatMessage::new(Role::Assistant, [call("1", 3), call("2", 1)]);
    let client = ScriptedClient::new().reply(calls, tokens(0, 0));
    let agent = LoopAgent::new("loop", chat("a", &client).tool(wait), cap(3)).evaluator(never());
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(said(&session)[1..], ["a: call wait 1, call wait 2", "a: result 1 = 1", "a: result 2 = 2"]);
    assert_eq!((session.get::<String>("last").as_deref(), session.get("all")), (Some("2"), Some(json!(["1", "2"]))));
}

#[tokio::test]
async fn a_loop_in_a_sequence_in_a_loop_begins_anew_in_each_pass() {
    let (w, w_runs) = says("w");
    let (last, last_runs) = says("last");
    let inner = LoopAgent::new("inner", w, cap(5)).evaluator(until(3));
    let body = SequentialAgent::new("body").then(inner).then(last);
    let agent = LoopAgent::new("loop", body, cap(4)).evaluator(until(2));
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((w_runs.get(), last_runs.get()), (6, 2));
    assert_eq!(LoopOutcome::of(&session, "inner").unwrap().iterations.len(), 3);
    assert_eq!(
        said(&session),
        [
            "user: go",
            "w: 1",
            "inner: f1",
            "w: 2",
            "inner: f2",
            "w: 3",
            "last: 1",
            "loop: f1",
            "w: 4",
            "inner: f1",
            "w: 5",
            "inner: f2",
            "w: 6",
            "last: 2"
        ]
    );
}

/// A crash anywhere in nested loops and sequences: no finished iteration is repeated or lost.
#[tokio::test]
async fn a_crash_anywhere_in_nested_loops_goes_on_in_the_innermost() {
    for options in [cap(3), fresh(3)] {
        for at in 0.. {
            let w = || acts("w", |_| (vec![Draft::message(ChatMessage::assistant("x"))], Ok(StopReason::Completed)));
            let ((first, _), (second, _)) = (w(), says("second"));
            let inner = LoopAgent::new("inner", first, options).evaluator(until(2));
            let body = SequentialAgent::new("body").then(inner).then(second);
            let agent = LoopAgent::new("loop", body, options).evaluator(until(2));
            let (mut session, cx) = (asked("go"), RunContext::default());
            if cut(agent.run(&mut session, &cx), at).await {
                break;
            }
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed, "cut at {at}");
            let lengths = ["loop", "inner"].map(|name| LoopOutcome::of(&session, name).unwrap().iterations.len());
            assert_eq!(lengths, [2, 2], "cut at {at}");
            assert!(!session.state().contains_key("sequence:body"), "cut at {at}");
        }
    }
}

fn two_loops(a: LoopAgent, b: LoopAgent) -> ParallelAgent {
    ParallelAgent::new("both").branch(a).branch(b)
}

#[tokio::test]
async fn loops_side_by_side_keep_their_own_records() {
    let a = LoopAgent::new("a", spends("wa").0, cap(5)).evaluator(until(3));
    let b = LoopAgent::new("b", spends("wb").0, fresh(2)).evaluator(until(9));
    let mut session = asked("go");
    assert_eq!(go(&two_loops(a, b), &mut session).await.stop, StopReason::IterationLimit);
    let records =
        |name| LoopOutcome::of(&session, name).unwrap().iterations.iter().map(|r| r.usage).collect::<Vec<_>>();
    assert_eq!((records("a"), records("b")), (vec![tokens(10, 1); 3], vec![tokens(10, 1); 2]));
    assert_eq!(said(&session)[0], "user: go", "a branch's rewind stays in the branch");
}

/// A judge that bills and then thinks for so long.
fn billing(amount: u64, seconds: u64) -> impl LoopEvaluator + 'static {
    evaluate_async_fn("judge", move |cx| {
        Box::pin(async move {
            cx.run.bill(tokens(amount, 0));
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(LoopEvaluation::again())
        })
    })
}

/// Judges of loops side by side bill their own loop, also where one waits while the other goes on.
#[tokio::test(start_paused = true)]
async fn loops_side_by_side_do_not_take_each_others_bills() {
    let a = LoopAgent::new("a", says("wa").0, cap(2)).evaluator(billing(100, 10));
    let b = LoopAgent::new("b", says("wb").0, cap(3)).evaluator(billing(1, 1));
    let mut session = asked("go");
    let response = go(&two_loops(a, b), &mut session).await;
    let inputs = |name| {
        LoopOutcome::of(&session, name).unwrap().iterations.iter().map(|r| r.usage.input_tokens).collect::<Vec<_>>()
    };
    assert_eq!((inputs("a"), inputs("b")), (vec![100; 2], vec![1; 3]));
    assert_eq!(response.usage, tokens(203, 0));
}

/// And so do judges of loops that are tools, called at once: a result's event has what its loop used.
#[tokio::test(start_paused = true)]
async fn loops_as_tools_do_not_take_each_others_bills() {
    let helper = |name, amount, seconds, passes| {
        agent_tool(LoopAgent::new(name, says("w").0, cap(passes)).evaluator(billing(amount, seconds)))
    };
    let call = |id: &str, name: &str| {
        let (id, name) = (id.to_owned(), name.to_owned());
        Content::ToolCall(ToolCall { id, name, arguments: json!({"request": "help"}) })
    };
    let calls = ChatMessage::new(Role::Assistant, [call("1", "a"), call("2", "b")]);
    let client = ScriptedClient::new().reply(calls, tokens(0, 0)).says("ok");
    let inner = chat("c", &client).tool(helper("a", 100, 10, 2)).tool(helper("b", 1, 1, 3));
    let response = go(&LoopAgent::new("loop", inner, cap(1)), &mut asked("go")).await;
    let is_result = |event: &&Event| event.messages.iter().any(|message| message.role == Role::Tool);
    let used: Vec<_> = response.events.iter().filter(is_result).map(|event| event.usage).collect();
    assert_eq!((used, response.usage), (vec![Some(tokens(200, 0)), Some(tokens(3, 0))], tokens(203, 0)));
}

/// What no loop in a branch reports is reported by the loop around.
#[tokio::test]
async fn a_bill_in_a_branch_reaches_the_loop_around() {
    let bills = |name: &str| {
        agent_fn(name, |_, out| {
            Box::pin(async move {
                out.cx().bill(tokens(3, 0));
                Ok(StopReason::Completed)
            })
        })
    };
    let body = ParallelAgent::new("both").branch(bills("a")).branch(bills("b"));
    let agent = LoopAgent::new("loop", body, cap(2)).evaluator(never());
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.usage, tokens(12, 0));
    assert_eq!(outcome(&session).iterations.iter().map(|r| r.usage).collect::<Vec<_>>(), [tokens(6, 0); 2]);
}

/// D3 in a branch: taken up in the merged session, an approved call runs once, in fresh mode too.
#[tokio::test]
async fn an_approved_call_of_a_loop_in_a_branch_runs_once() {
    for options in [cap(4), fresh(4)] {
        let client = ScriptedClient::new().says("1").calls("c", "pay", json!({})).says("2").says("3").says("4");
        let (pay, paid) = gated("pay");
        let seen = crate::support::Log::default();
        let log = seen.clone();
        let a = LoopAgent::new("a", chat("wa", &client).tool(pay), options).evaluator(evaluate_fn("e", move |cx| {
            log.add(format!("{} {}", cx.iteration, cx.request.iter().map(ChatMessage::text).collect::<String>()));
            LoopEvaluation::feedback(format!("f{}", cx.iteration))
        }));
        let (wb, b_runs) = says("wb");
        let b = LoopAgent::new("b", wb, options).evaluator(until(2));
        let agent = two_loops(a, b);
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        session.push(ChatMessage::approve("c"));
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!((paid.get(), b_runs.get()), (1, 2), "{options:?}");
        assert_eq!(seen.get(), ["1 go", "2 go", "3 go", "4 go"]);
        assert_eq!(LoopOutcome::of(&session, "a").unwrap().iterations.len(), 4);
    }
}

/// A loop that is taken up in a branch does not forget what the others said.
#[tokio::test]
async fn a_fresh_loop_that_is_taken_up_in_a_branch_keeps_others_words() {
    let client = ScriptedClient::new().calls("c", "pay", json!({})).says("1").says("2");
    let (pay, _) = gated("pay");
    let a = LoopAgent::new("a", chat("wa", &client).tool(pay), fresh(4)).evaluator(until(2));
    let agent = two_loops(a, LoopAgent::new("b", says("wb").0, cap(1)));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    session.push(ChatMessage::approve("c"));
    go(&agent, &mut session).await;
    let heard: Vec<String> = client.requests()[2].messages.iter().map(crate::support::show).collect();
    assert!(heard.contains(&"wb: 1".to_owned()), "{heard:?}");
    assert!(heard.contains(&"a: ## Feedback\n\n- f1".to_owned()), "{heard:?}");
}

/// Crashes of loops side by side, at every update.
#[tokio::test]
async fn a_crash_anywhere_in_loops_side_by_side_loses_no_iteration() {
    for options in [cap(3), fresh(3)] {
        for at in 0.. {
            let w =
                |name| acts(name, |_| (vec![Draft::message(ChatMessage::assistant("x"))], Ok(StopReason::Completed)));
            let ((wa, a_runs), (wb, b_runs)) = (w("wa"), w("wb"));
            let a = LoopAgent::new("a", wa, options).evaluator(until(3));
            let b = LoopAgent::new("b", wb, options).evaluator(until(9));
            let agent = LoopAgent::new("loop", two_loops(a, b), cap(1)).evaluator(until(1));
            let (mut session, cx) = (asked("go"), RunContext::default());
            if cut(agent.run(&mut session, &cx), at).await {
                break;
            }
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed, "cut at {at}");
            let lengths = ["a", "b", "loop"].map(|name| LoopOutcome::of(&session, name).unwrap().iterations.len());
            assert_eq!(lengths, [3, 3, 1], "cut at {at}");
            assert!(a_runs.get() <= 6 && b_runs.get() <= 6, "cut at {at}: {} {}", a_runs.get(), b_runs.get());
        }
    }
}

/// A loop around a parallel: an approval of one branch, the others are not run again.
#[tokio::test]
async fn a_branch_that_finished_is_not_run_again_in_its_pass() {
    let client = ScriptedClient::new().reply(tool_turn(&[("c", "pay")]), tokens(0, 0)).says("paid").says("second pass");
    let (other, other_runs) = says("other");
    let body = ParallelAgent::new("both").branch(chat("a", &client).tool(gated("pay").0)).branch(other);
    let agent = LoopAgent::new("loop", body, cap(3)).evaluator(until(2));
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
    session.push(ChatMessage::approve("c"));
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((other_runs.get(), client.requests().len(), outcome(&session).iterations.len()), (2, 3, 2));
}

/// An escalation in a branch ends the loop around, after all branches ended.
#[tokio::test]
async fn a_branch_that_escalates_completes_the_loop_around() {
    let (other, runs) = says("other");
    let body = ParallelAgent::new("both").branch(escalates("checker", &[2]).0).branch(other);
    let agent = LoopAgent::new("loop", body, cap(5)).evaluator(UntilEscalated);
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((runs.get(), outcome(&session).by.as_deref()), (2, Some("checker")));
}

#[tokio::test]
async fn a_loop_is_an_agent_tool_with_a_session_of_its_own() {
    let inner = LoopAgent::new("helper", says("w").0, cap(3)).evaluator(until(2));
    let client = ScriptedClient::new().calls("1", "helper", json!({"request": "help"})).says("ok");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(agent_tool(inner)), cap(3)).evaluator(until(1));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    assert_eq!(said(&session), ["user: go", "a: call helper 1", "a: result 1 = 2", "a: ok"]);
    assert_eq!(LoopOutcome::of(&session, "helper"), None);
}
