//! A protocol's stream as one sequence of events, and the answer that they add up to.
//!
//! A protocol is a folder beside this one: `client` (options and the [`ChatClient`](agent_core::ChatClient)), `map`
//! (requests), `wire` (what the service sends, tolerantly) and `read` (a [`Decode`] that makes it [`WireEvent`]s). All
//! else is shared. It is tested by a row in `answer/laws.rs`, a row in `tests/faults/protocols.rs`, and what is its own; it gets
//! a name in `client_for` and a line in the crate's tables.

mod event;
mod fold;
#[cfg(test)]
mod laws;
mod reader;
#[cfg(test)]
mod whole;

pub(crate) use event::WireEvent;
pub(crate) use fold::Answer;
pub(crate) use reader::{Reader, check_calls};
#[cfg(test)]
pub(crate) use whole::read_whole;

use crate::{ProviderError, framing::Frame};

/// A protocol's reading of frames.
pub(crate) trait Decode: Send {
    /// Whether a clean end of the stream after a [`Stop`](WireEvent::Stop) ends the answer, though no
    /// [`End`](WireEvent::End) came.
    const END_OF_STREAM_ENDS: bool;

    /// Reads one frame. A frame that it does not know is [`WireEvent::Unknown`], an unreadable one
    /// [`unreadable`](crate::answer::unreadable).
    fn frame(&mut self, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError>;

    /// What it has gathered, once the answer has ended.
    fn finish(&mut self, _out: &mut Vec<WireEvent>) {}
}

/// Reads a frame's payload as JSON.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<T, ProviderError> {
    serde_json::from_str(&frame.data).map_err(|error| unreadable(frame, &error))
}

/// A frame whose payload is not what the protocol says: cut, if the stream ended within it.
pub(crate) fn unreadable(frame: &Frame, error: &dyn std::fmt::Display) -> ProviderError {
    use crate::ProviderErrorKind::{BadFrame, Truncated};
    let excerpt = frame.data.chars().take(80).collect::<String>();
    let kind = if frame.unclosed { Truncated } else { BadFrame };
    ProviderError::new(kind, format!("unreadable event ({error}): {excerpt}"))
}
