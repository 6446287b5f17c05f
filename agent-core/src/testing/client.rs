//! A model that answers from a script.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use serde_json::Value;

use super::lock;
use crate::{
    ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Delta, Error, ErrorKind, Result, Role,
    StopReason, ToolCall, Usage,
};

/// A model that gives one answer of its script for each request, streaming texts word by word, and keeps the
/// requests. A request past the script's end is a [`Contract`](ErrorKind::Contract) error.
///
/// ```
/// use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Session, testing::ScriptedClient};
///
/// # let test = async {
/// let client = ScriptedClient::new().says("4").says("5");
/// let agent = ChatAgent::new("adder", client.clone(), ChatAgentOptions::default());
/// let mut session = Session::new();
/// assert_eq!(agent.ask(&mut session, "2 + 2?").await?.text(), "4");
/// assert_eq!(agent.ask(&mut session, "2 + 3?").await?.text(), "5");
/// assert_eq!(client.requests()[1].messages.len(), 3);
/// # Ok::<_, agent_core::Error>(()) };
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScriptedClient {
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    replies: VecDeque<(ChatMessage, Usage)>,
    requests: Vec<ChatRequest>,
}

impl ScriptedClient {
    /// An empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next answer is this text; it uses no tokens.
    pub fn says(self, text: impl Into<String>) -> Self {
        self.reply(ChatMessage::assistant(text), Usage::default())
    }

    /// The next answer is one tool call.
    pub fn calls(self, id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        let call = ToolCall { id: id.into(), name: name.into(), arguments };
        self.reply(ChatMessage::new(Role::Assistant, [Content::ToolCall(call)]), Usage::default())
    }

    /// The next answer is this message, which used these tokens.
    pub fn reply(self, message: ChatMessage, usage: Usage) -> Self {
        lock(&self.script).replies.push_back((message, usage));
        self
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        lock(&self.script).requests.clone()
    }
}

impl ChatClient for ScriptedClient {
    fn model(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let mut script = lock(&self.script);
        script.requests.push(request);
        let Some((message, usage)) = script.replies.pop_front() else {
            let context = format!("answer request {}: the script has no more answers", script.requests.len());
            return stream::iter([Err(Error::new(ErrorKind::Contract, context))]).boxed();
        };
        let words: Vec<String> = message.text().split_inclusive(' ').map(str::to_owned).collect();
        let model = self.model().to_owned();
        let done = ChatUpdate::Done(ChatResponse { message, usage, stop: StopReason::Completed, model });
        let deltas = words.into_iter().map(|word| Ok(ChatUpdate::Delta(Delta::Text(word))));
        stream::iter(deltas.chain([Ok(done)])).boxed()
    }
}
