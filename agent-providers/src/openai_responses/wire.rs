//! What Responses stream, as tolerantly as can be: one shape for all events, in which each has its few fields.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::or_default;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) response: Response,
    pub(super) item: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) item_id: String,
    pub(super) output_index: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) summary_index: u64,
    pub(super) delta: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) arguments: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    #[serde(deserialize_with = "or_default")]
    pub(super) model: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: String,
    pub(super) error: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) incomplete_details: Incomplete,
    #[serde(deserialize_with = "or_default")]
    pub(super) usage: Option<TokenCounts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Incomplete {
    #[serde(deserialize_with = "or_default")]
    pub(super) reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCounts {
    #[serde(deserialize_with = "or_default")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) input_tokens_details: InputDetails,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens_details: OutputDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InputDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) cached_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_tokens: u64,
}
