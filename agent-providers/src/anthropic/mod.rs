//! Anthropic's Messages.
//!
//! Source: <https://platform.claude.com/docs/en/api/messages>.

mod client;
mod map;
mod read;
#[cfg(test)]
mod tests;
mod turns;
mod wire;

pub use client::Anthropic;

/// How its streams are read.
pub(crate) fn reader() -> (crate::framing::Sse, read::MessageStream) {
    Default::default()
}
