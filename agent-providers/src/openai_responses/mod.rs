//! OpenAI's Responses.
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses>.

mod client;
mod map;
mod read;
#[cfg(test)]
mod tests;
mod wire;

pub use client::OpenAiResponses;

/// How its streams are read.
pub(crate) fn reader() -> (crate::framing::Sse, read::ResponseStream) {
    Default::default()
}
