//! Spans of iterations and evaluations; see [`RunContext::with_content_in_spans`] for what they may show.

use agent_core::{ChatClient, ChatMessage, Error, Result, RunContext, StopReason, Usage};
use tracing::{Span, field::Empty, info_span};

use crate::{Interrupted, LoopEvaluation, Verdict};

/// An iteration of a loop: the inner agent's run and its evaluations are inside.
pub(crate) fn iteration(name: &str, iteration: u32) -> Span {
    info_span!(
        "iteration",
        otel.name = %format_args!("iteration {name}#{iteration}"),
        agent.loop.name = name,
        agent.iteration = i64::from(iteration),
        agent.stop_reason = Empty,
        agent.loop.decided_by = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Tells how an iteration went: how the inner run ended, or what interrupted it, and who decided.
pub(crate) fn iterated(span: &Span, stop: StopReason, usage: Usage, by: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    span.record("agent.stop_reason", tracing::field::debug(stop));
    span.record("agent.loop.decided_by", by);
    tokens(span, usage);
}

pub(crate) fn tokens(span: &Span, usage: Usage) {
    // The numbers of OpenTelemetry are signed; `tracing-opentelemetry` exports any other as a text.
    let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    span.record("gen_ai.usage.input_tokens", int(usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", int(usage.output_tokens));
}

/// A call of a model beside the agent's own.
pub(crate) fn chat(client: &dyn ChatClient, model: &str) -> Span {
    info_span!(
        "chat",
        otel.name = %format_args!("chat {model}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = client.provider(),
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        agent.stop_reason = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Marks the span as failed. Of the error it shows the kind: its text may quote what was said. An interruption is no
/// failure.
pub(crate) fn failed(span: &Span, error: &Error) {
    if let Some(stop) = Interrupted::of(error) {
        span.record("agent.stop_reason", tracing::field::debug(stop));
        return;
    }
    span.record("error.type", tracing::field::debug(error.kind()));
    span.record("otel.status_code", "ERROR");
}

/// An evaluator's look at an iteration.
pub(crate) fn evaluation(evaluator: &str, iteration: u32) -> Span {
    info_span!(
        "evaluate",
        otel.name = %format_args!("evaluate {evaluator}"),
        gen_ai.evaluation.name = evaluator,
        gen_ai.evaluation.score.label = Empty,
        gen_ai.evaluation.explanation = Empty,
        agent.stop_reason = Empty,
        agent.iteration = i64::from(iteration),
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Tells the verdict, and its words if they may be shown.
pub(crate) fn evaluated(span: &Span, cx: &RunContext, verdict: &Result<Verdict>) {
    if span.is_disabled() {
        return;
    }
    let evaluation = match verdict {
        Ok(verdict) => &verdict.evaluation,
        Err(error) => return failed(span, error),
    };
    let label = match evaluation {
        LoopEvaluation::Satisfied => "satisfied",
        LoopEvaluation::Continue(_) | LoopEvaluation::ContinueWith(_) => "continue",
        LoopEvaluation::Halt(_) => "halt",
    };
    span.record("gen_ai.evaluation.score.label", label);
    if cx.shows_content() {
        span.record("gen_ai.evaluation.explanation", words(evaluation));
    }
}

fn words(evaluation: &LoopEvaluation) -> Option<String> {
    match evaluation {
        LoopEvaluation::Satisfied => None,
        LoopEvaluation::Continue(feedback) => feedback.clone(),
        LoopEvaluation::ContinueWith(messages) => {
            Some(messages.iter().map(ChatMessage::text).collect::<Vec<_>>().join("\n"))
        }
        LoopEvaluation::Halt(why) => Some(why.clone()),
    }
}
