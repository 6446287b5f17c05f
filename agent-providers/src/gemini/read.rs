//! generateContent's stream into the shared events.

use agent_core::{StopReason, Usage};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::wire::{Candidate, Chunk, TokenCounts};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Decode, WireEvent, read_json, unreadable},
    framing::Frame,
    transport::of_document,
};

/// A reader of one stream.
#[derive(Debug, Default)]
pub(crate) struct ContentStream {
    calls: u64,
    stopped: bool,
}

impl Decode for ContentStream {
    /// The service says why it finishes, but not that the stream is over; after that only counts may come.
    const END_OF_STREAM_ENDS: bool = true;

    fn frame(&mut self, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        let chunk = read_json::<Chunk>(frame)?;
        if !chunk.error.is_null() {
            return Err(of_document(None, &read_json(frame)?));
        }
        if !chunk.prompt_feedback.block_reason.is_empty() {
            let feedback = chunk.prompt_feedback;
            let words = Some(feedback.block_reason_message).filter(|words| !words.is_empty());
            let words = words.unwrap_or_else(|| "the prompt is blocked".into());
            return Err(ProviderError::new(ProviderErrorKind::Blocked, words).code(Some(feedback.block_reason)));
        }
        if chunk.candidates.is_empty() && chunk.usage_metadata.is_none() {
            out.push(WireEvent::Unknown(frame.data.clone()));
            return Ok(());
        }
        if !chunk.model_version.is_empty() {
            out.push(WireEvent::Model(chunk.model_version));
        }
        out.extend(chunk.usage_metadata.map(|counts| WireEvent::Usage(usage(&counts))));
        // Whoever asked for several answers gets the first.
        for candidate in chunk.candidates.into_iter().filter(|candidate| candidate.index == 0) {
            self.candidate(candidate, frame, out)?;
        }
        Ok(())
    }
}

impl ContentStream {
    fn candidate(
        &mut self,
        candidate: Candidate,
        frame: &Frame,
        out: &mut Vec<WireEvent>,
    ) -> Result<(), ProviderError> {
        let says_more = candidate.content.parts.iter().any(|part| part["text"] != "");
        for part in candidate.content.parts {
            self.part(part, frame, out)?;
        }
        match candidate.finish_reason.as_deref() {
            None | Some("" | "FINISH_REASON_UNSPECIFIED") => {
                if says_more && self.stopped {
                    self.stopped = false;
                    out.push(WireEvent::GoesOn);
                }
            }
            Some(reason) => {
                self.stopped = true;
                out.push(WireEvent::Stop(stop(reason, &candidate.finish_message)?));
            }
        }
        Ok(())
    }

    /// One part. Its signature goes before what it becomes, or stays in it.
    fn part(&mut self, part: Value, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        let signature = part["thoughtSignature"].as_str().filter(|signature| !signature.is_empty());
        let signature = signature.map(|signature| WireEvent::Native(json!({ "thoughtSignature": signature })));
        let text = part["text"].as_str();
        match text {
            Some(text) if part["thought"] == true => {
                out.push(WireEvent::Reasoning(text.into()));
                if signature.is_some() {
                    out.push(WireEvent::Native(part));
                }
            }
            Some("") if signature.is_some() => out.push(WireEvent::Native(part)),
            Some(text) => {
                out.extend(signature);
                out.push(WireEvent::Text(text.into()));
            }
            None if part["functionCall"].is_object() => {
                out.extend(signature);
                self.call(&part["functionCall"], out);
            }
            None if part["inlineData"].is_object() => {
                out.extend(signature);
                let blob = &part["inlineData"];
                let data = STANDARD.decode(blob["data"].as_str().unwrap_or_default());
                let data = data.map_err(|error| unreadable(frame, &error))?;
                out.push(WireEvent::Data { mime_type: blob["mimeType"].as_str().unwrap_or_default().into(), data });
            }
            // What the service did by itself, such as running code: for it to read again.
            None => out.push(WireEvent::Native(part)),
        }
        Ok(())
    }

    /// A call, which always comes whole; not every model gives it an id.
    fn call(&mut self, call: &Value, out: &mut Vec<WireEvent>) {
        let key = self.calls;
        self.calls += 1;
        let name = call["name"].as_str().unwrap_or_default().into();
        out.push(WireEvent::ToolStart { key, id: call["id"].as_str().map(str::to_owned), name });
        if !call["args"].is_null() {
            out.push(WireEvent::ToolArguments { key, json: call["args"].to_string() });
        }
    }
}

/// Why the candidate is finished. Where the model wrote something unusable, asking again may help.
///
/// Source: <https://ai.google.dev/api/generate-content#FinishReason>.
fn stop(reason: &str, message: &str) -> Result<StopReason, ProviderError> {
    let kind = match reason {
        // The second one is by compatible services.
        "STOP" | "FUNCTION_CALL" => return Ok(StopReason::Completed),
        "MAX_TOKENS" => return Ok(StopReason::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => return Ok(StopReason::Filtered),
        "MISSING_THOUGHT_SIGNATURE" => ProviderErrorKind::BadRequest,
        // `MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `OTHER` and the like, and words to come: no answer.
        _ => ProviderErrorKind::Server,
    };
    let words = if message.is_empty() { "the service broke off the answer" } else { message };
    Err(ProviderError::new(kind, words).code(Some(reason.into())))
}

/// The service counts thoughts apart from the rest of the answer, and what its own tools read apart from the prompt.
fn usage(counts: &TokenCounts) -> Usage {
    Usage {
        input_tokens: counts.prompt.saturating_add(counts.tool_use_prompt),
        output_tokens: counts.candidates.saturating_add(counts.thoughts),
        cached_input_tokens: counts.cached_content,
        reasoning_tokens: counts.thoughts,
    }
}
