//! Steps that are about to be recorded.

use std::sync::Arc;

use serde::Serialize;

use crate::{ChatMessage, StateChange, Usage, session::to_json};

/// A step that is about to be recorded: an [`Event`](crate::Event) without its stamps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub(crate) rewind: Option<usize>,
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) state: Vec<StateChange>,
    pub(crate) usage: Option<Usage>,
    pub(crate) escalate: bool,
}

impl Draft {
    /// A step that says one message.
    pub fn message(message: impl Into<ChatMessage>) -> Self {
        Self { messages: vec![message.into()], ..Self::default() }
    }

    /// A step that sets one state key.
    ///
    /// # Panics
    /// As [`Session::with_state`](crate::Session::with_state).
    pub fn state(key: impl Into<Arc<str>>, value: impl Serialize) -> Self {
        Self::default().set(key, value)
    }

    /// Says one more message.
    pub fn say(mut self, message: impl Into<ChatMessage>) -> Self {
        push(&mut self.messages, message.into());
        self
    }

    /// Says these messages, in order.
    pub fn say_all(mut self, messages: Vec<ChatMessage>) -> Self {
        if self.messages.is_empty() {
            self.messages = messages;
        } else {
            self.messages.extend(messages);
        }
        self
    }

    /// Sets a state key.
    ///
    /// # Panics
    /// As [`Session::with_state`](crate::Session::with_state).
    pub fn set(self, key: impl Into<Arc<str>>, value: impl Serialize) -> Self {
        self.change(StateChange::Set { key: key.into(), value: to_json(value) })
    }

    /// Appends to a state key's list.
    ///
    /// # Panics
    /// As [`Session::with_state`](crate::Session::with_state).
    pub fn append(self, key: impl Into<Arc<str>>, value: impl Serialize) -> Self {
        self.change(StateChange::Append { key: key.into(), value: to_json(value) })
    }

    /// Removes a state key.
    pub fn remove(self, key: impl Into<Arc<str>>) -> Self {
        self.change(StateChange::Remove { key: key.into() })
    }

    /// One more change of the state.
    pub fn change(mut self, change: StateChange) -> Self {
        push(&mut self.state, change);
        self
    }

    /// Reports tokens; several reports add up.
    pub fn usage(mut self, usage: Usage) -> Self {
        *self.usage.get_or_insert_default() += usage;
        self
    }

    /// Notes that the step asks the enclosing loop to end. The run must also end
    /// [`Escalated`](crate::StopReason::Escalated).
    pub fn escalate(mut self) -> Self {
        self.escalate = true;
        self
    }

    /// Keeps only that many messages, from the first on, before anything is said.
    pub fn rewind(mut self, keep: usize) -> Self {
        self.rewind = Some(keep);
        self
    }
}

/// Appends to a list that rarely gets a second item.
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
}
