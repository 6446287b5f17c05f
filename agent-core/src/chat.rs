//! The border to model services.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ChatMessage, Delta, Format, Result, StopReason, ToolSpec, Usage};

/// One request to a model: a transcript that needs no repair. Each call is directly followed by its results, one tool
/// message each; there are no approvals in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// Standing orders, apart from the conversation.
    pub instructions: Option<Arc<str>>,
    /// The conversation, oldest first.
    pub messages: Arc<[ChatMessage]>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// How to answer.
    pub options: ChatOptions,
}

impl Default for ChatRequest {
    fn default() -> Self {
        Self { instructions: None, messages: Arc::from([]), tools: Arc::from([]), options: ChatOptions::default() }
    }
}

/// How a model is to answer; what is absent is the service's default. An option that a service cannot honor is an
/// error of kind [`Unsupported`](crate::ErrorKind::Unsupported), never dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatOptions {
    /// Another model than the client's own.
    pub model: Option<String>,
    /// Sampling temperature, 0 to 2 with most services.
    pub temperature: Option<f64>,
    /// Nucleus sampling: the share of probability mass to sample from, 0 to 1.
    pub top_p: Option<f64>,
    /// The answer's limit in tokens, thoughts included.
    pub max_output_tokens: Option<u32>,
    /// Makes sampling repeatable where the service can.
    pub seed: Option<u64>,
    /// Texts that end the answer when they appear.
    pub stop: Vec<String>,
    /// How much to think.
    pub reasoning: Reasoning,
    /// Whether tools may or must be called.
    pub tool_choice: ToolChoice,
    /// The answer's form.
    pub format: Format,
    /// Ask the service to cache the request's beginning, where it has to be asked.
    pub cache_prompt: bool,
    /// Fields of the service's own, put into the request as they are: objects beside what is there, all else in its place.
    pub extra: Map<String, Value>,
}

/// How much a model is to think before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// As the service does by default.
    #[default]
    Auto,
    /// By grade.
    Effort(ReasoningEffort),
    /// By tokens.
    Budget(u32),
}

/// Grades of thinking, as services name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// No thoughts.
    None,
    /// As few thoughts as the service can.
    Minimal,
    /// Few thoughts.
    Low,
    /// A middle way.
    Medium,
    /// Many thoughts.
    High,
}

/// Whether a model may or must call tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// One item of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatUpdate {
    /// A piece for display.
    Delta(Delta),
    /// The whole answer: once, and last.
    Done(ChatResponse),
}

/// A model's whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// What it says and calls.
    pub message: ChatMessage,
    /// The tokens of this call.
    pub usage: Usage,
    /// Why it ended: `Completed`, `Length` or `Filtered`. An answer that calls tools is `Completed`.
    pub stop: StopReason,
    /// The model that answered, as the service names it.
    pub model: String,
}

/// A model behind a service.
pub trait ChatClient: Send + Sync {
    /// The model's name.
    fn model(&self) -> &str;

    /// Whose protocol it speaks, as spans name it: a value of OpenTelemetry's `gen_ai.provider.name`, such as `anthropic`
    /// or `gcp.gemini`; none if nobody knows. A client around another one passes that one's on.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Asks the model: deltas, then one [`ChatUpdate::Done`] or one error. A connection that breaks before the
    /// service said that it is done is an error. Dropping the stream ends the call at once.
    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>>;
}

macro_rules! forward_client {
    ($pointer:ty) => {
        impl<C: ChatClient + ?Sized> ChatClient for $pointer {
            fn model(&self) -> &str {
                (**self).model()
            }

            fn provider(&self) -> Option<&str> {
                (**self).provider()
            }

            fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
                (**self).stream(request)
            }
        }
    };
}

forward_client!(Box<C>);
forward_client!(Arc<C>);
