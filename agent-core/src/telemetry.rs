//! Spans with the names and attributes of OpenTelemetry's semantic conventions for generative AI, and a few of our
//! own under `agent.`: `step` (which model call of a run), `stop_reason`, and in loops `iteration`.
//!
//! Prompts, answers, arguments and results are in none of them unless
//! [`RunContext::with_content_in_spans`](crate::RunContext::with_content_in_spans) asked for it.

use std::error::Error as StdError;

use tracing::{Span, field::Empty, info_span};

use crate::{ChatRequest, ChatResponse, Content, Error, RunContext, StopReason, ToolCall, ToolOutput, Usage};

/// A run of an agent.
pub(crate) fn run(author: &str, cx: &RunContext) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = %format_args!("invoke_agent {author}"),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = author,
        gen_ai.conversation.id = Empty,
        agent.run = %cx.id(),
        agent.stop_reason = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// A call of a model.
pub(crate) fn chat(model: &str, step: u32) -> Span {
    info_span!(
        "chat",
        otel.name = %format_args!("chat {model}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        agent.step = step,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// A call of a tool.
pub(crate) fn tool(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {}", call.name),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = call.id,
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        agent.stop_reason = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

pub(crate) fn tokens(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

pub(crate) fn stopped(span: &Span, stop: StopReason) {
    span.record("agent.stop_reason", tracing::field::debug(stop));
}

pub(crate) fn failed(span: &Span, error: &Error) {
    span.record("error.type", tracing::field::debug(error.kind()));
    span.record("otel.status_code", "ERROR");
}

pub(crate) fn asked(span: &Span, cx: &RunContext, request: &ChatRequest) {
    if cx.shows_content() && !span.is_disabled() {
        span.record("gen_ai.input.messages", json(&request.messages));
    }
}

pub(crate) fn answered(span: &Span, cx: &RunContext, answer: &ChatResponse) {
    if span.is_disabled() {
        return;
    }
    tokens(span, answer.usage);
    span.record("gen_ai.response.model", &answer.model);
    span.record("gen_ai.response.finish_reasons", tracing::field::debug(answer.stop));
    span.record("gen_ai.usage.cache_read.input_tokens", answer.usage.cached_input_tokens);
    if cx.shows_content() {
        span.record("gen_ai.output.messages", json(&answer.message));
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
        let texts = output.contents.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        span.record("gen_ai.tool.call.result", texts.collect::<String>());
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| (&error as &dyn StdError).to_string())
}
