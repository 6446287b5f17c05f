//! The conversation as generateContent takes it.

use std::collections::HashMap;

use agent_core::{ChatMessage, Content, Result, Role, ToolResult};
use serde_json::{Map, Value, json};

use super::map::PROVIDER;
use crate::{
    media::base64,
    orders::GO_ON,
    unsupported::{self, unsupported},
};

/// The signature of a call that Gemini did not make, such as one in a history of another service.
///
/// Source: <https://ai.google.dev/gemini-api/docs/thought-signatures>, its list of questions.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The messages' contents. Results of parallel calls are one.
pub(super) fn of(messages: &[ChatMessage], by: (&str, &str)) -> Result<Vec<Value>> {
    let mut contents: Vec<(Role, Vec<Value>)> = Vec::new();
    let mut names = HashMap::new();
    for message in messages {
        let parts = match message.role {
            Role::System => continue, // beside the conversation
            Role::User => {
                message.contents.iter().filter_map(|content| part(content).transpose()).collect::<Result<_>>()?
            }
            Role::Assistant => assistant(message, by, &mut names)?,
            Role::Tool => message.tool_results().map(|result| tool_result(result, &names)).collect::<Result<_>>()?,
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some((Role::Tool, results)) if message.role == Role::Tool => results.extend(parts),
            _ => contents.push((message.role, parts)),
        }
    }
    if contents.last().is_none_or(|(role, _)| *role == Role::Assistant) {
        contents.push((Role::User, vec![json!({ "text": GO_ON })]));
    }
    let written =
        |(role, parts)| json!({ "role": if role == Role::Assistant { "model" } else { "user" }, "parts": parts });
    Ok(contents.into_iter().map(written).collect())
}

fn part(content: &Content) -> Result<Option<Value>> {
    Ok(Some(match content {
        Content::Text(text) if text.is_empty() => return Ok(None),
        Content::Text(text) => json!({ "text": text }),
        Content::Data { mime_type, data } => json!({ "inlineData": { "mimeType": mime_type, "data": base64(data) } }),
        Content::Uri { mime_type: Some(mime_type), uri } => {
            json!({ "fileData": { "mimeType": mime_type, "fileUri": uri } })
        }
        Content::Uri { mime_type: None, uri } => json!({ "fileData": { "fileUri": uri } }),
        other => return Err(unsupported::content(PROVIDER, other)),
    }))
}

/// The model's own words and calls, in their order. A native item is a part as it came, or the signature of the part
/// behind it. Readable thoughts are not sent back.
fn assistant<'a>(
    message: &'a ChatMessage,
    by: (&str, &str),
    names: &mut HashMap<&'a str, &'a str>,
) -> Result<Vec<Value>> {
    let mut parts = Vec::new();
    let mut signature = None;
    let mut called = false;
    for content in &*message.contents {
        let mut part = match content {
            Content::Native { provider, model, value } if (model.as_str(), provider.as_str()) == by => {
                match lone_signature(value) {
                    Some(value) => signature = Some(value.clone()),
                    None => parts.push(value.clone()),
                }
                continue;
            }
            Content::Native { .. } | Content::Reasoning { .. } => continue,
            Content::ToolCall(call) => {
                let name = named(&call.name);
                names.insert(&call.id, name);
                function_call(&call.id, name, &call.arguments)
            }
            Content::InvalidToolCall { id, name, .. } => {
                let name = named(name);
                names.insert(id, name);
                function_call(id, name, &json!({}))
            }
            other => match part(other)? {
                Some(part) => part,
                None => continue,
            },
        };
        if part.get("functionCall").is_some() {
            // Only the first of parallel calls is signed.
            if !called && signature.is_none() && demands_signatures(by.0) {
                signature = Some(FOREIGN_SIGNATURE.into());
            }
            called = true;
        }
        if let Some(signature) = signature.take() {
            part["thoughtSignature"] = signature;
        }
        parts.push(part);
    }
    Ok(parts)
}

/// The signature that a part lost when it became a content of ours.
fn lone_signature(value: &Value) -> Option<&Value> {
    value.as_object().filter(|item| item.len() == 1)?.get("thoughtSignature")
}

/// Whether the service refuses this model's calls without a signature: Gemini 3 and later.
fn demands_signatures(model: &str) -> bool {
    let version = model.rsplit('/').next().unwrap_or(model).strip_prefix("gemini-");
    let major =
        version.and_then(|version| version.split(['-', '.']).next()).and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 3)
}

/// The service refuses a call without a name, which a model may have made all the same.
fn named(name: &str) -> &str {
    if name.is_empty() { "unnamed" } else { name }
}

fn function_call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "functionCall": { "id": id, "name": name, "args": arguments } })
}

/// A result, under the name of its call. Text is in the object that the service demands; the rest is beside it.
fn tool_result(result: &ToolResult, names: &HashMap<&str, &str>) -> Result<Value> {
    let Some(name) = names.get(result.call_id.as_str()) else {
        return Err(unsupported(PROVIDER, &format!("a result of the unknown call `{}`", result.call_id)));
    };
    let mut media = Vec::new();
    for content in &result.contents {
        match content {
            Content::Text(_) => {}
            Content::Data { .. } | Content::Uri { .. } => media.extend(part(content)?),
            other => return Err(unsupported::content(PROVIDER, other)),
        }
    }
    let key = if result.is_error { "error" } else { "output" };
    let response = Map::from_iter([(key.to_owned(), Value::from(result.text()))]);
    let mut written = json!({ "id": result.call_id, "name": name, "response": response });
    if !media.is_empty() {
        written["parts"] = media.into();
    }
    Ok(json!({ "functionResponse": written }))
}
