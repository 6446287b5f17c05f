//! What Chat Completions stream, as tolerantly as can be: unknown fields and values pass, and so does `null`.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::or_default;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "or_default")]
    pub(super) model: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) choices: Vec<Choice>,
    #[serde(deserialize_with = "or_default")]
    pub(super) usage: Option<TokenCounts>,
    /// An error inside the stream.
    pub(super) error: Value,
    /// `error` where a service sends an error in a chunk's place.
    #[serde(deserialize_with = "or_default")]
    pub(super) object: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(deserialize_with = "or_default")]
    pub(super) index: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) delta: Piece,
    #[serde(deserialize_with = "or_default")]
    pub(super) finish_reason: Option<String>,
    /// Some services put an error here.
    pub(super) error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    /// A string; some services send parts.
    pub(super) content: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) refusal: String,
    /// Thoughts, by DeepSeek's name for them (llama.cpp and vLLM follow).
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_content: String,
    /// Thoughts, by OpenRouter's and Groq's name for them.
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning: String,
    /// Thoughts to be replayed, by OpenRouter.
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_details: Vec<Value>,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<CallPiece>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) function: FunctionPiece,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece {
    pub(super) name: Option<String>,
    /// A string; some services send the object itself.
    pub(super) arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCounts {
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) completion_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) prompt_tokens_details: PromptDetails,
    #[serde(deserialize_with = "or_default")]
    pub(super) completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) cached_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_tokens: u64,
}
