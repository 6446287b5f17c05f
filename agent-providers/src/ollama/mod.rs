//! Ollama's own chat.
//!
//! Source: <https://docs.ollama.com/api/chat>.

mod client;
mod map;
mod read;
#[cfg(test)]
mod tests;
mod wire;

pub use client::Ollama;

/// How its streams are read.
pub(crate) fn reader() -> (crate::framing::JsonLines, read::ChatLines) {
    Default::default()
}
