//! The normal form of a request: what two requests have in common that ask the same.

use std::collections::HashMap;

use agent_core::{ChatOptions, ChatRequest};
use serde_json::{Map, Value};
use similar::TextDiff;

use super::redact;

/// A request without what does not matter: defaults and empty fields are left out, call ids are numbered in their
/// order, keys are blotted out, fields are sorted. So a cassette outlives new options and a service's random ids.
pub(super) fn form(request: &ChatRequest, model: &str) -> serde_json::Result<Value> {
    let mut form = serde_json::to_value(request)?;
    let defaults = serde_json::to_value(ChatOptions::default())?;
    if let Some(options) = form["options"].as_object_mut() {
        options.retain(|key, value| *value != defaults[key]);
        if options.get("model").is_some_and(|asked| asked == model) {
            options.remove("model"); // part of the key by itself
        }
        if let Some(extra) = options.get_mut("extra").and_then(Value::as_object_mut) {
            redact::fields(extra);
        }
    }
    number_calls(&mut form["messages"]);
    redact::strings(&mut form);
    if let Some(form) = form.as_object_mut() {
        form.retain(|_, value| !is_empty(value));
    }
    Ok(form)
}

/// How `asked` differs from `recorded`, as a diff of their JSON.
pub(super) fn diff(recorded: &Value, asked: &Value) -> String {
    let (recorded, asked) = (pretty(recorded), pretty(asked));
    let diff = TextDiff::from_lines(&recorded, &asked);
    diff.unified_diff().context_radius(2).header("recorded", "asked").to_string()
}

/// How alike two requests are: 0 to 1.
pub(super) fn likeness(a: &Value, b: &Value) -> f32 {
    TextDiff::from_lines(&pretty(a), &pretty(b)).ratio()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn number_calls(messages: &mut Value) {
    let mut numbers = HashMap::new();
    let contents = messages.as_array_mut().into_iter().flatten();
    let contents = contents.filter_map(|message| message["contents"].as_array_mut()).flatten();
    for content in contents.filter_map(Value::as_object_mut) {
        let id = |content: &mut Map<String, Value>, kind: &str, id: &str| content.get_mut(kind)?.get_mut(id).cloned();
        for (kind, field) in [("tool_call", "id"), ("invalid_tool_call", "id"), ("tool_result", "call_id")] {
            if let Some(Value::String(old)) = id(content, kind, field) {
                let next = numbers.len() + 1;
                let number = *numbers.entry(old).or_insert(next);
                content[kind][field] = format!("call_{number}").into();
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
