//! E3, E4: what cancellations and errors leave to take up.

use agent_core::{
    Agent, AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, Draft, Role, RunContext, Session,
    StopReason, ToolContext, Usage, testing::ScriptedClient, tool_fn,
};
use agent_loop::{ContextMode, LoopAgent, LoopEvaluation, Stalled, evaluate_async_fn, evaluate_fn};
use serde_json::{Value, json};

use crate::support::{
    Count, Log, acts, asked, boom, cap, chat, client_fn, cut, fresh, gated, go, never, noted, outcome, reloaded,
    response, said, says, tool_turn, try_go, until,
};

/// E3: between iterations.
#[tokio::test]
async fn a_cancellation_after_a_verdict_keeps_it_and_says_its_input_later() {
    let with = LoopEvaluation::ContinueWith(vec![ChatMessage::system("s"), ChatMessage::user("u").by("critic")]);
    for options in [cap(3), fresh(3)] {
        for (verdict, shared, in_fresh) in [
            (LoopEvaluation::feedback("f"), vec!["loop: f"], vec!["loop: ## Feedback\n\n- f"]),
            (LoopEvaluation::again(), vec![], vec![]),
            (with.clone(), vec!["loop (system): s", "critic: u"], vec!["loop (system): s", "critic: u"]),
        ] {
            let (inner, runs) = says("w");
            let log = Log::default();
            let given = verdict.clone();
            let agent = LoopAgent::new("loop", inner, options).evaluator(noted("e", &log, move |cx| {
                if cx.iteration == 1 {
                    cx.run.cancel().cancel();
                    return given.clone();
                }
                LoopEvaluation::Satisfied
            }));
            let mut session = asked("go");
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::Cancelled);
            assert_eq!(said(&session), ["user: go", "w: 1"], "not said yet");
            let stopped = outcome(&session);
            assert_eq!((stopped.stop, stopped.iterations.len()), (Some(StopReason::Cancelled), 1));

            let mut session = reloaded(&session);
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
            assert_eq!((log.get(), runs.get()), (vec!["e#1".to_owned(), "e#2".into()], 2), "no pass is judged twice");
            let expected = match options.context {
                ContextMode::Shared => [&["user: go", "w: 1"], &shared[..], &["w: 2"]].concat(),
                ContextMode::Fresh => [&["user: go"], &in_fresh[..], &["w: 2"]].concat(),
            };
            assert_eq!(said(&session), expected);
            assert_eq!(outcome(&session).by, None);
        }
    }
}

/// E3: and a crash of the run that was to say it changes nothing.
#[tokio::test]
async fn a_kept_input_survives_crashes_until_it_is_said() {
    let agent = LoopAgent::new("loop", says("w").0, cap(3)).evaluator(evaluate_fn("e", |cx| {
        if cx.iteration == 1 {
            cx.run.cancel().cancel();
        }
        if cx.iteration == 1 { LoopEvaluation::feedback("f") } else { LoopEvaluation::Satisfied }
    }));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    let cx = RunContext::default();
    cut(agent.run(&mut session, &cx), 0).await;
    cx.cancel().cancel();
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::Cancelled);
    assert_eq!(said(&session), ["user: go", "w: 1"]);
    let cx = RunContext::default();
    cut(agent.run(&mut session, &cx), 1).await;
    assert_eq!(said(&session), ["user: go", "w: 1", "loop: f"]);
    go(&agent, &mut session).await;
    assert_eq!(said(&session), ["user: go", "w: 1", "loop: f", "w: 2"]);
}

/// E3: the pass was not judged, so it runs again.
#[tokio::test]
async fn a_cancellation_during_an_evaluator_ends_the_run_and_repeats_the_pass() {
    let (inner, runs) = says("w");
    let count = Count::default();
    let first = count.clone();
    let agent = LoopAgent::new("loop", inner, cap(3)).evaluator(evaluate_async_fn("slow", move |cx| {
        let slow = first.up() == 1;
        Box::pin(async move {
            if slow {
                cx.run.cancel().cancel();
                std::future::pending::<()>().await;
            }
            Ok(LoopEvaluation::Satisfied)
        })
    }));
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Cancelled);
    assert_eq!(outcome(&session).iterations, []);
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((runs.get(), count.get(), outcome(&session).iterations.len()), (2, 2, 1));
}

/// E3: later evaluators are not begun.
#[tokio::test]
async fn a_cancelled_run_asks_no_further_evaluator() {
    let log = Log::default();
    let agent = LoopAgent::new("loop", says("w").0, cap(3))
        .evaluator(evaluate_fn("a", |cx| {
            cx.run.cancel().cancel();
            LoopEvaluation::Satisfied
        }))
        .evaluator(noted("b", &log, |_| LoopEvaluation::Satisfied));
    assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::Cancelled);
    assert_eq!(log.get(), [""; 0]);
}

/// E3
#[tokio::test]
async fn a_loop_that_is_cancelled_before_it_begins_runs_nothing() {
    let (inner, runs) = says("w");
    let agent = LoopAgent::new("loop", inner, cap(3)).evaluator(never());
    let (mut session, cx) = (asked("go"), RunContext::default());
    cx.cancel().cancel();
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::Cancelled);
    assert_eq!((runs.get(), outcome(&session).stop), (0, Some(StopReason::Cancelled)));
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
    assert_eq!(
        (runs.get(), said(&session)),
        (3, vec!["user: go".to_owned(), "w: 1".into(), "w: 2".into(), "w: 3".into()])
    );
}

/// E4, D6: an error leaves no stop, and the run that follows takes the iteration up.
#[tokio::test]
async fn after_an_error_of_the_agent_its_iteration_is_taken_up() {
    let (inner, runs) = acts("w", |run| {
        let end = if run == 2 { Err(boom()) } else { Ok(StopReason::Completed) };
        (vec![Draft::message(ChatMessage::assistant(run.to_string()))], end)
    });
    let agent = LoopAgent::new("loop", inner, cap(3)).evaluator(until(9));
    let mut session = asked("go");
    assert_eq!(try_go(&agent, &mut session).await.unwrap_err().to_string(), "boom");
    assert_eq!((outcome(&session).stop, outcome(&session).iterations.len()), (None, 1));
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
    assert_eq!((runs.get(), outcome(&session).iterations.len()), (4, 3));
    assert_eq!(said(&session), ["user: go", "w: 1", "loop: f1", "w: 2", "w: 3", "loop: f2", "w: 4"]);
}

/// A model that says `x`, looks and says `x`, says `y`, and says `z`, as far as it was told to say more.
fn looker() -> impl ChatClient + 'static {
    client_fn(|request| {
        let said: String = request.messages.iter().filter(|m| m.role == Role::User).map(ChatMessage::text).collect();
        let looked = request.messages.iter().rev().take_while(|m| m.role != Role::User).any(|m| m.role == Role::Tool);
        let message = match (said.matches("more").count(), looked) {
            (1, false) => tool_turn(&[("c", "look")]),
            (0 | 1, _) => ChatMessage::assistant("x"),
            (2, _) => ChatMessage::assistant("y"),
            (_, _) => ChatMessage::assistant("z"),
        };
        Box::pin(async { Ok(response(message, Usage::default())) })
    })
}

/// C3, E3, E4: of a pass that was cut off, what it had done counts, too; else the rest could pass for a repetition.
#[tokio::test]
async fn the_rest_of_a_pass_is_no_repetition_of_an_earlier_one() {
    for (options, name) in [(cap(4), "a"), (fresh(4), "a"), (cap(4), "loop")] {
        let look = tool_fn("look", "Looks.", |_: Value, _: ToolContext| async { Ok("nothing") });
        let looker = ChatAgent::new(name, looker(), ChatAgentOptions::default()).tool(look);
        let objects = evaluate_fn("e", |_| LoopEvaluation::feedback("more"));
        let agent = LoopAgent::new("loop", looker, options).evaluator(Stalled::new(2)).evaluator(objects);
        let digests = |session: &Session| outcome(session).iterations.iter().map(|i| i.digest).collect::<Vec<_>>();
        let mut whole = asked("go");
        let events = go(&agent, &mut whole).await.events.len();
        for cuts in 0..events {
            let mut session = asked("go");
            cut(agent.run(&mut session, &RunContext::default()), cuts).await;
            // Behind its answer a pass is not cut off, but asked once more.
            let last = session.messages().last().unwrap();
            let answered = last.role == Role::Assistant && last.tool_calls().next().is_none();
            let mut session = reloaded(&session);
            assert_eq!(
                go(&agent, &mut session).await.stop,
                StopReason::IterationLimit,
                "cut after {cuts}, {options:?}"
            );
            assert_eq!(digests(&session) != digests(&whole), answered, "cut after {cuts}, {options:?}");
        }
    }
}

/// C3, D2: what a guard is told of a pass is what is kept of it, also if a loop in it forgot messages before it was interrupted.
#[tokio::test]
async fn a_guard_sees_the_digest_that_is_kept() {
    for (outer, inner) in [(cap(2), fresh(3)), (fresh(2), fresh(3)), (cap(2), cap(3))] {
        let client = ScriptedClient::new()
            .says("1")
            .says("2")
            .calls("c", "pay", json!({}))
            .says("3")
            .says("4")
            .says("5")
            .says("6");
        let (pay, _) = gated("pay");
        let objects = || evaluate_fn("e", |_| LoopEvaluation::feedback("more"));
        let inner = LoopAgent::new("inner", chat("a", &client).tool(pay), inner).evaluator(objects());
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = seen.clone();
        let guard = evaluate_fn("guard", move |cx| {
            noted.lock().unwrap().push(cx.digest());
            LoopEvaluation::Satisfied
        });
        let agent = LoopAgent::new("loop", inner, outer).evaluator(guard).evaluator(objects());
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
        let mut session = reloaded(&session);
        session.push(ChatMessage::approve("c"));
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        let kept: Vec<_> = outcome(&session).iterations.iter().map(|record| record.digest).collect();
        assert_eq!(*seen.lock().unwrap(), kept, "{outer:?}");
    }
}
