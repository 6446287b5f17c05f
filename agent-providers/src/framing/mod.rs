//! Bytes into frames: server-sent events and JSON lines.
//!
//! Own code, because the well-kept `sse-stream` drops a last event that no blank line follows, and some services end
//! their streams so. Both decoders are plain functions of bytes: no I/O, linear in the input, whatever the chunks.

mod json_lines;
mod lines;
mod sse;
#[cfg(test)]
mod tests;

pub(crate) use json_lines::JsonLines;
pub(crate) use sse::Sse;

/// The longest frame, in bytes. An image in an answer is one frame; more is a service that lost its way.
pub(crate) const LONGEST_FRAME: usize = 32 * 1024 * 1024;

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The event's name; none for JSON lines.
    pub(crate) event: Option<String>,
    /// The payload.
    pub(crate) data: String,
    /// Whether the stream ended before the frame was closed: if it is unreadable, it was cut.
    pub(crate) unclosed: bool,
}

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame is longer than {LONGEST_FRAME} bytes")]
    TooLong,
    #[error("a frame is not UTF-8")]
    NotUtf8,
}

/// A decoder of bytes into frames.
pub(crate) trait Framing: Send {
    /// Takes the next bytes and appends the frames that they complete.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Frame>) -> Result<(), FrameError>;

    /// Takes the end of the stream: what is left may be a last frame.
    fn end(&mut self, out: &mut Vec<Frame>) -> Result<(), FrameError>;
}

fn text(bytes: &[u8]) -> Result<String, FrameError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(FrameError::NotUtf8),
    }
}
