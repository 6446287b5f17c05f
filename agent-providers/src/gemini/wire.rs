//! What generateContent streams, as tolerantly as can be: unknown fields and values pass, and so does `null`.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::or_default;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk {
    #[serde(deserialize_with = "or_default")]
    pub(super) candidates: Vec<Candidate>,
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_feedback: Feedback,
    #[serde(deserialize_with = "or_default")]
    pub(super) usage_metadata: Option<TokenCounts>,
    #[serde(deserialize_with = "or_default")]
    pub(super) model_version: String,
    /// An error inside the stream.
    pub(super) error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate {
    #[serde(deserialize_with = "or_default")]
    pub(super) index: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) content: Content,
    #[serde(deserialize_with = "or_default")]
    pub(super) finish_reason: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) finish_message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    /// Each as it came: parts that are no text are replayed so.
    #[serde(deserialize_with = "or_default")]
    pub(super) parts: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback {
    #[serde(deserialize_with = "or_default")]
    pub(super) block_reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) block_reason_message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCounts {
    #[serde(rename = "promptTokenCount", deserialize_with = "or_default")]
    pub(super) prompt: u64,
    #[serde(rename = "toolUsePromptTokenCount", deserialize_with = "or_default")]
    pub(super) tool_use_prompt: u64,
    #[serde(rename = "cachedContentTokenCount", deserialize_with = "or_default")]
    pub(super) cached_content: u64,
    #[serde(rename = "candidatesTokenCount", deserialize_with = "or_default")]
    pub(super) candidates: u64,
    #[serde(rename = "thoughtsTokenCount", deserialize_with = "or_default")]
    pub(super) thoughts: u64,
}
