//! What Ollama streams, as tolerantly as can be: unknown fields and values pass, and so does `null`.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::or_default;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    #[serde(deserialize_with = "or_default")]
    pub(super) model: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: Option<Message>,
    #[serde(deserialize_with = "or_default")]
    pub(super) done: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) done_reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_eval_count: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) eval_count: u64,
    /// An error inside the stream.
    pub(super) error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(deserialize_with = "or_default")]
    pub(super) content: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) thinking: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) function: Function,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    pub(super) arguments: Value,
}
