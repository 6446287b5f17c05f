//! What handlers take and give, as JSON.

use agent_core::{ChatMessage, LoopStep, StopReason, ToolCall, Usage};
use serde::{Deserialize, Serialize};

/// What the caller says: a text, or a message with all that one can hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// The user's words.
    Text(String),
    /// A message.
    Message(ChatMessage),
}

impl From<Words> for ChatMessage {
    fn from(words: Words) -> Self {
        match words {
            Words::Text(text) => Self::user(text),
            Words::Message(message) => message,
        }
    }
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Why it ended.
    pub stop: StopReason,
    /// The last answer that has text; empty if none has.
    pub text: String,
    /// The tokens that its events report.
    pub usage: Usage,
}

/// Where a session stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// How the last turn ended; none while one is under way, and before the first.
    pub stop: Option<StopReason>,
    /// Why the last turn failed, if it did.
    pub error: Option<String>,
    /// For each loop that this turn has been in, outermost first, the latest iteration.
    pub iterations: Vec<LoopStep>,
    /// What waits for an answer.
    pub approvals: Vec<ToolCall>,
}

/// What is rejected, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejection {
    /// The call.
    pub call_id: String,
    /// What the model is told.
    #[serde(default)]
    pub reason: String,
}

/// One answer to one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) call_id: String,
    /// Why not; none is a yes.
    pub(super) rejected: Option<String>,
}

impl From<Answer> for ChatMessage {
    fn from(answer: Answer) -> Self {
        match answer.rejected {
            None => Self::approve(answer.call_id),
            Some(reason) => Self::reject(answer.call_id, reason),
        }
    }
}
