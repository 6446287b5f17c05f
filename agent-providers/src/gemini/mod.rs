//! Gemini's generateContent.
//!
//! Source: <https://ai.google.dev/api/generate-content>.

mod client;
mod contents;
mod map;
mod read;
#[cfg(test)]
mod tests;
mod wire;

pub use client::Gemini;

/// How its streams are read.
pub(crate) fn reader() -> (crate::framing::Sse, read::ContentStream) {
    Default::default()
}
