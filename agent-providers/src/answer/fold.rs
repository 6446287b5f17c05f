//! Adds a stream's events up to one answer.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use agent_core::{ChatMessage, ChatResponse, ChatUpdate, Content, Delta, Role, StopReason, ToolCall, Usage};
use serde_json::{Map, Value};

use super::WireEvent;

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct Answer {
    service: Arc<str>,
    asked: String,
    model: Option<String>,
    parts: Vec<Part>,
    calls: HashMap<u64, usize>,
    usage: Usage,
    stop: Option<StopReason>,
    refused: bool,
    ended: bool,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Reasoning { text: String, signature: Option<String>, open: bool },
    Call { id: String, name: String, raw: String },
    Data { mime_type: String, data: Vec<u8> },
    Native(Value),
}

impl Answer {
    /// An answer by `service`, of which the model `asked` was asked for.
    pub(crate) fn new(service: impl Into<Arc<str>>, asked: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            asked: asked.into(),
            model: None,
            parts: Vec::new(),
            calls: HashMap::new(),
            usage: Usage::default(),
            stop: None,
            refused: false,
            ended: false,
        }
    }

    /// Whether the answer is complete.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether the service said why the answer ends.
    pub(crate) fn has_stop(&self) -> bool {
        self.stop.is_some()
    }

    /// How many tool calls it has so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Takes what happened next; what is to be displayed of it is appended.
    pub(crate) fn apply(&mut self, event: WireEvent, out: &mut VecDeque<ChatUpdate>) {
        match event {
            WireEvent::Model(model) if model.is_empty() => {}
            WireEvent::Model(model) => self.model = Some(model),
            WireEvent::Text(text) => self.add_text(text, out),
            WireEvent::Refusal(text) => {
                self.refused = true;
                self.add_text(text, out);
            }
            WireEvent::Reasoning(text) => self.add_reasoning(text, out),
            WireEvent::ReasoningEnd => self.close_reasoning(),
            WireEvent::Signature(proof) => self.sign(proof),
            WireEvent::ToolStart { key, id, name } => self.start_call(key, id, name),
            WireEvent::ToolArguments { key, json } => self.add_arguments(key, json, out),
            WireEvent::ToolWhole { key, json } => self.set_arguments(key, json, out),
            WireEvent::Data { mime_type, data } => self.parts.push(Part::Data { mime_type, data }),
            WireEvent::Native(value) => self.parts.push(Part::Native(value)),
            WireEvent::Usage(usage) => self.count(usage),
            WireEvent::Stop(stop) => self.stop = Some(stop),
            WireEvent::GoesOn => self.stop = None,
            WireEvent::End => self.ended = true,
            WireEvent::Unknown(raw) => tracing::debug!(service = &*self.service, len = raw.len(), "unknown event"),
        }
    }

    /// The whole answer.
    pub(crate) fn finish(self) -> ChatResponse {
        let stop = match self.stop {
            Some(StopReason::Completed) | None if self.refused => StopReason::Filtered,
            stop => stop.unwrap_or(StopReason::Completed),
        };
        let model = self.model.unwrap_or_else(|| self.asked.clone());
        let (service, asked) = (self.service, self.asked);
        let contents = self.parts.into_iter().filter_map(|part| part.into_content(&service, &asked, stop));
        ChatResponse { message: ChatMessage::new(Role::Assistant, contents), usage: self.usage, stop, model }
    }

    fn add_text(&mut self, piece: String, out: &mut VecDeque<ChatUpdate>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(&piece),
            _ => self.parts.push(Part::Text(piece.clone())),
        }
        out.push_back(ChatUpdate::Delta(Delta::Text(piece)));
    }

    fn add_reasoning(&mut self, piece: String, out: &mut VecDeque<ChatUpdate>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Reasoning { text, open: true, .. }) => text.push_str(&piece),
            _ => self.parts.push(Part::Reasoning { text: piece.clone(), signature: None, open: true }),
        }
        out.push_back(ChatUpdate::Delta(Delta::Reasoning(piece)));
    }

    fn close_reasoning(&mut self) {
        if let Some(Part::Reasoning { open, .. }) = self.parts.last_mut() {
            *open = false;
        }
    }

    fn sign(&mut self, proof: String) {
        match self.parts.last_mut() {
            Some(Part::Reasoning { signature, open: true, .. }) => signature.get_or_insert_default().push_str(&proof),
            _ => self.parts.push(Part::Reasoning { text: String::new(), signature: Some(proof), open: true }),
        }
    }

    fn start_call(&mut self, key: u64, id: Option<String>, name: String) {
        let at = self.parts.len();
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{at}"));
        self.parts.push(Part::Call { id, name, raw: String::new() });
        self.calls.insert(key, at);
    }

    fn add_arguments(&mut self, key: u64, json: String, out: &mut VecDeque<ChatUpdate>) {
        let at = self.call_at(key);
        if let Part::Call { id, raw, .. } = &mut self.parts[at]
            && !json.is_empty()
        {
            raw.push_str(&json);
            out.push_back(ChatUpdate::Delta(Delta::ToolArguments { call_id: id.clone(), json }));
        }
    }

    fn set_arguments(&mut self, key: u64, json: String, out: &mut VecDeque<ChatUpdate>) {
        let at = self.call_at(key);
        let Part::Call { raw, .. } = &mut self.parts[at] else { return };
        if raw.is_empty() {
            self.add_arguments(key, json, out); // not told yet
        } else {
            *raw = json;
        }
    }

    /// The place of a call; arguments of a call that never began make one without a name.
    fn call_at(&mut self, key: u64) -> usize {
        if let Some(at) = self.calls.get(&key) {
            return *at;
        }
        self.start_call(key, None, String::new());
        self.parts.len() - 1
    }

    fn count(&mut self, next: Usage) {
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = &mut self.usage;
        *input_tokens = next.input_tokens.max(*input_tokens);
        *output_tokens = next.output_tokens.max(*output_tokens);
        *cached_input_tokens = next.cached_input_tokens.max(*cached_input_tokens);
        *reasoning_tokens = next.reasoning_tokens.max(*reasoning_tokens);
    }
}

impl Part {
    fn into_content(self, service: &str, model: &str, stop: StopReason) -> Option<Content> {
        Some(match self {
            Self::Text(text) => Content::Text(text),
            Self::Reasoning { text, signature: None, .. } if text.is_empty() => return None,
            Self::Reasoning { text, signature, .. } => Content::Reasoning { text, signature },
            Self::Data { mime_type, data } => Content::Data { mime_type, data },
            Self::Native(value) => Content::Native { provider: service.into(), model: model.into(), value },
            Self::Call { id, name, raw } => match read_arguments(&name, &raw, stop) {
                Ok(arguments) => Content::ToolCall(ToolCall { id, name, arguments }),
                Err(why) => Content::InvalidToolCall { id, name, raw, why },
            },
        })
    }
}

/// A call's arguments: a JSON object, or why they are none. Nothing is repaired.
fn read_arguments(name: &str, raw: &str, stop: StopReason) -> Result<Value, String> {
    let cut = stop == StopReason::Length;
    if name.is_empty() {
        return Err("the call names no tool".into());
    }
    if raw.trim().is_empty() && !cut {
        return Ok(Value::Object(Map::new())); // how services write a call without arguments
    }
    match serde_json::from_str(raw) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(arguments @ Value::Object(_)) if depth(&arguments) > DEEPEST => {
            Err(format!("the arguments nest deeper than {DEEPEST} levels"))
        }
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err("the arguments are no JSON object".into()),
        Err(_) if cut => Err("the arguments were cut off by the output limit".into()),
        Err(error) => Err(format!("the arguments are no JSON: {error}")),
    }
}

/// How deep arguments may nest. JSON's reader goes 128 levels deep, and a session that is stored has some around them.
const DEEPEST: usize = 100;

/// How many lists and objects are within each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
