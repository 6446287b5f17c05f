//! What an answer says, in terms that both crates have.

use std::collections::BTreeMap;

use agent_core::{ChatResponse, Content};
use rig_core::{completion::CompletionResponse, message::AssistantContent};
use serde_json::{Value, json};

/// What each fact is about, and its value; a count that is not reported is none.
pub(crate) type Facts = BTreeMap<&'static str, Value>;

pub(crate) fn of_ours(response: &ChatResponse) -> Facts {
    let thoughts = response.message.contents.iter().filter_map(|content| match content {
        Content::Reasoning { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let calls = response.message.tool_calls().map(|call| json!([call.name, call.arguments]));
    let usage = &response.usage;
    facts([
        ("text", Some(json!(response.message.text()))),
        ("thoughts", Some(json!(thoughts.collect::<String>()))),
        ("calls", Some(calls.collect())),
        ("input tokens", Some(json!(usage.input_tokens))),
        ("output tokens", Some(json!(usage.output_tokens))),
        ("cached tokens", Some(json!(usage.cached_input_tokens))),
        ("reasoning tokens", Some(json!(usage.reasoning_tokens))),
    ])
}

pub(crate) fn of_rigs(response: &CompletionResponse) -> Facts {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for content in &response.choice {
        match content {
            AssistantContent::Text(part) => text.push_str(&part.text),
            AssistantContent::Reasoning(part) => thoughts.push_str(&part.text),
            AssistantContent::ToolCall(call) => calls.push(json!([call.function.name, call.function.arguments])),
            _ => {}
        }
    }
    let usage = &response.usage;
    facts([
        ("text", Some(json!(text))),
        ("thoughts", Some(json!(thoughts))),
        ("calls", Some(json!(calls))),
        ("input tokens", usage.input_tokens.map(Value::from)),
        ("output tokens", usage.output_tokens.map(Value::from)),
        ("cached tokens", usage.cached_input_tokens.map(Value::from)),
        ("reasoning tokens", usage.reasoning_tokens.map(Value::from)),
    ])
}

fn facts(facts: [(&'static str, Option<Value>); 7]) -> Facts {
    facts.into_iter().filter_map(|(what, value)| Some((what, value?))).collect()
}
