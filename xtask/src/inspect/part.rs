//! What an event says and does, part by part.

use agent_core::{ChatMessage, Content, Event, Role, Session, StateChange};
use agent_loop::{IterationRecord, LoopOutcome};
use serde_json::Value;

use super::format;

/// One thing that an event says or does.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// Who spoke or acted.
    pub(super) who: String,
    pub(super) text: String,
    /// What makes another part the same, if any could be: the same text, the same call, an iteration of the same work.
    pub(super) sameness: Option<String>,
    /// Set if an earlier part is the same.
    pub(super) repeat: Option<Repeat>,
}

/// A part that was there before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repeat {
    /// The number of the first event that has it.
    pub(super) first: usize,
    /// Which time it is, from 2.
    pub(super) times: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Request,
    Feedback,
    System,
    Answer,
    Thoughts,
    Call,
    Result,
    Error,
    Data,
    Approval,
    Approved,
    Rejected,
    Verdict,
    Loop,
    State,
    Rewind,
    Escalation,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Feedback => "feedback",
            Self::System => "system",
            Self::Answer => "answer",
            Self::Thoughts => "thoughts",
            Self::Call => "call",
            Self::Result => "result",
            Self::Error => "error",
            Self::Data => "data",
            Self::Approval => "approval?",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Verdict => "verdict",
            Self::Loop => "loop",
            Self::State => "state",
            Self::Rewind => "rewind",
            Self::Escalation => "escalates",
        }
    }
}

/// The tools' names and the calls as texts, by the ids of the calls; services reuse ids, so the last one counts.
pub(super) type Calls = std::collections::HashMap<String, (String, String)>;

/// What an event comes to, in the order in which it is applied: to a session of so many messages, which was `after`
/// afterwards.
pub(super) fn parts(event: &Event, messages: usize, after: &Session, calls: &mut Calls) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(keep) = event.rewind {
        let all = format::count(messages, "message");
        parts.push(act(event, Kind::Rewind, format!("keeps {keep} of {all}")));
    }
    let finished = IterationRecord::of(event);
    if let Some((name, record)) = &finished {
        parts.push(verdict(event, name, record, after));
    }
    for message in &event.messages {
        parts.extend(message.contents.iter().filter_map(|content| said(event, message, content, calls)));
    }
    for change in &event.state {
        parts.extend(changed(event, change, finished.is_some(), after));
    }
    if event.escalate {
        parts.push(act(event, Kind::Escalation, "asks the enclosing loop to end".to_owned()));
    }
    parts
}

fn said(event: &Event, message: &ChatMessage, content: &Content, calls: &mut Calls) -> Option<Part> {
    let who = message.author.as_deref().unwrap_or(&event.author).to_owned();
    let of = |kind: Kind, text: String| {
        let sameness = Some(format!("{}\0{text}", kind.name()));
        Part { kind, who: who.clone(), text, sameness, repeat: None }
    };
    let call_of = |id: &str| calls.get(id).cloned().unwrap_or_else(|| (id.to_owned(), String::new()));
    Some(match content {
        Content::Text(text) if text.is_empty() => return None,
        Content::Text(text) => of(spoken_as(event, message), text.clone()),
        Content::Reasoning { text, .. } => of(Kind::Thoughts, text.clone()),
        Content::Data { mime_type, data } => {
            of(Kind::Data, format!("{mime_type}, {} bytes", format::number(data.len() as u64)))
        }
        Content::Uri { mime_type, uri } => {
            of(Kind::Data, [mime_type.as_deref().unwrap_or_default(), uri].join(" ").trim().to_owned())
        }
        Content::ToolCall(call) => {
            let text = call_text(&call.name, &call.arguments);
            calls.insert(call.id.clone(), (call.name.clone(), text.clone()));
            of(Kind::Call, text)
        }
        Content::InvalidToolCall { id, name, raw, why } => {
            calls.insert(id.clone(), (name.clone(), raw.clone()));
            of(Kind::Call, format!("{name}({raw}) — unreadable: {why}"))
        }
        Content::ToolResult(result) => {
            let (name, call) = call_of(&result.call_id);
            let texts: Vec<String> = result.contents.iter().map(result_text).collect();
            let kind = if result.is_error { Kind::Error } else { Kind::Result };
            let part = of(kind, format!("{name} → {}", texts.join("\n")));
            // The same answer to another call is no repetition.
            Part { sameness: part.sameness.map(|same| format!("{same}\0{call}")), ..part }
        }
        Content::Native { provider, model, value } => of(Kind::Data, format!("{provider} ({model}): {value}")),
        Content::ApprovalRequest(call) => of(Kind::Approval, call_text(&call.name, &call.arguments)),
        Content::ApprovalResponse { call_id, approved, reason } => {
            let (_, call) = call_of(call_id);
            let kind = if *approved { Kind::Approved } else { Kind::Rejected };
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let what = if call.is_empty() { call_id } else { &call };
            Part { sameness: None, ..of(kind, format!("{what}{reason}")) }
        }
    })
}

fn spoken_as(event: &Event, message: &ChatMessage) -> Kind {
    match message.role {
        Role::System => Kind::System,
        Role::Assistant => Kind::Answer,
        Role::Tool => Kind::Result,
        Role::User if &*event.author == Event::CALLER => Kind::Request,
        Role::User => Kind::Feedback,
    }
}

fn result_text(content: &Content) -> String {
    match content {
        Content::Text(text) | Content::Reasoning { text, .. } => text.clone(),
        Content::Data { mime_type, data } => format!("[{mime_type}, {} bytes]", format::number(data.len() as u64)),
        Content::Uri { uri, .. } => uri.clone(),
        Content::ToolCall(_)
        | Content::ToolResult(_)
        | Content::InvalidToolCall { .. }
        | Content::Native { .. }
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => serde_json::to_string(content).unwrap_or_default(),
    }
}

/// A call as a reader of programs knows it.
pub(super) fn call_text(name: &str, arguments: &Value) -> String {
    match arguments {
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{name}({})", fields.join(", "))
        }
        Value::Null => format!("{name}()"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => format!("{name}({arguments})"),
    }
}

fn verdict(event: &Event, name: &str, record: &IterationRecord, after: &Session) -> Part {
    let number = LoopOutcome::of(after, name).map_or(0, |outcome| outcome.iterations.len());
    let by = record.by.as_ref().map_or_else(|| "nobody objected".to_owned(), |by| format!("decided by {by}"));
    let tokens = format::number(record.usage.total());
    let text = format!("{name} #{number}: {by} · {tokens} tokens · {}", format::duration(record.millis));
    // Iterations of one digest said and did the same.
    let sameness = Some(format!("verdict\0{name}\0{}", record.digest));
    Part { sameness, ..act(event, Kind::Verdict, text) }
}

/// A change of the state, but for what a [`Kind::Verdict`] tells.
fn changed(event: &Event, change: &StateChange, has_verdict: bool, after: &Session) -> Option<Part> {
    let text = match change {
        StateChange::Set { key, value } => match key.strip_prefix("loop:").and_then(|name| loop_text(name, after)) {
            Some(text) => return Some(act(event, Kind::Loop, text)),
            None => format!("{key} = {value}"),
        },
        StateChange::Append { key, .. } if has_verdict && is_loop_list(key) => return None,
        StateChange::Remove { key } if is_loop_list(key) => return None,
        StateChange::Append { key, value } => format!("{key} += {value}"),
        StateChange::Remove { key } => format!("{key} is removed"),
    };
    Some(act(event, Kind::State, text))
}

pub(super) fn is_loop_list(key: &str) -> bool {
    key.starts_with("loop:") && key.ends_with(":iterations")
}

fn loop_text(name: &str, after: &Session) -> Option<String> {
    let LoopOutcome { stop, by, why, iterations } = LoopOutcome::of(after, name)?;
    let Some(stop) = stop else {
        let verb = if iterations.is_empty() { "begins" } else { "goes on" };
        return Some(format!("{name} {verb}"));
    };
    let by = by.map(|by| format!(", by {by}")).unwrap_or_default();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!("{name} ends, {stop}{by}{why}"))
}

fn act(event: &Event, kind: Kind, text: String) -> Part {
    Part { kind, who: event.author.to_string(), text, sameness: None, repeat: None }
}
