//! Chat Completions' stream into the shared events.

use agent_core::{StopReason, Usage};
use serde_json::{Value, json};

use super::{
    details,
    wire::{CallPiece, Choice, Chunk, Piece, TokenCounts},
};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Decode, WireEvent, check_calls, read_json},
    framing::Frame,
    transport::of_document,
};

/// A reader of one stream.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    calls: Vec<OpenCall>,
    reasoning_details: Vec<Value>,
    model_known: bool,
    stopped: bool,
}

/// A call that pieces may still belong to.
#[derive(Debug)]
struct OpenCall {
    index: Option<u64>,
    id: Option<String>,
    begun: bool,
}

impl Decode for ChatStream {
    /// Not every compatible service says `[DONE]`; each says `finish_reason`.
    const END_OF_STREAM_ENDS: bool = true;

    fn frame(&mut self, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        if frame.data.trim() == "[DONE]" {
            return self.done(out);
        }
        let chunk = read_json::<Chunk>(frame)?;
        if !chunk.error.is_null() || chunk.object == "error" || frame.event.as_deref() == Some("error") {
            return Err(of_document(None, &read_json(frame)?));
        }
        if chunk.choices.is_empty() && chunk.usage.is_none() {
            out.push(WireEvent::Unknown(frame.data.clone()));
            return Ok(());
        }
        if !self.model_known && !chunk.model.is_empty() {
            self.model_known = true;
            out.push(WireEvent::Model(chunk.model));
        }
        // Whoever asked for several answers gets the first.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.choice(choice, out)?;
        }
        out.extend(chunk.usage.map(|counts| WireEvent::Usage(usage(&counts))));
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<WireEvent>) {
        if !self.reasoning_details.is_empty() {
            let details = std::mem::take(&mut self.reasoning_details);
            out.push(WireEvent::Native(json!({ "reasoning_details": details })));
        }
    }
}

impl ChatStream {
    fn done(&self, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        if !self.stopped {
            let words = "the stream says [DONE], but never a `finish_reason`";
            return Err(ProviderError::new(ProviderErrorKind::Truncated, words));
        }
        out.push(WireEvent::End);
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        if !choice.error.is_null() {
            return Err(of_document(None, &choice.error));
        }
        // Before they are read: each is looked for among the others.
        check_calls(self.calls.len().max(choice.delta.tool_calls.len()))?;
        self.piece(choice.delta, out);
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.stopped = true;
            out.push(WireEvent::Stop(stop(&reason)?));
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece, out: &mut Vec<WireEvent>) {
        // Services that send both names send the same thoughts under them.
        let thoughts = if piece.reasoning_content.is_empty() { piece.reasoning } else { piece.reasoning_content };
        if !thoughts.is_empty() {
            out.push(WireEvent::Reasoning(thoughts));
        }
        for detail in piece.reasoning_details {
            details::add(&mut self.reasoning_details, detail);
        }
        content(piece.content, out);
        if !piece.refusal.is_empty() {
            out.push(WireEvent::Refusal(piece.refusal));
        }
        for call in piece.tool_calls {
            self.call(call, out);
        }
    }

    /// A piece of a call. A new id with a name begins a call, whatever the index; a piece without an index belongs to
    /// the call of its id, or to the last.
    fn call(&mut self, piece: CallPiece, out: &mut Vec<WireEvent>) {
        let id = piece.id.filter(|id| !id.is_empty());
        let name = piece.function.name.filter(|name| !name.is_empty());
        let known = match (piece.index, &id) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id.as_ref() == Some(id)),
            (None, None) if name.is_some() => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        let known = known.filter(|at| id.is_none() || name.is_none() || self.calls[*at].id == id);
        let at = known.unwrap_or_else(|| {
            self.calls.push(OpenCall { index: piece.index, id, begun: false });
            self.calls.len() - 1
        });
        let key = at as u64;
        let call = &mut self.calls[at];
        let arguments = match piece.function.arguments {
            Value::Null => None,
            Value::String(json) if json.is_empty() => None,
            Value::String(json) => Some(WireEvent::ToolArguments { key, json }),
            whole => Some(WireEvent::ToolWhole { key, json: whole.to_string() }),
        };
        if !call.begun && (name.is_some() || arguments.is_some()) {
            call.begun = true;
            out.push(WireEvent::ToolStart { key, id: call.id.clone(), name: name.unwrap_or_default() });
        }
        out.extend(arguments);
    }
}

/// A piece of the answer: a string, or (Mistral) parts of text and thoughts.
fn content(content: Value, out: &mut Vec<WireEvent>) {
    match content {
        Value::String(text) => out.push(WireEvent::Text(text)),
        Value::Array(parts) => {
            for part in parts {
                let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
                match part["type"].as_str() {
                    Some("text") => out.push(WireEvent::Text(text(&part))),
                    Some("thinking") => {
                        let thoughts = part["thinking"].as_array().into_iter().flatten();
                        out.extend(thoughts.map(|thought| WireEvent::Reasoning(text(thought))));
                    }
                    _ => out.push(WireEvent::Unknown(part.to_string())),
                }
            }
        }
        _ => {}
    }
}

fn stop(reason: &str) -> Result<StopReason, ProviderError> {
    match reason {
        "length" | "max_tokens" => Ok(StopReason::Length),
        "content_filter" => Ok(StopReason::Filtered),
        // OpenRouter, vLLM, DeepSeek: an answer that broke off at the service.
        "error" | "abort" | "insufficient_system_resource" => {
            let words = "the service broke off the answer";
            Err(ProviderError::new(ProviderErrorKind::Server, words).code(Some(reason.into())))
        }
        // `stop`, `tool_calls`, `function_call`, and words of other services for the same.
        _ => Ok(StopReason::Completed),
    }
}

fn usage(counts: &TokenCounts) -> Usage {
    Usage {
        input_tokens: counts.prompt_tokens,
        output_tokens: counts.completion_tokens,
        cached_input_tokens: counts.prompt_tokens_details.cached_tokens,
        reasoning_tokens: counts.completion_tokens_details.reasoning_tokens,
    }
}
