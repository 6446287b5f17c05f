//! A stable hash of what an iteration said and did.

use agent_core::{AgentResponse, Content, Role};
use serde_json::Value;
use xxhash_rust::xxh64::xxh64;

/// The hash of the texts, data and calls of a run's assistant messages, without ids and thoughts: the XXH64 of each part,
/// seeded with the one before. The order of the keys in arguments does not matter. `begun` is the digest of what the same
/// pass did before it was interrupted.
pub(crate) fn digest(begun: Option<u64>, response: &AgentResponse) -> u64 {
    let said = response.messages().filter(|message| message.role == Role::Assistant);
    said.flat_map(|message| message.contents.iter()).fold(begun.unwrap_or_default(), add)
}

fn add(hash: u64, content: &Content) -> u64 {
    match content {
        Content::Text(text) => part(hash, b't', text.as_bytes()),
        Content::Data { mime_type, data } => part(part(hash, b'd', mime_type.as_bytes()), b'd', data),
        Content::Uri { uri, .. } => part(hash, b'u', uri.as_bytes()),
        Content::ToolCall(call) => {
            let mut arguments = call.arguments.clone();
            arguments.sort_all_objects();
            part(part(hash, b'c', call.name.as_bytes()), b'a', arguments.to_string().as_bytes())
        }
        Content::InvalidToolCall { name, raw, .. } => part(part(hash, b'c', name.as_bytes()), b'r', raw.as_bytes()),
        // A service's own items carry ids and thoughts, so only their kind counts.
        Content::Native { value, .. } => match value.get("type").and_then(Value::as_str) {
            Some(kind) => part(hash, b'n', kind.as_bytes()),
            None => hash,
        },
        Content::Reasoning { .. }
        | Content::ToolResult(_)
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => hash,
    }
}

/// One more part, with a tag for its kind. The hash covers its length.
fn part(hash: u64, tag: u8, bytes: &[u8]) -> u64 {
    xxh64(bytes, hash ^ u64::from(tag))
}
