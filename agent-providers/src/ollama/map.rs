//! Requests as Ollama takes them.

use std::collections::HashMap;

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, Content, Format, Reasoning, ReasoningEffort, Result, Role, ToolChoice,
    ToolResult, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::{
    fields::{self, Fields},
    media::base64,
    unsupported::{self, unsupported},
};

/// The service's name.
pub(super) const PROVIDER: &str = "ollama";

/// The whole request. The service is to refuse what does not fit its context, and not to leave out the beginning.
pub(super) fn body(request: &ChatRequest, model: &str) -> Result<Value> {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages(request)?.into());
    // The service has no word for "call none"; who is offered none calls none.
    if !request.tools.is_empty() && request.options.tool_choice != ToolChoice::None {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".into(), true.into());
    body.insert("truncate".into(), false.into());
    body.insert("shift".into(), false.into());
    options(&request.options, &mut body)?;
    Ok(Value::Object(body))
}

fn options(options: &ChatOptions, body: &mut Map<String, Value>) -> Result<()> {
    let ChatOptions {
        model: _,
        temperature,
        top_p,
        max_output_tokens,
        seed,
        stop,
        reasoning,
        tool_choice,
        format,
        cache_prompt: _, // the service caches by itself
        extra,
    } = options;
    match tool_choice {
        ToolChoice::Auto | ToolChoice::None => {}
        ToolChoice::Required => return Err(unsupported(PROVIDER, "the option `tool_choice` as `required`")),
        ToolChoice::Tool(_) => return Err(unsupported(PROVIDER, "the option `tool_choice` with a tool")),
    }
    let mut model_options = Map::new();
    model_options.put("temperature", *temperature);
    model_options.put("top_p", *top_p);
    model_options.put("num_predict", *max_output_tokens);
    model_options.put("seed", *seed);
    model_options.put("stop", (!stop.is_empty()).then(|| stop.clone()));
    body.put("options", (!model_options.is_empty()).then_some(model_options));
    body.put("think", think(*reasoning)?);
    if let Format::JsonSchema { name: _, schema } = format {
        body.insert("format".into(), schema.clone());
    }
    fields::merge(body, extra);
    Ok(())
}

fn think(reasoning: Reasoning) -> Result<Option<Value>> {
    match reasoning {
        Reasoning::Auto => Ok(None),
        Reasoning::Budget(_) => Err(unsupported(PROVIDER, "a `Reasoning::Budget`; set an effort")),
        Reasoning::Effort(ReasoningEffort::None) => Ok(Some(false.into())),
        Reasoning::Effort(ReasoningEffort::Minimal) => {
            Err(unsupported(PROVIDER, "`ReasoningEffort::Minimal`; its least is `Low`"))
        }
        Reasoning::Effort(effort) => Ok(Some(json!(effort))),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, needs_approval: _ } = tool;
    json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    })
}

fn messages(request: &ChatRequest) -> Result<Vec<Value>> {
    let mut messages = Vec::new();
    let mut names = HashMap::new();
    if let Some(instructions) = &request.instructions {
        messages.push(json!({ "role": "system", "content": &**instructions }));
    }
    for message in &*request.messages {
        match message.role {
            Role::System => {
                let text = unsupported::text(PROVIDER, &message.contents, "in a system message")?;
                messages.push(json!({ "role": "system", "content": text }));
            }
            Role::User => messages.push(spoken("user", &message.contents)?),
            Role::Assistant => messages.extend(assistant(message, &mut names)?),
            Role::Tool => {
                for result in message.tool_results() {
                    messages.push(tool_result(result, &names)?);
                }
            }
        }
    }
    Ok(messages)
}

/// Text and images; the service takes nothing else.
fn spoken(role: &str, contents: &[Content]) -> Result<Value> {
    let mut text = String::new();
    let mut images = Vec::new();
    for content in contents {
        match content {
            Content::Text(piece) => text.push_str(piece),
            Content::Data { mime_type, data } if mime_type.starts_with("image/") => images.push(base64(data)),
            other => return Err(unsupported::content(PROVIDER, other)),
        }
    }
    let mut message = json!({ "role": role, "content": text });
    if !images.is_empty() {
        message["images"] = images.into();
    }
    Ok(message)
}

/// The model's own words, thoughts and calls; a message of nothing else is left out.
fn assistant<'a>(message: &'a ChatMessage, names: &mut HashMap<&'a str, &'a str>) -> Result<Option<Value>> {
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut calls = Vec::new();
    let mut call = |id: &'a str, name: &'a str, arguments: &Value| {
        names.insert(id, name);
        calls.push(json!({ "id": id, "function": { "name": name, "arguments": arguments } }));
    };
    for content in &*message.contents {
        match content {
            Content::Text(piece) => text.push_str(piece),
            Content::Reasoning { text: piece, .. } => thinking.push_str(piece),
            Content::ToolCall(tool_call) => call(&tool_call.id, &tool_call.name, &tool_call.arguments),
            Content::InvalidToolCall { id, name, .. } => call(id, name, &json!({})),
            Content::Native { .. } => {}
            other => return Err(unsupported::content(PROVIDER, other)),
        }
    }
    if text.is_empty() && calls.is_empty() {
        return Ok(None);
    }
    let mut written = json!({ "role": "assistant", "content": text });
    if !thinking.is_empty() {
        written["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    Ok(Some(written))
}

/// A result; older versions know it by the tool's name alone.
fn tool_result(result: &ToolResult, names: &HashMap<&str, &str>) -> Result<Value> {
    let text = unsupported::text(PROVIDER, &result.contents, "as a tool's result; let the tool answer with text")?;
    let name = names.get(result.call_id.as_str()).copied().unwrap_or_default();
    Ok(json!({
        "role": "tool", "content": text, "tool_name": name, "tool_call_id": result.call_id,
    }))
}
