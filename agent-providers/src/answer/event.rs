//! What happens in a model's answer, whatever the protocol.

use agent_core::{StopReason, Usage};
use serde_json::Value;

/// One happening in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireEvent {
    /// The model that answers, as the service names it.
    Model(String),
    /// A piece of the answer's text.
    Text(String),
    /// A piece of the model's words of refusal: text, and the answer is [`Filtered`](StopReason::Filtered).
    Refusal(String),
    /// A piece of thoughts.
    Reasoning(String),
    /// The thoughts so far end here; those that follow are others.
    ReasoningEnd,
    /// The proof of the last thoughts (made up if there are none).
    Signature(String),
    /// A call begins. `key` is what the protocol's later pieces refer to; a key that is taken again means the new call.
    ToolStart { key: u64, id: Option<String>, name: String },
    /// The next characters of a call's arguments, raw.
    ToolArguments { key: u64, json: String },
    /// A call's arguments as a whole: they replace what came before.
    ToolWhole { key: u64, json: String },
    /// Bytes of a media type that are part of the answer, such as an image.
    Data { mime_type: String, data: Vec<u8> },
    /// An item of the service's own, for it to read again.
    Native(Value),
    /// Counts so far: each replaces the one before if it is larger.
    Usage(Usage),
    /// Why the answer ends.
    Stop(StopReason),
    /// The answer goes on after all: what was said of its end does not count.
    GoesOn,
    /// The answer is complete; nothing is read after it.
    End,
    /// An event that this crate does not know, as it came.
    Unknown(String),
}
