//! A model that refuses what real services refuse.

use futures_util::{StreamExt, stream, stream::BoxStream};

use crate::{ChatClient, ChatMessage, ChatRequest, ChatUpdate, Content, Error, ErrorKind, Result, Role};

/// A client that checks each request before it goes to the inner one, as strict services do: results directly follow
/// their calls, in tool messages, each call has one, nothing else is called or answered; no approvals; calls are the
/// assistant's; no message is empty. What is wrong is a [`Contract`](ErrorKind::Contract) error.
#[derive(Debug, Clone)]
pub struct PairingClient<C> {
    inner: C,
}

impl<C: ChatClient> PairingClient<C> {
    /// Checks what this client is asked.
    pub fn new(inner: C) -> Self {
        Self { inner }
    }
}

impl<C: ChatClient> ChatClient for PairingClient<C> {
    fn model(&self) -> &str {
        self.inner.model()
    }

    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        match check(&request.messages) {
            Ok(()) => self.inner.stream(request),
            Err(wrong) => stream::iter([Err(Error::new(ErrorKind::Contract, wrong))]).boxed(),
        }
    }
}

/// Says what a strict service would object to.
fn check(messages: &[ChatMessage]) -> Result<(), String> {
    if messages.is_empty() {
        return Err("request without a message".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.contents.is_empty() {
            return Err(format!("message {at} is empty"));
        }
        if message.role != Role::Tool && !open.is_empty() {
            return Err(format!("message {at} comes before the results of {open:?}"));
        }
        for content in message.contents.iter() {
            match (content, message.role) {
                (Content::ToolCall(call), Role::Assistant) => open.push(&call.id),
                (Content::InvalidToolCall { id, .. }, Role::Assistant) => open.push(id),
                (Content::ToolResult(result), Role::Tool) => {
                    let Some(call) = open.iter().position(|id| *id == result.call_id) else {
                        return Err(format!("message {at} answers `{}`, which is not open", result.call_id));
                    };
                    open.remove(call);
                }
                (Content::ApprovalRequest(_) | Content::ApprovalResponse { .. }, _) => {
                    return Err(format!("message {at} holds an approval"));
                }
                (Content::ToolCall(_) | Content::InvalidToolCall { .. } | Content::ToolResult(_), role)
                | (_, role @ Role::Tool) => {
                    return Err(format!("message {at} of role {role:?} holds {content:?}"));
                }
                (
                    Content::Text(_)
                    | Content::Reasoning { .. }
                    | Content::Data { .. }
                    | Content::Uri { .. }
                    | Content::Native { .. },
                    Role::System | Role::User | Role::Assistant,
                ) => (),
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("calls {open:?} have no result")) }
}
