//! A history as a transcript: what a model service accepts as it is.

use std::sync::Arc;

use serde_json::json;

use crate::{
    ChatMessage, Content, Role, Session, ToolCall, ToolResult,
    calls::{CallLog, TrackedCall},
};

use super::History;

/// Which messages of the session a run shows to its model.
#[derive(Debug)]
pub(super) enum Window {
    All,
    /// These, and everything from `begin` on.
    Some {
        chosen: Vec<usize>,
        begin: usize,
    },
}

impl Window {
    /// What a run shows that begins now; `open` are the messages whose calls it has to settle.
    pub(super) fn of(history: History, session: &Session, open: impl Iterator<Item = usize>) -> Self {
        match history {
            History::Full => Self::All,
            History::CurrentTurn => {
                let messages = session.messages();
                let begin = messages.len();
                let from = session.turn().start.min(begin);
                let spoken = |message: &ChatMessage| matches!(message.role, Role::Assistant | Role::Tool);
                let request = messages[from..].iter().position(spoken).map_or(begin, |at| from + at);
                let pending = begin - session.pending().len();
                let mut chosen: Vec<usize> = (from..request).chain(open).chain(pending..begin).collect();
                chosen.sort_unstable();
                chosen.dedup();
                Self::Some { chosen, begin }
            }
        }
    }

    fn shows(&self, at: usize) -> bool {
        match self {
            Self::All => true,
            Self::Some { chosen, begin } => at >= *begin || chosen.binary_search(&at).is_ok(),
        }
    }
}

/// The transcript that the agent `me` sends: no approvals, no thoughts of others, each call directly followed by its
/// result, no result without a call.
pub(super) fn transcript(messages: &[ChatMessage], me: &str, window: &Window) -> Arc<[ChatMessage]> {
    if matches!(window, Window::All) && messages.iter().all(|message| is_plain(message, me)) {
        return messages.into();
    }
    let mut calls = CallLog::of(messages).calls.into_iter().peekable();
    let mut transcript = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let called = std::iter::from_fn(|| calls.next_if(|call| call.message == at)).filter(|call| call.called);
        if message.role == Role::Tool || !window.shows(at) {
            called.for_each(drop);
            continue;
        }
        transcript.extend(cleaned(message, me));
        transcript.extend(called.map(|call| result_of(&call, messages)));
    }
    transcript.into()
}

/// Whether the message stays what and where it is, whatever is around it.
fn is_plain(message: &ChatMessage, me: &str) -> bool {
    let is_call = |content: &Content| matches!(content, Content::ToolCall(_));
    message.role != Role::Tool
        && !message.contents.is_empty()
        && message.contents.iter().all(|content| stays(content, message, me) && !is_call(content))
}

/// Whether the model sees this part of a message.
fn stays(content: &Content, of: &ChatMessage, me: &str) -> bool {
    match content {
        Content::Text(_)
        | Content::Data { .. }
        | Content::Uri { .. }
        | Content::ToolCall(_)
        | Content::Native { .. } => true,
        Content::Reasoning { .. } => of.author.as_deref().is_none_or(|author| author == me),
        Content::InvalidToolCall { .. }
        | Content::ToolResult(_)
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => false,
    }
}

/// The message as the model sees it; none if nothing of it is for the model.
fn cleaned(message: &ChatMessage, me: &str) -> Option<ChatMessage> {
    let stays = |content: &Content| stays(content, message, me);
    if message.contents.iter().all(stays) {
        return (!message.contents.is_empty()).then(|| message.clone());
    }
    let contents: Arc<[Content]> = message
        .contents
        .iter()
        .filter_map(|content| match content {
            // Services refuse arguments that are no JSON object; what arrived is told in the error result.
            Content::InvalidToolCall { id, name, .. } => {
                Some(Content::ToolCall(ToolCall { id: id.clone(), name: name.clone(), arguments: json!({}) }))
            }
            content => stays(content).then(|| content.clone()),
        })
        .collect();
    (!contents.is_empty()).then(|| ChatMessage { contents, ..message.clone() })
}

/// The result of a call as a message of its own.
fn result_of(call: &TrackedCall<'_>, messages: &[ChatMessage]) -> ChatMessage {
    let Some((at, part)) = call.result else {
        return ChatMessage::new(Role::Tool, [open_result(call.call.id())]);
    };
    let message = &messages[at];
    if message.role == Role::Tool && message.contents.len() == 1 {
        message.clone()
    } else {
        let contents = Arc::from([message.contents[part].clone()]);
        ChatMessage { role: Role::Tool, contents, author: message.author.clone() }
    }
}

/// What a model reads where another agent's call is still open.
fn open_result(call_id: &str) -> Content {
    let why = "no result yet: the call belongs to another agent and is still open";
    Content::ToolResult(ToolResult {
        call_id: call_id.to_owned(),
        contents: vec![Content::Text(why.to_owned())],
        is_error: true,
    })
}
