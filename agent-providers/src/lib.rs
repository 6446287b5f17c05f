//! Chat clients for real model services.

mod answer;
mod anthropic;
#[cfg(test)]
mod cases;
mod client_for;
mod dialect;
mod error;
mod extra;
mod framing;
mod gemini;
mod limited;
mod media;
mod ollama;
mod openai_chat;
mod openai_responses;
mod recorded;
mod retry;
mod schema;
mod secret;
mod settings;
#[cfg(test)]
mod testing;
mod transport;
mod unsupported;
mod wire;

pub use anthropic::Anthropic;
pub use client_for::{client_for, client_from_vars};
pub use error::{ProviderError, ProviderErrorKind};
pub use gemini::Gemini;
pub use limited::{Limited, LimitedOptions};
pub use ollama::Ollama;
pub use openai_chat::OpenAi;
pub use openai_responses::OpenAiResponses;
pub use recorded::{CassetteMode, Recorded, RecordedClient};
pub use retry::{Retry, RetryOptions};
pub use secret::Secret;
pub use transport::{HttpOptions, TimeOuts};
