//! OpenAI's Chat Completions, and the many services that are compatible with them.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat>.

mod client;
mod details;
mod map;
mod read;
#[cfg(test)]
mod tests;
mod wire;

pub use client::OpenAi;

/// How its streams are read.
pub(crate) fn reader() -> (crate::framing::Sse, read::ChatStream) {
    Default::default()
}
