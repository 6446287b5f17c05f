//! Cassettes: a model's answers, recorded once and replayed for ever.

mod cassette;
mod client;
mod entry;
mod normal;
mod redact;
#[cfg(test)]
mod tests;

pub use cassette::{CassetteMode, NotRecorded, Recorded};
pub use client::RecordedClient;
