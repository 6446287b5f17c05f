//! Sessions: a conversation and its state, as a value.

use std::sync::Arc;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{ChatMessage, Event, Role, StateChange, ToolCall, calls::CallLog};

/// A conversation and its state. A value: a clone costs O(1) and is a snapshot.
///
/// The caller speaks into it with [`push`](Self::push); agents continue it and change it by events only.
///
/// ```
/// use agent_core::{ChatMessage, Session};
///
/// let mut session = Session::new().with_state("tone", "dry");
/// session.push("What is a monad?");
/// let snapshot = session.clone();
/// session.push(ChatMessage::user("In one sentence."));
/// assert_eq!((snapshot.messages().len(), session.messages().len()), (1, 2));
/// assert_eq!(session.get::<String>("tone").as_deref(), Some("dry"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    messages: Arc<Vec<ChatMessage>>,
    state: Arc<Map<String, Value>>,
    turn: Turn,
    /// Whether anything was recorded since the turn began.
    recorded: bool,
}

/// Which of the caller's requests a session is at: it tells whether a record in the state is of this request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Counts requests, from 0.
    pub number: u64,
    /// The index of the request's first message.
    pub start: usize,
}

impl Session {
    /// An empty session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a state key.
    ///
    /// # Panics
    /// If the value cannot be JSON: a map whose keys are no strings, or a `Serialize` that fails.
    pub fn with_state(mut self, key: impl Into<String>, value: impl Serialize) -> Self {
        Arc::make_mut(&mut self.state).insert(key.into(), to_json(value));
        self
    }

    /// The caller speaks. The first words after an agent recorded anything begin a new [`turn`](Self::turn);
    /// answers to approval requests alone begin none.
    pub fn push(&mut self, message: impl Into<ChatMessage>) {
        let message = message.into();
        match message.role {
            Role::Assistant | Role::Tool => self.recorded = true,
            Role::System | Role::User => {
                if self.recorded && !message.is_only_answers() {
                    self.turn = Turn { number: self.turn.number.wrapping_add(1), start: self.messages.len() };
                    self.recorded = false;
                }
            }
        }
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Applies a committed step: rewind, messages, state. O(new messages and changes) unless a snapshot shares the
    /// history or the state, which is then copied once.
    pub fn apply(&mut self, event: &Event) {
        if let Some(keep) = event.rewind
            && keep < self.messages.len()
        {
            self.rewind(keep);
        }
        if &*event.author == Event::CALLER {
            event.messages.iter().for_each(|message| self.push(message.clone()));
        } else {
            if !event.messages.is_empty() {
                Arc::make_mut(&mut self.messages).extend(event.messages.iter().cloned());
            }
            self.recorded = true;
        }
        if !event.state.is_empty() {
            let state = Arc::make_mut(&mut self.state);
            event.state.iter().for_each(|change| change_state(state, change));
        }
    }

    /// Everything said, oldest first.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// What waits for an agent: the trailing messages that no assistant or tool wrote.
    pub fn pending(&self) -> &[ChatMessage] {
        let spoken = self.messages.iter().rposition(|m| matches!(m.role, Role::Assistant | Role::Tool));
        &self.messages[spoken.map_or(0, |at| at + 1)..]
    }

    /// Which of the caller's requests this is.
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// The calls that the caller was asked about and has not answered, oldest first. O(history).
    pub fn open_approvals(&self) -> Vec<ToolCall> {
        CallLog::of(&self.messages).awaiting().cloned().collect()
    }

    /// The whole state.
    pub fn state(&self) -> &Map<String, Value> {
        &self.state
    }

    /// A state value; none if it is absent or not a `T`.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.state.get(key)?).ok()
    }

    /// Drops all messages but the first `keep`. Where the history is shared only the kept ones are copied.
    fn rewind(&mut self, keep: usize) {
        match Arc::get_mut(&mut self.messages) {
            Some(messages) => messages.truncate(keep),
            None => self.messages = Arc::new(self.messages[..keep].to_vec()),
        }
        self.turn.start = self.turn.start.min(keep);
    }
}

/// The value as JSON. What the framework and its users store always is: keys are strings.
pub(crate) fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("a state value is serializable as JSON")
}

fn change_state(state: &mut Map<String, Value>, change: &StateChange) {
    match change {
        StateChange::Set { key, value } => match state.get_mut(&**key) {
            Some(slot) => slot.clone_from(value),
            None => drop(state.insert(key.to_string(), value.clone())),
        },
        StateChange::Append { key, value } => match state.get_mut(&**key) {
            Some(Value::Array(list)) => list.push(value.clone()),
            Some(slot) => *slot = Value::Array(vec![value.clone()]),
            None => drop(state.insert(key.to_string(), Value::Array(vec![value.clone()]))),
        },
        StateChange::Remove { key } => drop(state.remove(&**key)),
    }
}
