//! A stand-in for a model: answers that a person wrote.

use std::sync::Arc;

use agent_core::{
    ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Delta, Error, ErrorKind, Result, Role,
    StopReason, ToolCall, Usage,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde::Deserialize;
use serde_json::Value;

/// A model that is none: it reads its answers from a script that a person wrote, and costs no tokens.
///
/// For examples about tools, which the smallest real models call too rarely to be recorded. A script has no memory: its
/// n-th line is the n-th answer since the user spoke, so another process can go on with it.
#[derive(Debug, Clone)]
pub struct Script {
    lines: Arc<[Line]>,
}

/// One answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    thinks: String,
    #[serde(default)]
    says: String,
    /// Said instead if the last tool call failed.
    says_on_error: Option<String>,
    #[serde(default)]
    calls: Vec<(String, Value)>,
}

impl Script {
    /// The script in a text: one JSON object a line, `{"thinks": "…", "says": "…", "says_on_error": "…",
    /// "calls": [["tool", {…}]]}`, each field optional.
    ///
    /// # Errors
    /// If a line is none.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        let lines = lines.map_err(|error| Error::new(ErrorKind::Invalid, "read the script").with_source(error))?;
        Ok(Self { lines })
    }

    fn answer(&self, request: &ChatRequest) -> Result<Vec<ChatUpdate>> {
        let since_user = request.messages.rsplit(|message| message.role == Role::User).next().unwrap_or_default();
        let said = since_user.iter().filter(|message| message.role == Role::Assistant).count();
        let has_failed = since_user.last().is_some_and(|message| message.tool_results().any(|result| result.is_error));
        let line = self.lines.get(said).ok_or_else(|| {
            let context = format!("ask the script for answer {}: it has {}", said + 1, self.lines.len());
            Error::new(ErrorKind::Contract, context)
        })?;
        let mut updates = Vec::new();
        let mut contents = Vec::new();
        if !line.thinks.is_empty() {
            updates.push(ChatUpdate::Delta(Delta::Reasoning(line.thinks.clone())));
            contents.push(Content::Reasoning { text: line.thinks.clone(), signature: None });
        }
        let says = line.says_on_error.as_ref().filter(|_| has_failed).unwrap_or(&line.says);
        if !says.is_empty() {
            updates.extend(says.split_inclusive(' ').map(|word| ChatUpdate::Delta(Delta::Text(word.to_owned()))));
            contents.push(Content::Text(says.clone()));
        }
        contents.extend(line.calls.iter().enumerate().map(|(at, (name, arguments))| {
            let id = format!("call_{}_{}", said + 1, at + 1);
            Content::ToolCall(ToolCall { id, name: name.clone(), arguments: arguments.clone() })
        }));
        updates.push(ChatUpdate::Done(ChatResponse {
            message: ChatMessage::new(Role::Assistant, contents),
            usage: Usage::default(),
            stop: StopReason::Completed,
            model: self.model().to_owned(),
        }));
        Ok(updates)
    }
}

impl ChatClient for Script {
    fn model(&self) -> &'static str {
        "hand-written script"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        match self.answer(&request) {
            Ok(updates) => stream::iter(updates.into_iter().map(Ok)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}
