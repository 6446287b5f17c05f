//! Ollama's own chat.
//!
//! Source: <https://docs.ollama.com/api/chat>.

mod client;
mod map;
mod read;
mod wire;

pub use client::Ollama;
