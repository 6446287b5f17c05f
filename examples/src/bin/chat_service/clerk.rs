//! A stand-in for a model that answers anything, and pays back if it is asked to.

use agent_core::{
    ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Result, Role, StopReason, ToolCall, Usage,
};
use agent_examples::Parrot;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde_json::json;

/// Repeats what it hears, unless that begins with "refund" and a number.
pub(super) struct Clerk(pub(super) Parrot);

impl ChatClient for Clerk {
    fn model(&self) -> &'static str {
        "clerk"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let last = request.messages.last();
        let asked = last.filter(|message| message.role == Role::User).map(ChatMessage::text).unwrap_or_default();
        let booking = asked.strip_prefix("refund ").and_then(|booking| booking.parse::<u32>().ok());
        let content = match (booking, last.and_then(|message| message.tool_results().next())) {
            (Some(booking), _) => {
                let id = format!("refund-{}", request.messages.len());
                Content::ToolCall(ToolCall { id, name: "refund".to_owned(), arguments: json!({ "booking": booking }) })
            }
            (None, Some(result)) if result.is_error => Content::Text("I did not pay.".to_owned()),
            (None, Some(_)) => Content::Text("I have paid.".to_owned()),
            (None, None) => return self.0.stream(request),
        };
        let response = ChatResponse {
            message: ChatMessage::new(Role::Assistant, [content]),
            usage: Usage::default(),
            stop: StopReason::Completed,
            model: self.model().to_owned(),
        };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    }
}
