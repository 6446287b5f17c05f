//! What the spans of loops show, and what they do not.

#[path = "../../agent-core/tests/support/spans.rs"]
mod spans;

use std::num::NonZeroU32;

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatUpdate, Error, ErrorKind, Result,
    RunContext, Session, StopReason, Usage,
    testing::{ScriptedAgent, ScriptedClient},
};
use agent_loop::{
    ContextMode, Judge, LoopAgent, LoopContext, LoopEvaluation, LoopOptions, evaluate_async_fn, evaluate_fn,
};
use futures::{FutureExt, StreamExt, stream, stream::BoxStream};

use crate::spans::Spans;

const SHOWN: &[&str] = &[
    "agent.step",
    "agent.iteration",
    "agent.stop_reason",
    "agent.loop.decided_by",
    "gen_ai.evaluation.score.label",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "error.type",
    "otel.status_code",
];

#[tokio::test]
async fn a_run_holds_iterations_which_hold_the_agent_and_the_evaluations() {
    let (spans, _guard) = Spans::capture();
    let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
    let client = ScriptedClient::new()
        .reply(ChatMessage::assistant("draft"), usage(10, 2))
        .reply(ChatMessage::assistant("better"), usage(20, 3));
    let writer = ChatAgent::new("writer", client, ChatAgentOptions::default());
    let judged = evaluate_async_fn("judge", |cx: &LoopContext<'_>| {
        async move {
            cx.run.bill(Usage { input_tokens: 100, output_tokens: 1, ..Usage::default() });
            let done = cx.last.text() == "better";
            Ok(if done { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback("improve") })
        }
        .boxed()
    });
    let guard = evaluate_fn("guard", |_: &LoopContext<'_>| LoopEvaluation::Satisfied);
    let agent = LoopAgent::new("refine", writer, LoopOptions::default()).evaluator(guard).evaluator(judged);

    let response = agent.ask(&mut Session::new(), "write").await.unwrap();

    assert_eq!(response.stop, StopReason::Completed);
    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent refine agent.stop_reason=Completed gen_ai.usage.input_tokens=230 gen_ai.usage.output_tokens=7
      iteration refine#1 agent.iteration=1 agent.stop_reason=Completed agent.loop.decided_by=judge gen_ai.usage.input_tokens=110 gen_ai.usage.output_tokens=3
        invoke_agent writer agent.stop_reason=Completed gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=2
          chat scripted agent.step=1 gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=2
        evaluate guard agent.iteration=1 gen_ai.evaluation.score.label=satisfied
        evaluate judge agent.iteration=1 gen_ai.evaluation.score.label=continue
      iteration refine#2 agent.iteration=2 agent.stop_reason=Completed gen_ai.usage.input_tokens=120 gen_ai.usage.output_tokens=4
        invoke_agent writer agent.stop_reason=Completed gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=3
          chat scripted agent.step=1 gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=3
        evaluate guard agent.iteration=2 gen_ai.evaluation.score.label=satisfied
        evaluate judge agent.iteration=2 gen_ai.evaluation.score.label=satisfied
    ");
}

#[tokio::test]
async fn a_judge_s_model_call_is_inside_its_evaluation() {
    let (spans, _guard) = Spans::capture();
    let usage = Usage { input_tokens: 30, output_tokens: 4, ..Usage::default() };
    let yes = ChatMessage::assistant(r#"{"answered": true, "gap": ""}"#);
    let judge = Judge::new(ScriptedClient::new().reply(yes, usage));
    let agent =
        LoopAgent::new("refine", ScriptedAgent::new("writer").says("draft"), LoopOptions::default()).evaluator(judge);

    agent.ask(&mut Session::new(), "write").await.unwrap();

    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent refine agent.stop_reason=Completed gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=4
      iteration refine#1 agent.iteration=1 agent.stop_reason=Completed gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=4
        invoke_agent writer agent.stop_reason=Completed gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
        evaluate judge agent.iteration=1 gen_ai.evaluation.score.label=satisfied
          chat scripted gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=4
    ");

    let (spans, _guard) = Spans::capture();
    let judge = Judge::new(ScriptedClient::new());
    let agent =
        LoopAgent::new("refine", ScriptedAgent::new("writer").says("draft"), LoopOptions::default()).evaluator(judge);

    agent.ask(&mut Session::new(), "write").await.unwrap_err();

    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent refine gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 error.type=Evaluator otel.status_code=ERROR
      iteration refine#1 agent.iteration=1 error.type=Evaluator otel.status_code=ERROR
        invoke_agent writer agent.stop_reason=Completed gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
        evaluate judge agent.iteration=1 error.type=Evaluator otel.status_code=ERROR
          chat scripted error.type=Contract otel.status_code=ERROR
    ");
}

#[tokio::test]
async fn a_judge_s_model_call_shows_its_service() {
    struct Down;

    impl ChatClient for Down {
        fn model(&self) -> &'static str {
            "down"
        }

        fn provider(&self) -> Option<&str> {
            Some("a service")
        }

        fn stream(&self, _: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
            stream::empty().boxed()
        }
    }

    let (spans, _guard) = Spans::capture();
    let agent = LoopAgent::new("refine", ScriptedAgent::new("writer").says("draft"), LoopOptions::default())
        .evaluator(Judge::new(Down));

    agent.ask(&mut Session::new(), "write").await.unwrap_err();

    assert!(spans.fields().lines().any(|line| line == "chat.gen_ai.provider.name=a service"));
}

#[tokio::test]
async fn nested_loops_nest_their_iterations() {
    let (spans, _guard) = Spans::capture();
    let inner = LoopAgent::new("inner", ScriptedAgent::new("writer").says("a").says("b"), at_most(2))
        .evaluator(evaluate_fn("never", |_: &LoopContext<'_>| LoopEvaluation::again()));
    let outer = LoopAgent::new("outer", inner, at_most(1))
        .evaluator(evaluate_fn("brake", |_: &LoopContext<'_>| LoopEvaluation::Halt("enough".to_owned())));

    outer.ask(&mut Session::new(), "write").await.unwrap();

    insta::assert_snapshot!(spans.tree(&["agent.stop_reason", "agent.loop.decided_by"]), @"
    invoke_agent outer agent.stop_reason=Halted
      iteration outer#1 agent.stop_reason=IterationLimit agent.loop.decided_by=brake
        invoke_agent inner agent.stop_reason=IterationLimit
          iteration inner#1 agent.stop_reason=Completed agent.loop.decided_by=never
            invoke_agent writer agent.stop_reason=Completed
            evaluate never
          iteration inner#2 agent.stop_reason=Completed agent.loop.decided_by=never
            invoke_agent writer agent.stop_reason=Completed
            evaluate never
        evaluate brake
    ");
}

#[tokio::test]
async fn an_evaluator_s_error_is_marked_up_to_the_run() {
    let (spans, _guard) = Spans::capture();
    let broken = evaluate_async_fn("broken", |_: &LoopContext<'_>| {
        async { Err(Error::new(ErrorKind::Evaluator, "ask the judge")) }.boxed()
    });
    let agent =
        LoopAgent::new("refine", ScriptedAgent::new("writer").says("draft"), LoopOptions::default()).evaluator(broken);

    agent.ask(&mut Session::new(), "write").await.unwrap_err();

    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent refine gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 error.type=Evaluator otel.status_code=ERROR
      iteration refine#1 agent.iteration=1 error.type=Evaluator otel.status_code=ERROR
        invoke_agent writer agent.stop_reason=Completed gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
        evaluate broken agent.iteration=1 error.type=Evaluator otel.status_code=ERROR
    ");
}

#[tokio::test]
async fn an_agent_s_error_is_marked_up_to_the_run() {
    let (spans, _guard) = Spans::capture();
    let agent = LoopAgent::new("refine", ScriptedAgent::new("writer"), LoopOptions::default());

    agent.ask(&mut Session::new(), "write").await.unwrap_err();

    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent refine gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 error.type=Contract otel.status_code=ERROR
      iteration refine#1 agent.iteration=1 error.type=Contract otel.status_code=ERROR
        invoke_agent writer gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 error.type=Contract otel.status_code=ERROR
    ");
}

#[tokio::test]
async fn an_interrupted_iteration_says_what_interrupted_it() {
    let (spans, _guard) = Spans::capture();
    let cancelling = evaluate_async_fn("slow", |cx: &LoopContext<'_>| {
        cx.run.cancel().cancel();
        std::future::pending().boxed()
    });
    let agent = LoopAgent::new("refine", ScriptedAgent::new("writer").says("draft"), LoopOptions::default())
        .evaluator(cancelling);

    let response = agent.ask(&mut Session::new(), "write").await.unwrap();

    assert_eq!(response.stop, StopReason::Cancelled);
    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent refine agent.stop_reason=Cancelled gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
      iteration refine#1 agent.iteration=1 agent.stop_reason=Cancelled gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
        invoke_agent writer agent.stop_reason=Completed gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
        evaluate slow agent.iteration=1
    ");
}

/// What evaluators say: what a leak would show.
const SECRETS: [&str; 3] = ["s3cret-fed-back", "s3cret-continued", "s3cret-halted"];

#[tokio::test]
async fn spans_show_no_feedback() {
    let shown = secret_run(RunContext::default()).await;
    assert!(shown.contains("iteration.agent.iteration=3"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn spans_show_the_feedback_if_they_may() {
    let shown = secret_run(RunContext::default().with_content_in_spans()).await;
    let explained: Vec<&str> =
        shown.lines().filter_map(|line| line.strip_prefix("evaluate.gen_ai.evaluation.explanation=")).collect();
    assert_eq!(explained, SECRETS);
}

/// A loop whose texts are all secret, and everything that its spans and events show.
async fn secret_run(cx: RunContext) -> String {
    let (spans, _guard) = Spans::capture();
    let client = ScriptedClient::new().says("s3cret-1").says("s3cret-2").says("s3cret-3");
    let writer = ChatAgent::new("writer", client, ChatAgentOptions::default());
    let verdicts = evaluate_fn("judge", |cx: &LoopContext<'_>| match cx.iteration {
        1 => LoopEvaluation::feedback(SECRETS[0]),
        2 => LoopEvaluation::ContinueWith(vec![ChatMessage::user(SECRETS[1])]),
        _ => LoopEvaluation::Halt(SECRETS[2].to_owned()),
    });
    let options = LoopOptions { context: ContextMode::Fresh, ..LoopOptions::default() };
    let mut session = Session::new();
    session.push("s3cret-prompted");
    let agent = LoopAgent::new("refine", writer, options).evaluator(verdicts);
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().stop, StopReason::Halted);
    spans.fields()
}

fn at_most(iterations: u32) -> LoopOptions {
    LoopOptions { max_iterations: NonZeroU32::new(iterations).unwrap(), ..LoopOptions::default() }
}
