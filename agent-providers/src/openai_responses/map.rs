//! Requests as Responses write them.

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, Content, Format, Reasoning, Result, Role, ToolCall, ToolChoice, ToolResult,
    ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::{
    fields::{self, Fields},
    media::data_url,
    schema,
    unsupported::{self, unsupported},
};

/// The service's name.
pub(super) const PROVIDER: &str = "openai-responses";

/// The whole request, to a service of this name. Nothing is stored at the service: the session is here, and thoughts come along encrypted.
pub(super) fn body(request: &ChatRequest, model: &str, service: &str) -> Result<Value> {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    if let Some(instructions) = &request.instructions {
        body.insert("instructions".into(), (&**instructions).into());
    }
    body.insert("input".into(), input(&request.messages, (model, service))?.into());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    if matches!(request.options.reasoning, Reasoning::Effort(_)) || thinks(model) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    options(&request.options, &mut body)?;
    if request.tools.is_empty() && request.options.tool_choice == ToolChoice::None {
        body.remove("tool_choice"); // refused without tools, and true without being said
    }
    Ok(Value::Object(body))
}

/// Whether a model of this name thinks; others refuse to be asked for encrypted thoughts. `extra.include` overrules.
fn thinks(model: &str) -> bool {
    let mut letters = model.chars();
    let o_series = letters.next() == Some('o') && letters.next().is_some_and(|c| c.is_ascii_digit());
    o_series || model.starts_with("gpt-5") && !model.contains("-chat")
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
    for (is_set, what) in [
        (seed.is_some(), "the option `seed`"),
        (!stop.is_empty(), "the option `stop`"),
        (matches!(reasoning, Reasoning::Budget(_)), "a `Reasoning::Budget`; set an effort"),
    ] {
        if is_set {
            return Err(unsupported(PROVIDER, what));
        }
    }
    body.put("temperature", *temperature);
    body.put("top_p", *top_p);
    body.put("max_output_tokens", *max_output_tokens);
    if let Reasoning::Effort(effort) = reasoning {
        body.put("reasoning", Some(json!({ "effort": effort })));
    }
    body.put("tool_choice", choice(tool_choice));
    body.put("text", text_format(format)?);
    fields::merge(body, extra);
    Ok(())
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": name })),
    }
}

fn text_format(format: &Format) -> Result<Option<Value>> {
    let Format::JsonSchema { name, schema } = format else { return Ok(None) };
    let (name, schema) = (schema::name(name), schema::strict(PROVIDER, schema)?);
    Ok(Some(json!({ "format": { "type": "json_schema", "name": name, "schema": schema, "strict": true } })))
}

/// Tools are not `strict`: their schemas are sent as they are, and agents check the arguments.
fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, needs_approval: _ } = tool;
    json!({ "type": "function", "name": name, "description": description, "parameters": parameters, "strict": false })
}

fn input(messages: &[ChatMessage], by: (&str, &str)) -> Result<Vec<Value>> {
    let mut items = Vec::new();
    for message in messages {
        match message.role {
            Role::System => {
                let text = unsupported::text(PROVIDER, &message.contents, "in a system message")?;
                items.push(json!({ "role": "system", "content": text }));
            }
            Role::User => items.push(json!({ "role": "user", "content": parts(&message.contents)? })),
            Role::Assistant => assistant(message, by, &mut items)?,
            Role::Tool => {
                for result in message.tool_results() {
                    items.push(tool_result(result)?);
                }
            }
        }
    }
    Ok(items)
}

fn parts(contents: &[Content]) -> Result<Value> {
    contents.iter().map(part).collect::<Result<Vec<_>>>().map(Value::Array)
}

fn part(content: &Content) -> Result<Value> {
    match content {
        Content::Text(text) => Ok(json!({ "type": "input_text", "text": text })),
        Content::Data { mime_type, data } if mime_type.starts_with("image/") => {
            Ok(json!({ "type": "input_image", "image_url": data_url(mime_type, data), "detail": "auto" }))
        }
        Content::Data { mime_type, data } if mime_type == "application/pdf" => {
            let data = data_url(mime_type, data);
            Ok(json!({ "type": "input_file", "filename": "document.pdf", "file_data": data }))
        }
        Content::Uri { mime_type: Some(mime_type), uri } if mime_type == "application/pdf" => {
            Ok(json!({ "type": "input_file", "file_url": uri }))
        }
        Content::Uri { mime_type, uri } if mime_type.as_ref().is_none_or(|mime| mime.starts_with("image/")) => {
            Ok(json!({ "type": "input_image", "image_url": uri, "detail": "auto" }))
        }
        other => Err(unsupported::content(PROVIDER, other)),
    }
}

/// The model's own items, in their order. Plain thoughts are not sent back, encrypted ones are.
fn assistant(message: &ChatMessage, by: (&str, &str), items: &mut Vec<Value>) -> Result<()> {
    for content in &*message.contents {
        match content {
            Content::Text(text) => {
                // Spelled out: compatible services do not take the short form of the model's own messages.
                let part = json!({ "type": "output_text", "text": text, "annotations": [] });
                items.push(json!({ "type": "message", "role": "assistant", "status": "completed", "content": [part] }));
            }
            Content::ToolCall(call) => items.push(tool_call(call)),
            Content::InvalidToolCall { id, name, .. } => {
                items.push(tool_call(&ToolCall { id: id.clone(), name: name.clone(), arguments: json!({}) }));
            }
            Content::Native { provider, model, value } if (model.as_str(), provider.as_str()) == by => {
                items.extend(replayed(value));
            }
            Content::Native { .. } | Content::Reasoning { .. } => {}
            other => return Err(unsupported::content(PROVIDER, other)),
        }
    }
    Ok(())
}

/// An item of the service's own as it takes it back: thoughts only if they are encrypted, because it stored none.
fn replayed(item: &Value) -> Option<Value> {
    if item["type"] == "reasoning" && item["encrypted_content"].is_null() {
        return None;
    }
    let mut item = item.clone();
    item.as_object_mut()?.retain(|_, value| !value.is_null()); // it refuses the nulls that it sent
    Some(item)
}

fn tool_call(call: &ToolCall) -> Value {
    let ToolCall { id, name, arguments } = call;
    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string() })
}

fn tool_result(result: &ToolResult) -> Result<Value> {
    let output = match &result.contents[..] {
        contents if contents.iter().all(|content| matches!(content, Content::Text(_))) => result.text().into(),
        contents => parts(contents)?,
    };
    Ok(json!({ "type": "function_call_output", "call_id": result.call_id, "output": output }))
}
