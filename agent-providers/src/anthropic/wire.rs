//! What Messages stream, as tolerantly as can be: one shape for all events, in which each has its few fields.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::or_default;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: Message,
    #[serde(deserialize_with = "or_default")]
    pub(super) index: u64,
    pub(super) content_block: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) delta: Delta,
    #[serde(deserialize_with = "or_default")]
    pub(super) usage: Option<TokenCounts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(deserialize_with = "or_default")]
    pub(super) model: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) usage: Option<TokenCounts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) text: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) thinking: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) signature: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) partial_json: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCounts {
    #[serde(deserialize_with = "or_default")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) cache_creation_input_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) cache_read_input_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens_details: OutputDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) thinking_tokens: u64,
}
