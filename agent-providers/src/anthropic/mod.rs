//! Anthropic's Messages.
//!
//! Source: <https://platform.claude.com/docs/en/api/messages>.

mod client;
mod map;
mod read;
mod turns;
mod wire;

pub use client::Anthropic;
