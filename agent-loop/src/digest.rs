//! A stable hash of what an iteration said and did.

use agent_core::{AgentResponse, Content, Role};
use serde_json::Value;
use xxhash_rust::xxh64::Xxh64;

/// The hash (XXH64) of the texts, data and calls of a run's assistant messages, without ids and thoughts. The order of
/// the keys in arguments does not matter. `begun` is the digest of what the same pass did before it was interrupted.
pub(crate) fn digest(begun: Option<u64>, response: &AgentResponse) -> u64 {
    let mut hash = Xxh64::new(begun.unwrap_or_default());
    for message in response.messages().filter(|message| message.role == Role::Assistant) {
        message.contents.iter().for_each(|content| add(&mut hash, content));
    }
    hash.digest()
}

fn add(hash: &mut Xxh64, content: &Content) {
    match content {
        Content::Text(text) => part(hash, b't', text.as_bytes()),
        Content::Data { mime_type, data } => {
            part(hash, b'd', mime_type.as_bytes());
            part(hash, b'd', data);
        }
        Content::Uri { uri, .. } => part(hash, b'u', uri.as_bytes()),
        Content::ToolCall(call) => {
            part(hash, b'c', call.name.as_bytes());
            let mut arguments = call.arguments.clone();
            arguments.sort_all_objects();
            part(hash, b'a', arguments.to_string().as_bytes());
        }
        Content::InvalidToolCall { name, raw, .. } => {
            part(hash, b'c', name.as_bytes());
            part(hash, b'r', raw.as_bytes());
        }
        Content::Native { value, .. } if !value.is_null() => native(hash, value),
        Content::Native { .. }
        | Content::Reasoning { .. }
        | Content::ToolResult(_)
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => (),
    }
}

/// A service's own items carry ids and thoughts, so only their kind counts.
fn native(hash: &mut Xxh64, value: &Value) {
    if let Some(kind) = value.get("type").and_then(Value::as_str) {
        part(hash, b'n', kind.as_bytes());
    }
}

/// A tagged part with its length, so that no two lists of parts are the same bytes.
fn part(hash: &mut Xxh64, tag: u8, bytes: &[u8]) {
    let mut head = [tag; 9];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    hash.update(&head);
    hash.update(bytes);
}
