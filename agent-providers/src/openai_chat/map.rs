//! Requests as Chat Completions write them.

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, Content, Format, Reasoning, Result, Role, ToolCall, ToolChoice, ToolResult,
    ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::{
    fields::{self, Fields},
    media::{base64, data_url},
    orders::GO_ON,
    unsupported::{self, unsupported},
};

/// Which of the two: they name the output limit differently, and only OpenAI has a dialect of JSON Schema of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavor {
    OpenAi,
    Compatible,
}

impl Flavor {
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Compatible => "openai-compatible",
        }
    }

    /// The base URL of the service's own place, if there is one.
    pub(super) fn place(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Compatible => None,
        }
    }
}

/// The whole request, to a service of this name.
pub(super) fn body(request: &ChatRequest, model: &str, flavor: Flavor, service: &str) -> Result<Value> {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages(request, (model, service), flavor)?.into());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    options(&request.options, flavor, &mut body)?;
    if request.tools.is_empty() && request.options.tool_choice == ToolChoice::None {
        body.remove("tool_choice"); // refused without tools, and true without being said
    }
    Ok(Value::Object(body))
}

fn options(options: &ChatOptions, flavor: Flavor, body: &mut Map<String, Value>) -> Result<()> {
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
        cache_prompt: _, // these services cache by themselves
        extra,
    } = options;
    body.put("temperature", *temperature);
    body.put("top_p", *top_p);
    body.put("seed", *seed);
    body.put("stop", (!stop.is_empty()).then(|| stop.clone()));
    let limit = match flavor {
        Flavor::OpenAi => "max_completion_tokens",
        Flavor::Compatible => "max_tokens",
    };
    body.put(limit, *max_output_tokens);
    match reasoning {
        Reasoning::Auto => {}
        Reasoning::Effort(effort) => body.put("reasoning_effort", Some(json!(effort))),
        Reasoning::Budget(_) => return Err(unsupported(flavor.provider(), "a `Reasoning::Budget`; set an effort")),
    }
    body.put("tool_choice", choice(tool_choice));
    body.put("response_format", response_format(format, flavor)?);
    fields::merge(body, extra);
    Ok(())
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

fn response_format(format: &Format, flavor: Flavor) -> Result<Option<Value>> {
    let Format::JsonSchema { name, schema } = format else { return Ok(None) };
    let name = crate::schema::name(name);
    let format = match flavor {
        Flavor::OpenAi => {
            json!({ "name": name, "schema": crate::schema::strict(flavor.provider(), schema)?, "strict": true })
        }
        Flavor::Compatible => json!({ "name": name, "schema": schema }),
    };
    Ok(Some(json!({ "type": "json_schema", "json_schema": format })))
}

fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, needs_approval: _ } = tool;
    json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    })
}

fn messages(request: &ChatRequest, by: (&str, &str), flavor: Flavor) -> Result<Vec<Value>> {
    let mut messages = Vec::new();
    if let Some(instructions) = &request.instructions {
        messages.push(json!({ "role": "system", "content": &**instructions }));
    }
    for message in &*request.messages {
        match message.role {
            Role::System => {
                let text = unsupported::text(flavor.provider(), &message.contents, "in a system message")?;
                messages.push(json!({ "role": "system", "content": text }));
            }
            Role::User => messages.push(json!({ "role": "user", "content": parts(&message.contents, flavor)? })),
            Role::Assistant => messages.extend(assistant(message, by, flavor)?),
            Role::Tool => {
                for result in message.tool_results() {
                    messages.push(tool_result(result, flavor)?);
                }
            }
        }
    }
    // Local servers take an assistant's last message for the beginning of their own, and refuse two of them.
    let agents_spoke_last = messages.last().is_some_and(|message| message["role"] == "assistant");
    if flavor == Flavor::Compatible && agents_spoke_last {
        messages.push(json!({ "role": "user", "content": GO_ON }));
    }
    Ok(messages)
}

/// The caller's words: a string where that is all, as every compatible service takes it.
fn parts(contents: &[Content], flavor: Flavor) -> Result<Value> {
    if let [Content::Text(text)] = contents {
        return Ok(text.as_str().into());
    }
    contents.iter().map(|content| part(content, flavor)).collect::<Result<Vec<_>>>().map(Value::Array)
}

fn part(content: &Content, flavor: Flavor) -> Result<Value> {
    match content {
        Content::Text(text) => Ok(json!({ "type": "text", "text": text })),
        Content::Data { mime_type, data } => data_part(mime_type, data, flavor),
        Content::Uri { mime_type, uri } if mime_type.as_ref().is_none_or(|mime| mime.starts_with("image/")) => {
            Ok(json!({ "type": "image_url", "image_url": { "url": uri } }))
        }
        other => Err(unsupported::content(flavor.provider(), other)),
    }
}

fn data_part(mime_type: &str, data: &[u8], flavor: Flavor) -> Result<Value> {
    match mime_type {
        "audio/wav" | "audio/x-wav" => {
            Ok(json!({ "type": "input_audio", "input_audio": { "data": base64(data), "format": "wav" } }))
        }
        "audio/mpeg" | "audio/mp3" => {
            Ok(json!({ "type": "input_audio", "input_audio": { "data": base64(data), "format": "mp3" } }))
        }
        "application/pdf" => Ok(
            json!({ "type": "file", "file": { "filename": "document.pdf", "file_data": data_url(mime_type, data) } }),
        ),
        image if image.starts_with("image/") => {
            Ok(json!({ "type": "image_url", "image_url": { "url": data_url(mime_type, data) } }))
        }
        other => Err(unsupported(flavor.provider(), &format!("content of type `{other}`"))),
    }
}

/// The model's own words and calls. Plain thoughts are not sent back; a message of nothing else is left out.
fn assistant(message: &ChatMessage, by: (&str, &str), flavor: Flavor) -> Result<Option<Value>> {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut native = Map::new();
    for content in &*message.contents {
        match content {
            Content::Text(piece) => text.push_str(piece),
            Content::ToolCall(call) => calls.push(tool_call(call)),
            Content::InvalidToolCall { id, name, .. } => {
                calls.push(tool_call(&ToolCall { id: id.clone(), name: name.clone(), arguments: json!({}) }));
            }
            Content::Native { provider, model, value } if (model.as_str(), provider.as_str()) == by => {
                native.extend(value.as_object().cloned().unwrap_or_default());
            }
            Content::Native { .. } | Content::Reasoning { .. } => {}
            other => return Err(unsupported::content(flavor.provider(), other)),
        }
    }
    if text.is_empty() && calls.is_empty() {
        return Ok(None);
    }
    let mut written = json!({ "role": "assistant", "content": (!text.is_empty()).then_some(text) });
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    if let Value::Object(written) = &mut written {
        written.extend(native);
    }
    Ok(Some(written))
}

fn tool_call(call: &ToolCall) -> Value {
    let ToolCall { id, name, arguments } = call;
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })
}

fn tool_result(result: &ToolResult, flavor: Flavor) -> Result<Value> {
    let text =
        unsupported::text(flavor.provider(), &result.contents, "as a tool's result; let the tool answer with text")?;
    Ok(json!({ "role": "tool", "tool_call_id": result.call_id, "content": text }))
}
