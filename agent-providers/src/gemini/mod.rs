//! Gemini's generateContent.
//!
//! Source: <https://ai.google.dev/api/generate-content>.

mod client;
mod contents;
mod map;
mod read;
mod wire;

pub use client::Gemini;
