//! Chat messages: what is said, called and answered.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who a message is from, as model services see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing orders inside the conversation.
    System,
    /// The caller, or whoever speaks for it (a loop's feedback).
    User,
    /// A model or an agent.
    Assistant,
    /// Results of tool calls.
    Tool,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text that is part of the answer.
    Text(String),
    /// A model's thoughts; never part of an answer's text.
    Reasoning {
        /// The thoughts, or the service's summary of them.
        text: String,
        /// The service's proof that the thoughts are its own, replayed with them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Bytes of a media type: an image, a sound, a document.
    Data {
        /// The media type, such as `image/png`.
        mime_type: String,
        /// The bytes; base64 in JSON.
        #[serde(with = "base64_bytes")]
        data: Vec<u8>,
    },
    /// A reference to content that is elsewhere.
    Uri {
        /// The media type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Where it is.
        uri: String,
    },
    /// A model asks for a tool to be run.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
    /// A call whose arguments were cut or unreadable: never run, answered with an error result.
    InvalidToolCall {
        /// The call's id, as the service gave it.
        id: String,
        /// The tool's name, as the model wrote it.
        name: String,
        /// The arguments as they arrived.
        raw: String,
        /// What is wrong with them.
        why: String,
    },
    /// A service's own item, replayed to the same service and model only.
    Native {
        /// The service, such as `openai`.
        provider: String,
        /// The model that made it.
        model: String,
        /// The item, as the service sent it.
        value: Value,
    },
    /// An agent asks the caller whether a call may run.
    ApprovalRequest(ToolCall),
    /// The caller's answer to an [`ApprovalRequest`](Content::ApprovalRequest).
    ApprovalResponse {
        /// The id of the call that was asked about.
        call_id: String,
        /// Whether it may run.
        approved: bool,
        /// Why (not); a rejected call's error result repeats it to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A model's request to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Pairs the call with its result. Services reuse ids, so it is unique among open calls at best.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: a JSON object, as a rule.
    pub arguments: Value,
}

/// A tool's answer to one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// What the model reads.
    pub contents: Vec<Content>,
    /// Whether the call failed or was not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A message of a conversation. A clone copies two reference counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// The agent that wrote it; none for the caller's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Arc<str>>,
    /// The parts, in order.
    pub contents: Arc<[Content]>,
}

impl ChatMessage {
    /// A message of these parts by nobody in particular.
    pub fn new(role: Role, contents: impl IntoIterator<Item = Content>) -> Self {
        Self { role, author: None, contents: contents.into_iter().collect() }
    }

    /// The caller says a text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::of_text(Role::User, text)
    }

    /// A model or an agent says a text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::of_text(Role::Assistant, text)
    }

    /// A standing order inside the conversation.
    pub fn system(text: impl Into<String>) -> Self {
        Self::of_text(Role::System, text)
    }

    /// The caller lets the call of this id run.
    pub fn approve(call_id: impl Into<String>) -> Self {
        let answer = Content::ApprovalResponse { call_id: call_id.into(), approved: true, reason: None };
        Self::new(Role::User, [answer])
    }

    /// The caller refuses the call of this id; the model is told why.
    pub fn reject(call_id: impl Into<String>, reason: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self::new(Role::User, [Content::ApprovalResponse { call_id: call_id.into(), approved: false, reason }])
    }

    /// Names the agent that wrote it.
    pub fn by(mut self, author: impl Into<Arc<str>>) -> Self {
        self.author = Some(author.into());
        self
    }

    /// The text parts, joined as they are; thoughts are no text.
    pub fn text(&self) -> String {
        text_of(&self.contents)
    }

    /// The calls that it asks for, in order; unreadable ones are not among them.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.contents.iter().filter_map(|c| if let Content::ToolCall(call) = c { Some(call) } else { None })
    }

    /// The results that it holds, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.contents.iter().filter_map(|c| if let Content::ToolResult(result) = c { Some(result) } else { None })
    }

    fn of_text(role: Role, text: impl Into<String>) -> Self {
        Self { role, author: None, contents: Arc::from([Content::Text(text.into())]) }
    }

    /// Whether the message is nothing but answers to approval requests.
    pub(crate) fn is_only_answers(&self) -> bool {
        !self.contents.is_empty() && self.contents.iter().all(|c| matches!(c, Content::ApprovalResponse { .. }))
    }

    /// Whether it asks for anything to be run, readable or not.
    pub(crate) fn has_calls(&self) -> bool {
        self.contents.iter().any(|c| matches!(c, Content::ToolCall(_) | Content::InvalidToolCall { .. }))
    }
}

impl From<&str> for ChatMessage {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for ChatMessage {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

impl ToolResult {
    /// The text parts, joined as they are.
    pub fn text(&self) -> String {
        text_of(&self.contents)
    }
}

fn text_of(contents: &[Content]) -> String {
    contents.iter().filter_map(|c| if let Content::Text(text) = c { Some(text.as_str()) } else { None }).collect()
}

/// Bytes as standard base64 with padding (RFC 4648, section 4).
mod base64_bytes {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
