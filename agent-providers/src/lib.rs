//! Chat clients for real model services.

mod answer;
mod client_for;
mod error;
mod framing;
mod openai_chat;
mod recorded;
mod schema;
mod secret;
mod settings;
mod transport;
mod unsupported;

pub use client_for::{client_for, client_from_vars};
pub use error::{ProviderError, ProviderErrorKind};
pub use openai_chat::OpenAi;
pub use recorded::{CassetteMode, Recorded, RecordedClient};
pub use secret::Secret;
pub use transport::{HttpOptions, TimeOuts};
