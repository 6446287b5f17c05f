//! Errors about what a protocol cannot say.

use agent_core::{Content, Error, ErrorKind};

/// `what` cannot be sent to `provider`.
pub(crate) fn unsupported(provider: &str, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("ask {provider}: it cannot be sent {what}"))
}

/// This content cannot be sent to `provider`.
pub(crate) fn content(provider: &str, content: &Content) -> Error {
    unsupported(provider, &describe(content))
}

/// This content cannot be sent to `provider` as a tool's result.
pub(crate) fn in_result(provider: &str, content: &Content) -> Error {
    unsupported(provider, &format!("{} as a tool's result; let the tool answer with text", describe(content)))
}

fn describe(content: &Content) -> String {
    match content {
        Content::Text(_) => "text here".into(),
        Content::Reasoning { .. } => "thoughts here".into(),
        Content::Data { mime_type, .. } => format!("content of type `{mime_type}`"),
        Content::Uri { mime_type: Some(mime_type), .. } => format!("a reference to content of type `{mime_type}`"),
        Content::Uri { mime_type: None, .. } => "a reference to content of an unknown type".into(),
        Content::ToolCall(_) | Content::InvalidToolCall { .. } => "a tool call in this role".into(),
        Content::ToolResult(_) => "a tool result in this role".into(),
        Content::Native { provider, .. } => format!("an item of {provider}"),
        Content::ApprovalRequest(_) | Content::ApprovalResponse { .. } => "an approval".into(),
    }
}
