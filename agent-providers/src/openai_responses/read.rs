//! Responses' stream into the shared events.

use agent_core::{StopReason, Usage};
use serde_json::Value;

use super::wire::{Event, Response, TokenCounts};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Decode, WireEvent, read_json},
    framing::Frame,
    transport::of_document,
};

/// A reader of one stream.
#[derive(Debug, Default)]
pub(crate) struct ResponseStream {
    calls: Vec<ItemRef>,
    /// The message items whose text came in pieces.
    texts: Vec<String>,
}

/// How events refer to an item; compatible services leave one of them out.
#[derive(Debug)]
struct ItemRef {
    id: String,
    call_id: String,
    index: Option<u64>,
}

impl Decode for ResponseStream {
    const END_OF_STREAM_ENDS: bool = false;

    fn frame(&mut self, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        if frame.data.trim() == "[DONE]" {
            return Ok(()); // some compatible services add it; it says nothing
        }
        let event = read_json::<Event>(frame)?;
        match event.kind.as_str() {
            "response.created" | "response.in_progress" => out.push(WireEvent::Model(event.response.model)),
            "response.output_item.added" => self.begin(&event, out),
            "response.output_text.delta" => {
                out.push(WireEvent::Text(words(&event.delta)));
                self.told(event.item_id);
            }
            "response.refusal.delta" => {
                out.push(WireEvent::Refusal(words(&event.delta)));
                self.told(event.item_id);
            }
            "response.reasoning_summary_part.added" if event.summary_index > 0 => {
                out.push(WireEvent::Reasoning("\n\n".into()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.push(WireEvent::Reasoning(words(&event.delta)));
            }
            "response.function_call_arguments.delta" => {
                let key = self.key(&event);
                out.push(WireEvent::ToolArguments { key, json: words(&event.delta) });
            }
            "response.function_call_arguments.done" => {
                let key = self.key(&event);
                out.push(WireEvent::ToolWhole { key, json: event.arguments });
            }
            "response.output_item.done" => self.item(event, out),
            "response.completed" | "response.incomplete" => end(event, out),
            "response.failed" => return Err(failed(&event.response)),
            "error" => return Err(of_document(None, &read_json(frame)?)),
            _ => out.push(WireEvent::Unknown(frame.data.clone())),
        }
        Ok(())
    }
}

impl ResponseStream {
    fn begin(&mut self, event: &Event, out: &mut Vec<WireEvent>) {
        if event.item["type"] == "function_call" {
            self.start(event, out);
        }
    }

    fn start(&mut self, event: &Event, out: &mut Vec<WireEvent>) -> u64 {
        let key = self.calls.len() as u64;
        let item = &event.item;
        self.calls.push(ItemRef {
            id: words(&item["id"]),
            call_id: words(&item["call_id"]),
            index: event.output_index,
        });
        let id = item["call_id"].as_str().or_else(|| item["id"].as_str()).map(str::to_owned);
        out.push(WireEvent::ToolStart { key, id, name: words(&item["name"]) });
        key
    }

    fn told(&mut self, id: String) {
        if self.texts.last() != Some(&id) {
            self.texts.push(id);
        }
    }

    /// The call that an event is about: by the item's id, else by its index, else the last one.
    fn key(&self, event: &Event) -> u64 {
        let by_id = || self.find(&event.item_id, event.output_index);
        by_id().unwrap_or(self.calls.len().saturating_sub(1)) as u64
    }

    fn find(&self, id: &str, index: Option<u64>) -> Option<usize> {
        let by_id = self.calls.iter().rposition(|call| !id.is_empty() && call.id == id);
        by_id.or_else(|| self.calls.iter().rposition(|call| index.is_some() && call.index == index))
    }

    /// A finished item, which is told as a whole: what came of it in pieces does not come again.
    fn item(&mut self, event: Event, out: &mut Vec<WireEvent>) {
        match event.item["type"].as_str() {
            Some("message") => {
                let id = words(&event.item["id"]);
                if !self.texts.contains(&id) {
                    for part in event.item["content"].as_array().into_iter().flatten() {
                        let refusal = part["refusal"].as_str().map(|text| WireEvent::Refusal(text.into()));
                        out.extend(refusal.or_else(|| Some(WireEvent::Text(part["text"].as_str()?.into()))));
                    }
                }
            }
            Some("function_call") => {
                let (id, call_id) = (words(&event.item["id"]), words(&event.item["call_id"]));
                let by_call = || self.calls.iter().rposition(|call| !call_id.is_empty() && call.call_id == call_id);
                let key = match self.find(&id, event.output_index).or_else(by_call) {
                    Some(at) => at as u64,
                    None => self.start(&event, out),
                };
                if let Some(arguments) = event.item["arguments"].as_str() {
                    out.push(WireEvent::ToolWhole { key, json: arguments.into() });
                }
            }
            Some("reasoning") => {
                out.push(WireEvent::ReasoningEnd);
                out.push(WireEvent::Native(event.item));
            }
            // What the service did by itself, such as a search: for it to read again.
            Some(_) => out.push(WireEvent::Native(event.item)),
            None => out.push(WireEvent::Unknown(event.item.to_string())),
        }
    }
}

fn end(event: Event, out: &mut Vec<WireEvent>) {
    let Response { model, status, incomplete_details, usage: counts, .. } = event.response;
    if !model.is_empty() {
        out.push(WireEvent::Model(model));
    }
    out.extend(counts.map(|counts| WireEvent::Usage(usage(&counts))));
    // Compatible services say it in one of the two places.
    let incomplete = event.kind == "response.incomplete" || status == "incomplete";
    let stop = match (incomplete, incomplete_details.reason.as_str()) {
        (false, _) => StopReason::Completed,
        (_, "content_filter") => StopReason::Filtered,
        _ => StopReason::Length,
    };
    out.extend([WireEvent::Stop(stop), WireEvent::End]);
}

fn failed(response: &Response) -> ProviderError {
    if response.error.is_null() {
        return ProviderError::new(ProviderErrorKind::Server, "the service says that the response failed, not why");
    }
    of_document(None, &response.error)
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn usage(counts: &TokenCounts) -> Usage {
    Usage {
        input_tokens: counts.input_tokens,
        output_tokens: counts.output_tokens,
        cached_input_tokens: counts.input_tokens_details.cached_tokens,
        reasoning_tokens: counts.output_tokens_details.reasoning_tokens,
    }
}
