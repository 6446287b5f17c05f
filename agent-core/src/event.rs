//! Events: what is committed to a session, all or nothing.

use std::{iter::Sum, ops::AddAssign, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{ChatMessage, Content, Role, RunContext, ids};

/// One committed step of a session: applied in the order rewind, messages, state.
///
/// A session is the fold of its events: [`Session::apply`](crate::Session::apply) over all of them gives it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// A version 7 UUID (RFC 9562): it carries the time, and rises within a run.
    pub id: Uuid,
    /// The run that recorded it; one id for all agents that the run reaches.
    pub run: Uuid,
    /// The agent that recorded it, or [`Event::CALLER`].
    pub author: Arc<str>,
    /// Which iteration of which loop recorded it, outermost first.
    #[serde(default = "no_path", skip_serializing_if = "is_empty")]
    pub path: Arc<[LoopStep]>,
    /// Keep only that many messages, from the first on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind: Option<usize>,
    /// What was said: usually nothing or one message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<ChatMessage>,
    /// What changed in the state, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StateChange>,
    /// The tokens that this step used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the step asked the enclosing loop to end. A record only: what a run ends with is its
    /// [`StopReason`](crate::StopReason).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalate: bool,
}

impl Event {
    /// The author of the caller's words. No agent may have this name.
    pub const CALLER: &'static str = "user";

    /// The caller says this.
    pub(crate) fn by_caller(message: ChatMessage, cx: &RunContext) -> Self {
        Self {
            id: ids::next(),
            run: cx.id(),
            author: Self::CALLER.into(),
            path: no_path(),
            rewind: None,
            messages: vec![message],
            state: Vec::new(),
            usage: None,
            escalate: false,
        }
    }

    /// Whether its last message is an answer: assistant text without a call or an approval request.
    pub fn is_final_response(&self) -> bool {
        self.messages.last().is_some_and(|message| {
            let asks = message.has_calls() || message.contents.iter().any(|c| matches!(c, Content::ApprovalRequest(_)));
            message.role == Role::Assistant && !asks && message.contents.iter().any(|c| matches!(c, Content::Text(_)))
        })
    }
}

/// One change of a session's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateChange {
    /// The key gets the value.
    Set {
        /// The key.
        key: Arc<str>,
        /// Its new value.
        value: Value,
    },
    /// The key's list gets one more item; a key that holds no list becomes a list of this item.
    Append {
        /// The key.
        key: Arc<str>,
        /// The new last item.
        value: Value,
    },
    /// The key goes.
    Remove {
        /// The key.
        key: Arc<str>,
    },
}

impl StateChange {
    /// The key that it changes.
    pub fn key(&self) -> &Arc<str> {
        match self {
            Self::Set { key, .. } | Self::Append { key, .. } | Self::Remove { key } => key,
        }
    }
}

/// One iteration of one loop, as a place in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoopStep {
    /// The loop's name.
    pub name: Arc<str>,
    /// Which iteration, from 1.
    pub iteration: u32,
}

/// Tokens that were used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the requests, cached ones included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Tokens of the answers, thoughts included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
    /// Those of `input_tokens` that the service had in its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Those of `output_tokens` that were thoughts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let add = |a: &mut u64, b| *a = a.saturating_add(b);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cached_input_tokens, other.cached_input_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

fn no_path() -> Arc<[LoopStep]> {
    Arc::from([])
}

fn is_empty(path: &Arc<[LoopStep]>) -> bool {
    path.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
