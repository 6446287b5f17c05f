//! Errors about what a protocol cannot say.

use agent_core::{Content, Error, ErrorKind, Result};

/// `what` cannot be sent to `provider`.
pub(crate) fn unsupported(provider: &str, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("ask {provider}: it cannot be sent {what}"))
}

/// This content cannot be sent to `provider`.
pub(crate) fn content(provider: &str, content: &Content) -> Error {
    unsupported(provider, &format!("{} in a message of this role", describe(content)))
}

/// Contents that have to be text, as it is; `place` says where.
pub(crate) fn text(provider: &str, contents: &[Content], place: &str) -> Result<String> {
    let text = |content: &Content| match content {
        Content::Text(text) => Ok(text.clone()),
        other => Err(unsupported(provider, &format!("{} {place}", describe(other)))),
    };
    contents.iter().map(text).collect()
}

fn describe(content: &Content) -> String {
    match content {
        Content::Text(_) => "text".into(),
        Content::Reasoning { .. } => "thoughts".into(),
        Content::Data { mime_type, .. } => format!("content of type `{mime_type}`"),
        Content::Uri { mime_type: Some(mime_type), .. } => format!("a reference to content of type `{mime_type}`"),
        Content::Uri { mime_type: None, .. } => "a reference to content of an unknown type".into(),
        Content::ToolCall(_) | Content::InvalidToolCall { .. } => "a tool call".into(),
        Content::ToolResult(_) => "a tool result".into(),
        Content::Native { provider, .. } => format!("an item of {provider}"),
        Content::ApprovalRequest(_) | Content::ApprovalResponse { .. } => "an approval".into(),
    }
}
