use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatMessage, Content, Draft, Error, ErrorKind, Result, Role, StopReason, Tool,
    ToolCall, ToolContext, agent_fn,
    testing::{PairingClient, ScriptedClient},
    tool_fn,
};
use serde_json::{Value, json};

use super::tokens;

/// Counts; clones share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count(Arc<AtomicU32>);

impl Count {
    /// One more: 1, 2, 3, …
    pub(crate) fn up(&self) -> u32 {
        self.0.fetch_add(1, SeqCst) + 1
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

/// An agent that in its k-th run (from 1) records and ends as the function says.
pub(crate) fn acts<F>(name: &str, f: F) -> (impl Agent + 'static, Count)
where
    F: Fn(u32) -> (Vec<Draft>, Result<StopReason>) + Send + Sync + 'static,
{
    let (runs, f) = (Count::default(), Arc::new(f));
    let counted = runs.clone();
    let agent = agent_fn(name, move |session, out| {
        let (drafts, end) = f(counted.up());
        Box::pin(async move {
            for draft in drafts {
                out.record(session, draft).await;
            }
            end
        })
    });
    (agent, runs)
}

/// An agent that says `1`, `2`, … and completes.
pub(crate) fn says(name: &str) -> (impl Agent + 'static, Count) {
    acts(name, |run| (vec![answer(run)], Ok(StopReason::Completed)))
}

/// As [`says`], using 10 + 1 tokens in each run.
pub(crate) fn spends(name: &str) -> (impl Agent + 'static, Count) {
    acts(name, |run| (vec![answer(run).usage(tokens(10, 1))], Ok(StopReason::Completed)))
}

/// An agent that says nothing and escalates in its runs of these numbers.
pub(crate) fn escalates(name: &str, at: &[u32]) -> (impl Agent + 'static, Count) {
    let at = at.to_vec();
    acts(name, move |run| {
        if at.contains(&run) {
            (vec![Draft::default().escalate()], Ok(StopReason::Escalated))
        } else {
            (vec![], Ok(StopReason::Completed))
        }
    })
}

fn answer(run: u32) -> Draft {
    Draft::message(ChatMessage::assistant(run.to_string()))
}

/// An error, as a failing service gives.
pub(crate) fn boom() -> Error {
    Error::new(ErrorKind::Provider, "boom")
}

/// A chat agent over a model that refuses what strict services refuse.
pub(crate) fn chat(name: &str, client: &ScriptedClient) -> ChatAgent {
    ChatAgent::new(name, PairingClient::new(client.clone()), ChatAgentOptions::default())
}

/// A tool that counts its runs and needs approval.
pub(crate) fn gated(name: &str) -> (impl Tool + 'static, Count) {
    let runs = Count::default();
    let counted = runs.clone();
    let tool = tool_fn(name, "Does it.", move |_: Value, _: ToolContext| {
        let run = counted.up();
        async move { Ok(format!("run {run}")) }
    });
    (tool.needs_approval(), runs)
}

pub(crate) fn tool_call(id: &str, name: &str) -> Content {
    Content::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: json!({}) })
}

/// A model's answer that is several calls.
pub(crate) fn tool_turn(calls: &[(&str, &str)]) -> ChatMessage {
    ChatMessage::new(Role::Assistant, calls.iter().map(|(id, name)| tool_call(id, name)))
}
