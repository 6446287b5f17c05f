//! Ollama's stream into the shared events.

use agent_core::{StopReason, Usage};
use serde_json::Value;

use super::wire::{Line, Message, ToolCall};
use crate::{
    ProviderError,
    answer::{Decode, WireEvent, read_json},
    framing::Frame,
    transport::of_document,
};

/// A reader of one stream.
#[derive(Debug, Default)]
pub(crate) struct ChatLines {
    calls: u64,
}

impl Decode for ChatLines {
    const END_OF_STREAM_ENDS: bool = false;

    fn frame(&mut self, frame: &Frame, out: &mut Vec<WireEvent>) -> Result<(), ProviderError> {
        let line = read_json::<Line>(frame)?;
        if !line.error.is_null() {
            return Err(of_document(None, &read_json(frame)?));
        }
        if line.message.is_none() && !line.done {
            out.push(WireEvent::Unknown(frame.data.clone()));
            return Ok(());
        }
        out.push(WireEvent::Model(line.model));
        self.message(line.message.unwrap_or_default(), out);
        if line.done {
            let (input_tokens, output_tokens) = (line.prompt_eval_count, line.eval_count);
            out.push(WireEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }));
            let length = line.done_reason == "length";
            out.push(WireEvent::Stop(if length { StopReason::Length } else { StopReason::Completed }));
            out.push(WireEvent::End);
        }
        Ok(())
    }
}

impl ChatLines {
    fn message(&mut self, message: Message, out: &mut Vec<WireEvent>) {
        out.extend([WireEvent::Reasoning(message.thinking), WireEvent::Text(message.content)]);
        for call in message.tool_calls {
            self.call(call, out);
        }
    }

    /// A call, which always comes whole; only newer versions give it an id.
    fn call(&mut self, call: ToolCall, out: &mut Vec<WireEvent>) {
        let key = self.calls;
        self.calls += 1;
        out.push(WireEvent::ToolStart { key, id: call.id, name: call.function.name });
        let json = match call.function.arguments {
            Value::Null => return,
            Value::String(json) => json,
            arguments => arguments.to_string(),
        };
        out.push(WireEvent::ToolArguments { key, json });
    }
}
