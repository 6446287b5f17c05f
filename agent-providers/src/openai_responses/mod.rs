//! OpenAI's Responses.
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses>.

mod client;
mod map;
mod read;
mod wire;

pub use client::OpenAiResponses;
