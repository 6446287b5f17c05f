//! Messages' stream into the shared events.

use std::collections::HashMap;

use agent_core::{StopReason, Usage};
use serde_json::{Value, json};

use super::wire::{Delta, Event, TokenCounts};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Decode, WireEvent, read_json},
    framing::Frame,
    transport::of_document,
};

/// A reader of one stream.
#[derive(Debug, Default)]
pub(crate) struct MessageStream {
    /// The blocks that are open, by their index.
    open: HashMap<u64, Block>,
    calls: u64,
    stopped: bool,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking,
    Call(u64),
    /// A block of the service's own, with the pieces of its `input`.
    Native(Value, String),
}

impl Decode for MessageStream {
    const END_OF_STREAM_ENDS: bool = false;

    fn frame(&mut self, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        let event = read_json::<Event>(frame)?;
        match event.kind.as_str() {
            "message_start" => {
                out.push(WireEvent::Model(event.message.model));
                out.extend(event.message.usage.map(|counts| WireEvent::Usage(usage(&counts))));
            }
            "content_block_start" => self.start(event.index, event.content_block, out),
            "content_block_delta" => self.delta(event.index, event.delta, frame, out),
            "content_block_stop" => self.stop(event.index, out),
            "message_delta" => {
                out.extend(event.usage.map(|counts| WireEvent::Usage(usage(&counts))));
                if let Some(reason) = event.delta.stop_reason.filter(|reason| !reason.is_empty()) {
                    self.stopped = true;
                    out.push(WireEvent::Stop(stop(&reason)));
                }
            }
            "message_stop" if self.stopped => out.push(WireEvent::End),
            "message_stop" => {
                let words = "the stream says that the message stops, but never why";
                return Err(ProviderError::new(ProviderErrorKind::Truncated, words));
            }
            "ping" => {}
            "error" => return Err(of_document(None, &read_json(frame)?)),
            _ => out.push(WireEvent::Unknown(frame.data.clone())),
        }
        Ok(())
    }

    /// Blocks of the service's own that it did not close.
    fn finish(&mut self, out: &mut Vec<WireEvent>) {
        let mut open = self.open.keys().copied().collect::<Vec<_>>();
        open.sort_unstable();
        for index in open {
            self.stop(index, out);
        }
    }
}

impl MessageStream {
    fn start(&mut self, index: u64, block: Value, out: &mut Vec<WireEvent>) {
        let words = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let begun = match block["type"].as_str() {
            Some("text") => {
                out.push(WireEvent::Text(words("text")));
                Block::Text
            }
            Some("thinking") => {
                out.extend([WireEvent::ReasoningEnd, WireEvent::Reasoning(words("thinking"))]);
                out.extend(Some(words("signature")).filter(|proof| !proof.is_empty()).map(WireEvent::Signature));
                Block::Thinking
            }
            Some("tool_use") => {
                let key = self.calls;
                self.calls += 1;
                out.push(WireEvent::ToolStart { key, id: Some(words("id")), name: words("name") });
                // Mostly empty, and followed by pieces; some compatible services send it whole.
                if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    out.push(WireEvent::ToolWhole { key, json: block["input"].to_string() });
                }
                Block::Call(key)
            }
            _ => Block::Native(block, String::new()),
        };
        self.open.insert(index, begun);
    }

    fn delta(&mut self, index: u64, delta: Delta, frame: &Frame, out: &mut Vec<WireEvent>) {
        match (self.open.get_mut(&index), delta.kind.as_str()) {
            (_, "text_delta") => out.push(WireEvent::Text(delta.text)),
            (_, "thinking_delta") => out.push(WireEvent::Reasoning(delta.thinking)),
            (_, "signature_delta") => out.push(WireEvent::Signature(delta.signature)),
            (Some(Block::Call(key)), "input_json_delta") => {
                out.push(WireEvent::ToolArguments { key: *key, json: delta.partial_json });
            }
            (Some(Block::Native(_, input)), "input_json_delta") => input.push_str(&delta.partial_json),
            _ => out.push(WireEvent::Unknown(frame.data.clone())),
        }
    }

    fn stop(&mut self, index: u64, out: &mut Vec<WireEvent>) {
        match self.open.remove(&index) {
            Some(Block::Thinking) => out.push(WireEvent::ReasoningEnd),
            Some(Block::Native(mut block, input)) => {
                if !input.is_empty() {
                    block["input"] = serde_json::from_str(&input).unwrap_or_else(|_| json!({}));
                }
                out.push(WireEvent::Native(block));
            }
            Some(Block::Text | Block::Call(_)) | None => {}
        }
    }
}

/// Why the message stops. `pause_turn` is a service that will go on when asked again: the answer is not complete.
///
/// Source: <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
fn stop(reason: &str) -> StopReason {
    match reason {
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => StopReason::Length,
        "refusal" => StopReason::Filtered,
        // `end_turn`, `stop_sequence`, `tool_use`, and words to come.
        _ => StopReason::Completed,
    }
}

/// The service counts what it read from its cache, and what it wrote there, apart from the rest of the input.
fn usage(counts: &TokenCounts) -> Usage {
    let cached = counts.cache_read_input_tokens;
    Usage {
        input_tokens: counts.input_tokens.saturating_add(cached).saturating_add(counts.cache_creation_input_tokens),
        output_tokens: counts.output_tokens,
        cached_input_tokens: cached,
        reasoning_tokens: counts.output_tokens_details.thinking_tokens,
    }
}
