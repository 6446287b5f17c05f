//! A stand-in for a model that reads from the conversation what comes next, so that any process can go on with it.

use std::time::Duration;

use agent_core::{
    ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Result, Role, StopReason, ToolCall, Usage,
};
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use serde_json::json;

use super::BOARDS;

/// Publishes one board after the other: asked to go on, it calls a tool; after a result, it says so.
pub(super) struct Planner {
    /// How long it thinks.
    pub(super) pause: Duration,
}

fn answer(messages: &[ChatMessage]) -> ChatMessage {
    let results = messages.iter().flat_map(ChatMessage::tool_results);
    let done = results.filter(|result| !result.is_error).count();
    let is_asked = messages.last().is_none_or(|message| message.role == Role::User);
    match BOARDS.get(done) {
        Some(board) if is_asked => {
            let name = if *board == "posters" { "print" } else { "publish" };
            let call = ToolCall {
                id: format!("call_{}", done + 1),
                name: name.to_owned(),
                arguments: json!({ "board": board }),
            };
            ChatMessage::new(Role::Assistant, [Content::ToolCall(call)])
        }
        Some(_) | None => ChatMessage::assistant(format!("{done} of {} boards show the new timetable.", BOARDS.len())),
    }
}

impl ChatClient for Planner {
    fn model(&self) -> &'static str {
        "planner"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let done = ChatUpdate::Done(ChatResponse {
            message: answer(&request.messages),
            usage: Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() },
            stop: StopReason::Completed,
            model: self.model().to_owned(),
        });
        let thinks = tokio::time::sleep(self.pause).map(|()| Ok(done));
        stream::once(thinks).boxed()
    }
}
