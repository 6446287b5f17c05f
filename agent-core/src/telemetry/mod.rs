//! Spans with the names and attributes of OpenTelemetry's semantic conventions for generative AI
//! (<https://github.com/open-telemetry/semantic-conventions-genai>), and a few of our own under `agent.`: `run`,
//! `step` (which model call of an agent's run), `stop_reason`, and in loops `iteration`.
//!
//! Prompts, answers, arguments and results are in none of them unless
//! [`RunContext::with_content_in_spans`](crate::RunContext::with_content_in_spans) asked for it.

mod content;

use tracing::{Span, field::Empty, info_span};

use crate::{
    ChatClient, ChatRequest, ChatResponse, Error, Format, RunContext, StopReason, ToolCall, ToolOutput, Usage,
};

/// A run on a stored session: what its agent does is inside.
pub(crate) fn run(author: &str, session: &str, cx: &RunContext) -> Span {
    info_span!(
        "run",
        otel.name = %format_args!("run {author}"),
        gen_ai.agent.name = author,
        gen_ai.conversation.id = session,
        agent.run = %cx.id(),
        agent.stop_reason = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// A run of an agent.
pub(crate) fn agent(author: &str, cx: &RunContext) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = %format_args!("invoke_agent {author}"),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = author,
        agent.run = %cx.id(),
        agent.stop_reason = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// A call of a model.
pub(crate) fn chat(client: &dyn ChatClient, step: u32, cx: &RunContext, request: &ChatRequest) -> Span {
    let options = &request.options;
    let model = options.model.as_deref().unwrap_or(client.model());
    let span = info_span!(
        "chat",
        otel.name = %format_args!("chat {model}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = client.provider(),
        gen_ai.request.model = model,
        gen_ai.request.temperature = options.temperature,
        gen_ai.request.top_p = options.top_p,
        gen_ai.request.max_tokens = options.max_output_tokens.map(i64::from),
        gen_ai.request.seed = options.seed.map(int),
        gen_ai.output.type = matches!(options.format, Format::JsonSchema { .. }).then_some("json"),
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        gen_ai.system_instructions = Empty,
        gen_ai.tool.definitions = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        agent.step = i64::from(step),
        agent.stop_reason = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    if cx.shows_content() && !span.is_disabled() {
        span.record("gen_ai.system_instructions", request.instructions.as_deref().map(content::instructions));
        span.record("gen_ai.tool.definitions", (!request.tools.is_empty()).then(|| content::tools(&request.tools)));
        span.record("gen_ai.input.messages", content::messages(&request.messages));
    }
    span
}

/// A call of a tool.
pub(crate) fn tool(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {}", call.name),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.type = "function",
        gen_ai.tool.call.id = call.id,
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        agent.stop_reason = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

pub(crate) fn tokens(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", int(usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", int(usage.output_tokens));
}

/// The numbers of OpenTelemetry are signed; `tracing-opentelemetry` exports any other as a text.
fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn stopped(span: &Span, stop: StopReason) {
    span.record("agent.stop_reason", tracing::field::debug(stop));
}

/// Marks the span as failed. Of the error it shows the kind: its text may quote what was said.
pub(crate) fn failed(span: &Span, error: &Error) {
    span.record("error.type", tracing::field::debug(error.kind()));
    span.record("otel.status_code", "ERROR");
}

pub(crate) fn answered(span: &Span, cx: &RunContext, answer: &ChatResponse) {
    if span.is_disabled() {
        return;
    }
    tokens(span, answer.usage);
    span.record("gen_ai.usage.cache_read.input_tokens", int(answer.usage.cached_input_tokens));
    span.record("gen_ai.usage.reasoning.output_tokens", int(answer.usage.reasoning_tokens));
    span.record("gen_ai.response.model", &answer.model);
    // The conventions have a list here, and a span of `tracing` takes none; it would have one item.
    span.record("gen_ai.response.finish_reasons", content::finish_reason(answer));
    if cx.shows_content() {
        span.record("gen_ai.output.messages", content::answer(answer));
    }
}

pub(crate) fn called(span: &Span, cx: &RunContext, call: &ToolCall, output: &ToolOutput) {
    if span.is_disabled() {
        return;
    }
    if output.is_error {
        span.record("error.type", "tool_error");
        span.record("otel.status_code", "ERROR");
    }
    if cx.shows_content() {
        span.record("gen_ai.tool.call.arguments", call.arguments.to_string());
        span.record("gen_ai.tool.call.result", content::result(&output.contents));
    }
}
