//! About how many tokens something has.

use agent_core::{ChatMessage, ChatRequest, Content};
use serde_json::Value;

/// Bytes of text in a token.
pub(super) const BYTES: u64 = 4;
/// What a message has beside its contents: its role and its borders.
const MESSAGE: u64 = 4;
/// What an image or a file counts, whatever its size.
const ATTACHMENT: u64 = 1_000;

/// All of a request but its messages.
pub(super) fn overhead(request: &ChatRequest) -> u64 {
    let tools = request.tools.iter().map(|tool| text(&tool.name) + text(&tool.description) + json(&tool.parameters));
    request.instructions.as_deref().map_or(0, text) + tools.sum::<u64>()
}

pub(super) fn of_message(message: &ChatMessage) -> u64 {
    MESSAGE + message.contents.iter().map(of_content).sum::<u64>()
}

fn of_content(content: &Content) -> u64 {
    match content {
        Content::Text(part) => text(part),
        Content::Reasoning { text: thoughts, signature } => text(thoughts) + signature.as_deref().map_or(0, text),
        Content::Data { .. } => ATTACHMENT,
        Content::Uri { uri, .. } => text(uri).max(ATTACHMENT),
        Content::ToolCall(call) | Content::ApprovalRequest(call) => {
            text(&call.id) + text(&call.name) + json(&call.arguments)
        }
        Content::ToolResult(result) => text(&result.call_id) + result.contents.iter().map(of_content).sum::<u64>(),
        Content::InvalidToolCall { id, name, raw, .. } => text(id) + text(name) + text(raw),
        Content::Native { value, .. } => json(value),
        Content::ApprovalResponse { call_id, reason, .. } => text(call_id) + reason.as_deref().map_or(0, text),
    }
}

pub(super) fn text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES)
}

fn json(value: &Value) -> u64 {
    text(&value.to_string())
}
