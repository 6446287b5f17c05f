//! The conversation as Messages take it: users and the model in turns.

use std::collections::{HashMap, HashSet};

use agent_core::{ChatMessage, Content, Result, Role, ToolResult};
use serde_json::{Value, json};

use super::map::PROVIDER;
use crate::{
    media::base64,
    orders::GO_ON,
    unsupported::{self, unsupported},
};

/// The conversation so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    said: Vec<Turn>,
    /// The ids of calls as the service gets them: it refuses one that comes twice, and most characters.
    sent_ids: HashSet<String>,
    ids: HashMap<String, String>,
}

#[derive(Debug)]
struct Turn {
    role: &'static str,
    content: Vec<Value>,
}

impl Turns {
    /// The messages' turns; those of several results, and of results and words, are one.
    ///
    /// The model never has two turns in a row, nor the last one, so that a conversation that grows keeps its beginning,
    /// to which signed thoughts are bound.
    pub(super) fn of(messages: &[ChatMessage], by: (&str, &str)) -> Result<Vec<Value>> {
        let mut turns = Self::default();
        for message in messages {
            match message.role {
                Role::System => {} // beside the conversation
                Role::User => {
                    let content = message.contents.iter().filter_map(|content| part(content).transpose());
                    turns.say("user", content.collect::<Result<_>>()?);
                }
                Role::Assistant => {
                    let content = turns.assistant(message, by)?;
                    turns.say("assistant", content);
                }
                Role::Tool => {
                    let results = message.tool_results().map(|result| turns.result(result));
                    let results = results.collect::<Result<_>>()?;
                    turns.say("user", results);
                }
            }
        }
        if turns.said.last().is_none_or(|turn| turn.role == "assistant") {
            turns.go_on();
        }
        Ok(turns.said.into_iter().map(|turn| json!({ "role": turn.role, "content": turn.content })).collect())
    }

    fn say(&mut self, role: &'static str, content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        match self.said.last_mut() {
            Some(last) if last.role == role && role == "user" => last.content.extend(content),
            last => {
                if role == "assistant" && last.is_none_or(|last| last.role == "assistant") {
                    self.go_on();
                }
                self.said.push(Turn { role, content });
            }
        }
    }

    fn go_on(&mut self) {
        self.said.push(Turn { role: "user", content: vec![text(GO_ON)] });
    }

    /// The model's own words, calls and thoughts, in their order. Thoughts without a proof are not sent back.
    fn assistant(&mut self, message: &ChatMessage, by: (&str, &str)) -> Result<Vec<Value>> {
        let mut blocks = Vec::new();
        for content in &*message.contents {
            match content {
                Content::ToolCall(call) => {
                    blocks.push(self.tool_use(&call.id, &call.name, &call.arguments));
                }
                Content::InvalidToolCall { id, name, .. } => {
                    blocks.push(self.tool_use(id, name, &json!({})));
                }
                Content::Reasoning { text, signature: Some(signature) } => {
                    blocks.push(json!({ "type": "thinking", "thinking": text, "signature": signature }));
                }
                Content::Native { provider, model, value } if (model.as_str(), provider.as_str()) == by => {
                    blocks.push(value.clone());
                }
                Content::Native { .. } | Content::Reasoning { .. } => {}
                Content::Text(_) => blocks.extend(part(content)?),
                other => return Err(unsupported::content(PROVIDER, other)),
            }
        }
        Ok(blocks)
    }

    fn tool_use(&mut self, id: &str, name: &str, input: &Value) -> Value {
        // A name that is none of the tools' still has to look like one.
        let name = if name.is_empty() { "unnamed".into() } else { clean(name) };
        json!({ "type": "tool_use", "id": self.new_id(id), "name": name, "input": input })
    }

    fn result(&self, result: &ToolResult) -> Result<Value> {
        let contents = result.contents.iter().map(|content| match content {
            Content::Text(_) | Content::Data { .. } | Content::Uri { .. } => part(content),
            other => Err(unsupported::content(PROVIDER, other)),
        });
        let contents = contents.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        let id = self.ids.get(&result.call_id).cloned().unwrap_or_else(|| clean(&result.call_id));
        let mut block = json!({ "type": "tool_result", "tool_use_id": id });
        if !contents.is_empty() {
            block["content"] = contents.into();
        }
        if result.is_error {
            block["is_error"] = true.into();
        }
        Ok(block)
    }

    /// What the service knows a call by from here on, and its result.
    fn new_id(&mut self, id: &str) -> String {
        let clean = if id.is_empty() { "call".to_owned() } else { clean(id) };
        let again = (2..).map(|n| format!("{clean}_{n}"));
        let new = std::iter::once(clean.clone()).chain(again).find(|id| !self.sent_ids.contains(id));
        let new = new.expect("numbers do not run out");
        self.sent_ids.insert(new.clone());
        self.ids.insert(id.to_owned(), new.clone());
        new
    }
}

/// Names and ids as the service takes them: letters, digits, `_` and `-`.
fn clean(word: &str) -> String {
    word.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A part of somebody's words; none for a blank text, which the service refuses.
fn part(content: &Content) -> Result<Option<Value>> {
    let part = match content {
        Content::Text(blank) if blank.trim().is_empty() => return Ok(None),
        Content::Text(words) => text(words),
        Content::Data { mime_type, data } => json!({ "type": kind(mime_type)?, "source": source(mime_type, data)? }),
        Content::Uri { mime_type, uri } => {
            let kind = mime_type.as_deref().map_or(Ok("image"), kind)?;
            if mime_type.as_deref() == Some("text/plain") {
                return Err(unsupported::content(PROVIDER, content));
            }
            json!({ "type": kind, "source": { "type": "url", "url": uri } })
        }
        other => return Err(unsupported::content(PROVIDER, other)),
    };
    Ok(Some(part))
}

fn source(mime_type: &str, data: &[u8]) -> Result<Value> {
    if mime_type != "text/plain" {
        return Ok(json!({ "type": "base64", "media_type": mime_type, "data": base64(data) }));
    }
    let text = std::str::from_utf8(data).map_err(|_| unsupported(PROVIDER, "a text that is not UTF-8"))?;
    Ok(json!({ "type": "text", "media_type": mime_type, "data": text }))
}

fn kind(mime_type: &str) -> Result<&'static str> {
    match mime_type {
        "application/pdf" | "text/plain" => Ok("document"),
        image if image.starts_with("image/") => Ok("image"),
        other => Err(unsupported(PROVIDER, &format!("content of type `{other}`"))),
    }
}
