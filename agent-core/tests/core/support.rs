//! Scripts, tools that keep a log, and histories as text.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use agent_core::{
    Agent, BoxError, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate,
    Content, Error, Event, Limits, Result, Role, RunContext, Session, StateChange, StopReason, Tool, ToolCall,
    ToolContext, ToolOutput, ToolResult, Update, Updates, Usage,
    testing::{PairingClient, ScriptedClient},
    tool_fn,
};
use futures::{StreamExt, stream, stream::BoxStream};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) fn tool_call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

/// A call without arguments.
pub(crate) fn call(id: &str, name: &str) -> Content {
    Content::ToolCall(tool_call(id, name, json!({})))
}

pub(crate) fn request(id: &str, name: &str) -> Content {
    Content::ApprovalRequest(tool_call(id, name, json!({})))
}

pub(crate) fn invalid_call(id: &str, name: &str) -> Content {
    let (raw, why) = ("{\"a".to_owned(), "it was cut".to_owned());
    Content::InvalidToolCall { id: id.to_owned(), name: name.to_owned(), raw, why }
}

pub(crate) fn answer(call_id: &str, approved: bool) -> Content {
    Content::ApprovalResponse { call_id: call_id.to_owned(), approved, reason: None }
}

pub(crate) fn thought(text: &str) -> Content {
    Content::Reasoning { text: text.to_owned(), signature: None }
}

pub(crate) fn text(text: &str) -> Content {
    Content::Text(text.to_owned())
}

pub(crate) fn result(call_id: &str, said: &str) -> ChatMessage {
    let result = ToolResult { call_id: call_id.to_owned(), contents: vec![text(said)], is_error: false };
    ChatMessage::new(Role::Tool, [Content::ToolResult(result)])
}

/// An assistant message of these parts.
pub(crate) fn asks(contents: impl IntoIterator<Item = Content>) -> ChatMessage {
    ChatMessage::new(Role::Assistant, contents)
}

pub(crate) fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

/// A model that gives these answers, in order.
pub(crate) fn replies(messages: impl IntoIterator<Item = ChatMessage>) -> ScriptedClient {
    messages.into_iter().fold(ScriptedClient::new(), |client, message| client.reply(message, Usage::default()))
}

/// An agent whose model refuses malformed conversations.
pub(crate) fn agent(name: &str, client: &ScriptedClient) -> ChatAgent {
    agent_with(name, client, ChatAgentOptions::default())
}

pub(crate) fn agent_with(name: &str, client: &ScriptedClient, options: ChatAgentOptions) -> ChatAgent {
    ChatAgent::new(name, PairingClient::new(client.clone()), options)
}

pub(crate) fn session(words: &str) -> Session {
    let mut session = Session::new();
    session.push(words);
    session
}

/// What happened, in order. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A tool that notes its name and arguments, and says "done".
pub(crate) fn noted(name: &'static str, log: &Log) -> Box<dyn Tool> {
    Box::new(tool_fn(name, "", noting(log)))
}

/// As [`noted`], after an approval.
pub(crate) fn guarded(name: &'static str, log: &Log) -> Box<dyn Tool> {
    Box::new(tool_fn(name, "", noting(log)).needs_approval())
}

fn noting(log: &Log) -> impl Fn(Value, ToolContext) -> std::future::Ready<Result<&'static str, BoxError>> + use<> {
    let log = log.clone();
    move |_, cx| {
        let ToolCall { name, arguments, .. } = &cx.call;
        log.note(if *arguments == json!({}) { name.clone() } else { format!("{name} {arguments}") });
        std::future::ready(Ok("done"))
    }
}

/// A tool that always comes to this.
pub(crate) fn constant(name: &'static str, output: ToolOutput) -> Box<dyn Tool> {
    Box::new(tool_fn(name, "", move |_: Value, _: ToolContext| std::future::ready(Ok::<_, BoxError>(output.clone()))))
}

/// A tool that never ends.
pub(crate) fn endless(name: &'static str) -> Box<dyn Tool> {
    let never = |_: Value, _: ToolContext| std::future::pending::<Result<String, BoxError>>();
    Box::new(tool_fn(name, "", never))
}

/// A model from a function of the request.
pub(crate) struct FnClient<F>(pub(crate) F);

impl<F> ChatClient for FnClient<F>
where
    F: Fn(ChatRequest) -> BoxStream<'static, Result<ChatUpdate>> + Send + Sync,
{
    fn model(&self) -> &'static str {
        "function"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        (self.0)(request)
    }
}

/// A model whose every answer is this, ended so.
pub(crate) fn ends(message: ChatMessage, stop: StopReason) -> impl ChatClient {
    FnClient(move |_| {
        let response = ChatResponse { message: message.clone(), usage: tokens(1, 1), stop, model: "m".to_owned() };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    })
}

/// A model that never answers.
pub(crate) fn silent() -> impl ChatClient {
    FnClient(|_| stream::pending().boxed())
}

pub(crate) fn limited(limits: Limits) -> RunContext {
    RunContext::new(limits)
}

/// An event outside of any run.
pub(crate) fn event(author: &str, messages: Vec<ChatMessage>, state: Vec<StateChange>) -> Event {
    let (id, run, author) = (Uuid::now_v7(), Uuid::nil(), author.into());
    Event { id, run, author, path: Arc::from([]), rewind: None, messages, state, usage: None, escalate: false }
}

pub(crate) fn set(key: &str, value: impl Into<Value>) -> StateChange {
    StateChange::Set { key: key.into(), value: value.into() }
}

/// Pulls so many updates and drops the run; `true` if it had ended by then.
pub(crate) async fn cut(mut run: Updates<'_>, after: usize) -> bool {
    for _ in 0..after {
        match run.next().await {
            Some(update) => drop(update.unwrap()),
            None => return true,
        }
    }
    false
}

pub(crate) async fn collect(run: Updates<'_>) -> Vec<Result<Update>> {
    run.collect().await
}

pub(crate) async fn updates_of(agent: &dyn Agent, session: &mut Session, cx: &RunContext) -> Vec<Update> {
    agent.run(session, cx).map(|update| update.unwrap()).collect().await
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// An error and its causes on one line.
pub(crate) fn told(error: &Error) -> String {
    let mut text = format!("{:?}: {error}", error.kind());
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        write!(text, ": {cause}").unwrap();
        next = cause.source();
    }
    text
}

/// Messages as text, one line for each.
pub(crate) fn show<'a>(messages: impl IntoIterator<Item = &'a ChatMessage>) -> String {
    let lines = messages.into_iter().map(|message| {
        let author = message.author.as_ref().map(|author| format!("({author})")).unwrap_or_default();
        let contents: Vec<String> = message.contents.iter().map(show_content).collect();
        format!("{}{author}: {}", format!("{:?}", message.role).to_lowercase(), contents.join(" + "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What a model saw in its request `at`.
pub(crate) fn seen(client: &ScriptedClient, at: usize) -> String {
    show(client.requests()[at].messages.iter())
}

fn show_call(ToolCall { id, name, arguments }: &ToolCall) -> String {
    if *arguments == json!({}) { format!("{id} {name}") } else { format!("{id} {name} {arguments}") }
}

fn show_content(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Reasoning { text, .. } => format!("<{text}>"),
        Content::Data { mime_type, data } => format!("{mime_type} of {} bytes", data.len()),
        Content::Uri { uri, .. } => uri.clone(),
        Content::ToolCall(call) => format!("call {}", show_call(call)),
        Content::ToolResult(result) => {
            format!("{}{} {}", result.call_id, if result.is_error { " !" } else { " =" }, result.text())
        }
        Content::InvalidToolCall { id, name, raw, .. } => format!("invalid {id} {name} {raw}"),
        Content::Native { provider, value, .. } => format!("{provider} {value}"),
        Content::ApprovalRequest(call) => format!("may {}?", show_call(call)),
        Content::ApprovalResponse { call_id, approved, reason } => {
            format!("{} {call_id}{}", if *approved { "yes" } else { "no" }, reason.as_deref().unwrap_or_default())
        }
    }
}
