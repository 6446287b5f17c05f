//! E: limits, cancellation, errors.

use std::time::Duration;

use agent_core::{
    Agent, AgentExt, ChatMessage, DuplicateCalls, ErrorKind, Limits, Role, RunContext, SequentialAgent, Session,
    StopReason, ToolBudget, ToolContext, Usage, agent_tool, testing::ScriptedClient, tool_fn,
};
use agent_loop::{LoopAgent, LoopEvaluation, LoopEvaluator, all_of, any_of, at_most, evaluate_async_fn, evaluate_fn};
use serde_json::{Value, json};

use crate::support::{
    Count, asked, boom, cap, chat, cut, go, judge, never, outcome, said, says, tokens, tool_turn, try_go, until,
};

fn results(session: &Session) -> Vec<String> {
    session.messages().iter().filter(|message| message.role == Role::Tool).map(crate::support::show).collect()
}

fn model_calls(max: u32) -> RunContext {
    RunContext::new(Limits { model_calls: Some(max), ..Limits::default() })
}

/// E1
#[tokio::test]
async fn model_calls_are_counted_over_members_passes_and_nested_loops() {
    let replies = |n| (0..n).fold(ScriptedClient::new(), |client, _| client.says("x"));
    let (a, b) = (replies(9), replies(9));
    let inner = LoopAgent::new("inner", chat("a", &a), cap(2)).evaluator(never());
    let body = SequentialAgent::new("body").then(chat("b", &b)).finally(inner);
    let agent = LoopAgent::new("loop", body, cap(5)).evaluator(never());
    let cx = model_calls(7);
    let response = agent.complete(&mut asked("go"), &cx).await.unwrap();
    assert_eq!(response.stop, StopReason::BudgetExhausted);
    // three calls a pass: b, a, a
    assert_eq!((b.requests().len(), a.requests().len(), cx.spent().model_calls), (3, 4, 7));
}

/// E1
#[tokio::test]
async fn agents_used_as_tools_share_the_limits_and_their_tokens_count() {
    let helper = ScriptedClient::new()
        .reply(ChatMessage::assistant("h"), tokens(5, 5))
        .reply(ChatMessage::assistant("h"), tokens(5, 5));
    let client = ScriptedClient::new()
        .calls("1", "helper", json!({"request": "help"}))
        .says("1")
        .calls("2", "helper", json!({"request": "help"}))
        .says("2");
    let tool = agent_tool(LoopAgent::new("helper", chat("h", &helper), cap(2)));
    let agent = LoopAgent::new("loop", chat("a", &client).tool(tool), cap(2)).evaluator(until(2));
    let (mut session, cx) = (asked("go"), model_calls(6));
    let response = agent.complete(&mut session, &cx).await.unwrap();
    assert_eq!((response.stop, response.usage), (StopReason::Completed, tokens(10, 10)));
    assert_eq!((cx.spent().model_calls, cx.spent().tokens), (6, 20));
    assert_eq!(outcome(&session).iterations[0].usage, tokens(5, 5));
}

/// E1
#[tokio::test]
async fn tokens_are_looked_at_before_the_next_call_over_all_passes() {
    let client = (0..9).fold(ScriptedClient::new(), |c, _| c.reply(ChatMessage::assistant("x"), tokens(5, 5)));
    let agent = LoopAgent::new("loop", chat("a", &client), cap(9)).evaluator(never());
    let cx = RunContext::new(Limits { tokens: Some(25), ..Limits::default() });
    let response = agent.complete(&mut asked("go"), &cx).await.unwrap();
    assert_eq!((response.stop, client.requests().len()), (StopReason::BudgetExhausted, 3), "10, 20, 30");
}

/// E1: what a judge uses counts as well.
#[tokio::test]
async fn a_judges_tokens_count() {
    let client = (0..9).fold(ScriptedClient::new(), |c, _| c.reply(ChatMessage::assistant("x"), tokens(5, 5)));
    let agent = LoopAgent::new("loop", chat("a", &client), cap(9))
        .evaluator(judge(tokens(5, 5), |_| Some(LoopEvaluation::again())));
    let cx = RunContext::new(Limits { tokens: Some(35), ..Limits::default() });
    let response = agent.complete(&mut asked("go"), &cx).await.unwrap();
    assert_eq!((response.stop, client.requests().len()), (StopReason::BudgetExhausted, 2), "20, 40");
    assert_eq!(response.usage, tokens(20, 20));
}

/// E2
#[tokio::test]
async fn a_refused_call_has_a_result_and_the_session_goes_on_later() {
    let looked = Count::default();
    let count = looked.clone();
    let look = tool_fn("look", "Looks.", move |_: Value, _: ToolContext| {
        count.up();
        async { Ok("seen") }
    });
    let client = ScriptedClient::new().reply(tool_turn(&[("1", "look"), ("2", "look")]), Usage::default()).says("ok");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(look), cap(3)).evaluator(until(1));
    let mut session = asked("go");
    let cx = RunContext::new(Limits { tool_calls: Some(1), ..Limits::default() });
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!(
        (results(&session), looked.get()),
        (vec!["a: result 1 = seen".to_owned(), "a: error 2 = not run: budget exhausted".into()], 1)
    );
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
}

/// E2
#[tokio::test]
async fn a_hook_answers_skipped_and_the_loop_goes_on() {
    for hooked in [true, false] {
        let look = tool_fn("look", "Looks.", |_: Value, _: ToolContext| async { Ok("seen") });
        let client =
            ScriptedClient::new().calls("1", "look", json!({})).says("1").calls("2", "look", json!({})).says("2");
        let inner = chat("a", &client).tool(look);
        let inner = if hooked { inner.hook(ToolBudget::new(1)) } else { inner.hook(DuplicateCalls::new()) };
        let agent = LoopAgent::new("loop", inner, cap(3)).evaluator(until(2));
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
        let results = results(&session);
        assert_eq!(results[0], "a: result 1 = seen");
        assert!(results[1].starts_with("a: error 2 = skipped: "), "one run, over all passes: {results:?}");
    }
}

/// E3: during a model call, a tool, an evaluator.
#[tokio::test(start_paused = true)]
async fn time_out_interrupts_a_tool_and_an_evaluator() {
    let slow = tool_fn("slow", "Waits.", |_: Value, _: ToolContext| async {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Ok("done")
    });
    let client = ScriptedClient::new().calls("1", "slow", json!({})).says("ok");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(slow), cap(3)).evaluator(until(1));
    let wall = || RunContext::new(Limits { wall: Some(Duration::from_secs(1)), ..Limits::default() });
    let mut session = asked("go");
    assert_eq!(agent.complete(&mut session, &wall()).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!(
        results(&session),
        ["a: error 1 = interrupted while it ran: budget exhausted; it may have taken effect"]
    );
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);

    let agent = LoopAgent::new("loop", says("w").0, cap(3)).evaluator(evaluate_async_fn("slow", |_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            Ok(LoopEvaluation::Satisfied)
        })
    }));
    let mut session = asked("go");
    assert_eq!(agent.complete(&mut session, &wall()).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!((outcome(&session).stop, outcome(&session).iterations), (Some(StopReason::BudgetExhausted), vec![]));
}

/// E3
#[tokio::test]
async fn a_dropped_run_stops_at_once_and_the_next_is_accepted() {
    let slow = tool_fn("slow", "Waits once.", move |_: Value, cx: ToolContext| async move {
        if cx.session.get::<bool>("patient").is_none() {
            std::future::pending::<()>().await;
        }
        Ok("done")
    });
    let client = ScriptedClient::new().calls("1", "slow", json!({})).says("ok");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(slow), cap(3)).evaluator(until(1));
    let (mut session, cx) = (asked("go"), RunContext::default());
    assert!(!cut(agent.run(&mut session, &cx), 2).await, "begin, call");
    let mut session = session.with_state("patient", true);
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(said(&session), ["user: go", "a: call slow 1", "a: result 1 = done", "a: ok"]);
}

/// E4
#[tokio::test]
async fn an_error_of_an_evaluator_ends_the_run_and_keeps_what_was_recorded() {
    let agent = LoopAgent::new("loop", says("w").0, cap(5)).evaluator(evaluate_async_fn("e", |cx| {
        let answer = if cx.iteration < 3 { Ok(LoopEvaluation::feedback("f")) } else { Err(boom()) };
        Box::pin(async { answer })
    }));
    let mut session = asked("go");
    let error = try_go(&agent, &mut session).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Provider, "boom"));
    assert_eq!(said(&session), ["user: go", "w: 1", "loop: f", "w: 2", "loop: f", "w: 3"]);
    assert_eq!((outcome(&session).stop, outcome(&session).iterations.len()), (None, 2));
    assert!(!outcome(&session).passed());
}

/// E4: neither as "stop" nor as "go on", whatever stands before and after it.
#[tokio::test]
async fn an_error_of_an_evaluator_is_no_answer() {
    let failing = || evaluate_async_fn("e", |_| Box::pin(async { Err(boom()) }));
    let (inner, runs) = says("w");
    let agent = LoopAgent::new("loop", inner, cap(1)).evaluator(evaluate_fn("ok", |_| LoopEvaluation::Satisfied));
    let agent = agent.evaluator(failing()).evaluator(never());
    assert!(try_go(&agent, &mut asked("go")).await.is_err());
    assert_eq!(runs.get(), 1);
    let any: Box<dyn LoopEvaluator> = Box::new(any_of("any", [failing()]));
    let all: Box<dyn LoopEvaluator> = Box::new(all_of("all", [failing()]));
    for combined in [any, all] {
        let agent = LoopAgent::new("loop", says("w").0, cap(2)).evaluator(combined);
        assert!(try_go(&agent, &mut asked("go")).await.is_err());
    }
}

/// E5
#[tokio::test]
async fn one_loop_may_run_on_several_sessions_at_once() {
    let (inner, runs) = crate::support::acts("w", |_| {
        (vec![agent_core::Draft::message(ChatMessage::assistant("x"))], Ok(StopReason::Completed))
    });
    let agent =
        std::sync::Arc::new(LoopAgent::new("loop", inner, cap(5)).evaluator(at_most(2, never())).evaluator(until(2)));
    let runs_of = |name: &'static str| {
        let agent = agent.clone();
        async move {
            let mut session = asked(name);
            go(&agent, &mut session).await;
            (outcome(&session).iterations.len(), said(&session).len())
        }
    };
    let all = futures::future::join_all(["a", "b", "c"].map(runs_of)).await;
    assert_eq!((all, runs.get()), (vec![(3, 4); 3], 9));
}

/// E3: though neither the agent nor the evaluator ever waits.
#[tokio::test]
async fn a_loop_that_never_waits_is_ended_by_its_time_and_by_a_cancellation() {
    let endless = || LoopAgent::new("loop", SequentialAgent::new("nothing"), cap(u32::MAX)).evaluator(never());
    let wall = Limits { wall: Some(Duration::from_millis(5)), ..Limits::default() };
    let response = endless().complete(&mut asked("go"), &RunContext::new(wall)).await.unwrap();
    assert_eq!(response.stop, StopReason::BudgetExhausted);

    let cx = RunContext::default();
    let cancel = cx.cancel().clone();
    let other = tokio::spawn(async move { cancel.cancel() });
    assert_eq!(endless().complete(&mut asked("go"), &cx).await.unwrap().stop, StopReason::Cancelled);
    other.await.unwrap();
}
