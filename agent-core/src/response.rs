//! A run, folded.

use std::fmt;

use crate::{
    ChatMessage, Content, Error, ErrorKind, Event, Result, Role, StopReason, Updates, Usage, draft::push,
    emitter::drain,
};

/// What a run came to: its events, the tokens they report, and why it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentResponse {
    /// Everything that was committed, in order.
    pub events: Vec<Event>,
    /// The tokens that the events report.
    pub usage: Usage,
    /// Why the run ended.
    pub stop: StopReason,
}

impl AgentResponse {
    /// Folds a run.
    ///
    /// # Errors
    /// The run's, and [`ErrorKind::Contract`] if it has no end or goes on after it.
    pub async fn collect(mut updates: Updates<'_>) -> Result<Self> {
        let mut fold = Fold::default();
        let stop = drain(&mut updates, |event| fold.add(event)).await?;
        Ok(fold.end(stop))
    }

    /// The text of the last assistant message that has any; empty if none has.
    pub fn text(&self) -> String {
        let has_text = |message: &ChatMessage| {
            message.role == Role::Assistant
                && message.contents.iter().any(|c| matches!(c, Content::Text(text) if !text.is_empty()))
        };
        let mut messages = self.events.iter().rev().flat_map(|event| event.messages.iter().rev());
        messages.find(|message| has_text(message)).map(ChatMessage::text).unwrap_or_default()
    }

    /// Everything that was said, in order.
    pub fn messages(&self) -> impl Iterator<Item = &ChatMessage> {
        self.events.iter().flat_map(|event| &event.messages)
    }

    /// The response, if the work is done.
    ///
    /// # Errors
    /// [`Unfinished`] with the response, if it ended with anything but [`StopReason::Completed`].
    pub fn accepted(self) -> Result<Self, Unfinished> {
        if self.stop == StopReason::Completed { Ok(self) } else { Err(Unfinished { response: self }) }
    }
}

/// A run that ended with anything but [`StopReason::Completed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// What it came to.
    pub response: AgentResponse,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run ended before its work was done: {}", self.response.stop)
    }
}

impl std::error::Error for Unfinished {}

/// So that `?` works where [`Error`] is wanted; the source is the [`Unfinished`] itself.
impl From<Unfinished> for Error {
    fn from(unfinished: Unfinished) -> Self {
        Self::new(ErrorKind::Invalid, "accept the response of a run").with_source(unfinished)
    }
}

/// An [`AgentResponse`] in the making.
#[derive(Default)]
pub(crate) struct Fold {
    events: Vec<Event>,
    usage: Usage,
}

impl Fold {
    #[inline]
    pub(crate) fn add(&mut self, event: Event) {
        if let Some(usage) = event.usage {
            self.usage += usage;
        }
        push(&mut self.events, event);
    }

    pub(crate) fn end(self, stop: StopReason) -> AgentResponse {
        AgentResponse { events: self.events, usage: self.usage, stop }
    }
}
