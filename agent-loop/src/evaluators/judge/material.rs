//! What a judge is shown.

use agent_core::{ChatMessage, Content, Role};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{LoopContext, text::cut};

/// How many calls of a trace are shown, the newest ones.
const CALLS: usize = 50;
/// How many characters of each result.
const RESULT: usize = 2_000;

/// The material of one verdict, and two markers that occur nowhere in it.
#[derive(Debug)]
pub(super) struct Material {
    /// One JSON document. Strings in JSON end where they end, whatever is in them.
    pub(super) json: String,
    /// What is no text, in the order of the document's numbers.
    pub(super) attachments: Vec<Content>,
    pub(super) done: String,
    pub(super) more: String,
}

/// In the order in which it is read best.
#[derive(Serialize)]
struct Document {
    request: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Value>>,
    answer: Vec<Value>,
}

impl Material {
    pub(super) fn of(cx: &LoopContext<'_>, with_tool_trace: bool) -> Self {
        let mut attachments = Vec::new();
        let request: Vec<Value> = cx.request.iter().flat_map(|message| parts(message, &mut attachments)).collect();
        let mut said = cx.last.events.iter().rev().flat_map(|event| event.messages.iter().rev());
        let answer = said.find(|message| message.role == Role::Assistant && says_something(message));
        let answer = answer.map(|message| parts(message, &mut attachments)).unwrap_or_default();
        let document = Document { request, tool_calls: with_tool_trace.then(|| trace(cx)), answer };
        let json = serde_json::to_string_pretty(&document).expect("strings and JSON values are serializable as JSON");
        let (done, more) = markers(&json);
        Self { json, attachments, done, more }
    }
}

fn says_something(message: &ChatMessage) -> bool {
    message.contents.iter().any(|content| match content {
        Content::Text(text) => !text.is_empty(),
        content => is_attachment(content),
    })
}

fn is_attachment(content: &Content) -> bool {
    match content {
        Content::Data { .. } | Content::Uri { .. } => true,
        Content::Text(_)
        | Content::Reasoning { .. }
        | Content::ToolCall(_)
        | Content::ToolResult(_)
        | Content::InvalidToolCall { .. }
        | Content::Native { .. }
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => false,
    }
}

/// A message's texts as strings, and its other parts as numbers of attachments.
fn parts(message: &ChatMessage, attachments: &mut Vec<Content>) -> Vec<Value> {
    let part = |content: &Content| {
        if let Content::Text(text) = content {
            return Some(Value::from(text.as_str()));
        }
        is_attachment(content).then(|| {
            attachments.push(content.clone());
            json!({ "attachment": attachments.len() })
        })
    };
    message.contents.iter().filter_map(part).collect()
}

/// The calls since the request began, each with its result.
fn trace(cx: &LoopContext<'_>) -> Vec<Value> {
    let messages = cx.session.messages().get(cx.session.turn().start..).unwrap_or_default();
    let mut calls: Vec<(&str, Value)> = Vec::new();
    for content in messages.iter().flat_map(|message| message.contents.iter()) {
        match content {
            Content::ToolCall(call) => {
                calls.push((&call.id, json!({ "tool": call.name, "arguments": call.arguments })));
            }
            Content::ToolResult(result) => {
                let open = |(id, call): &&mut (&str, Value)| *id == result.call_id && call.get("result").is_none();
                if let Some((_, call)) = calls.iter_mut().find(open) {
                    call["result"] = cut(&result.text(), RESULT).into();
                    if result.is_error {
                        call["failed"] = true.into();
                    }
                }
            }
            Content::Text(_)
            | Content::Reasoning { .. }
            | Content::Data { .. }
            | Content::Uri { .. }
            | Content::InvalidToolCall { .. }
            | Content::Native { .. }
            | Content::ApprovalRequest(_)
            | Content::ApprovalResponse { .. } => (),
        }
    }
    let hidden = calls.len().saturating_sub(CALLS);
    calls.into_iter().skip(hidden).map(|(_, call)| call).collect()
}

/// Two texts that are not in the material: whoever quotes it gives no verdict by that.
fn markers(json: &str) -> (String, String) {
    let mut suffix = String::new();
    for n in 2.. {
        let (done, more) = (format!("<<DONE{suffix}>>"), format!("<<MORE{suffix}>>"));
        if !json.contains(&done) && !json.contains(&more) {
            return (done, more);
        }
        suffix = format!("-{n}");
    }
    unreachable!("a document has an end, so it does not hold every marker")
}
