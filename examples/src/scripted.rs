//! A stand-in for a model: answers that a person wrote.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

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

/// A model that is none: it reads its answers from a script that a person wrote.
///
/// For examples about tools, which the smallest real models call too rarely to be recorded, and about judging, which
/// they cannot. A script has no memory: its n-th line is the n-th answer since the user spoke, so another process can
/// go on with it. One [in order](Self::in_order) remembers what it said.
#[derive(Debug, Clone)]
pub struct Script {
    lines: Arc<[Line]>,
    /// How many answers were given, if that decides about the next one.
    given: Option<Arc<AtomicUsize>>,
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
    /// Input and output tokens.
    #[serde(default)]
    tokens: (u64, u64),
}

impl Script {
    /// The script in a text: one JSON object a line, `{"thinks": "…", "says": "…", "says_on_error": "…",
    /// "calls": [["tool", {…}]], "tokens": [0, 0]}`, each field optional.
    ///
    /// # Errors
    /// If a line is none.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        let lines = lines.map_err(|error| Error::new(ErrorKind::Invalid, "read the script").with_source(error))?;
        Ok(Self { lines, given: None })
    }

    /// The same, whose n-th line is its n-th answer, whatever it is asked: for loops, whose feedback is the user's
    /// words, and for judges.
    pub fn in_order(self) -> Self {
        Self { given: Some(Arc::default()), ..self }
    }

    fn answer(&self, request: &ChatRequest) -> Result<Vec<ChatUpdate>> {
        let since_user = request.messages.rsplit(|message| message.role == Role::User).next().unwrap_or_default();
        let said = match &self.given {
            Some(given) => given.fetch_add(1, Relaxed),
            None => since_user.iter().filter(|message| message.role == Role::Assistant).count(),
        };
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
            usage: Usage { input_tokens: line.tokens.0, output_tokens: line.tokens.1, ..Usage::default() },
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
