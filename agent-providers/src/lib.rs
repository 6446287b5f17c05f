//! Chat clients for real model services.

mod answer;
mod client_for;
mod error;
mod framing;
mod limited;
mod media;
mod openai_chat;
mod openai_responses;
mod recorded;
mod retry;
mod schema;
mod secret;
mod settings;
mod transport;
mod unsupported;
mod wire;

pub use client_for::{client_for, client_from_vars};
pub use error::{ProviderError, ProviderErrorKind};
pub use limited::{Limited, LimitedOptions};
pub use openai_chat::OpenAi;
pub use openai_responses::OpenAiResponses;
pub use recorded::{CassetteMode, Recorded, RecordedClient};
pub use retry::{Retry, RetryOptions};
pub use secret::Secret;
pub use transport::{HttpOptions, TimeOuts};
