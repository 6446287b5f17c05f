//! An agent that runs errands, and what it did.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Error,
    ErrorKind, Result, Role, RunContext, Session, Steps, StopReason, ToolCall, ToolContext, Usage,
    testing::PairingClient, tool_fn,
};
use futures::{StreamExt, stream, stream::BoxStream};
use serde_json::{Value, json};

use crate::durable::{
    live::Live,
    parts::{size, split},
};

#[derive(Clone, Default)]
pub(super) struct Count(Arc<AtomicU32>);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    pub(super) fn get(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

/// A model whose n-th answer in a conversation is the n-th of these: names of tools to call, or else a text.
struct Plan {
    lines: &'static [&'static [&'static str]],
    asked: Count,
}

impl ChatClient for Plan {
    fn model(&self) -> &'static str {
        "plan"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        self.asked.up();
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let Some(line) = self.lines.get(said) else {
            return stream::iter([Err(Error::new(ErrorKind::Unsupported, "say more"))]).boxed();
        };
        let call = |(at, name): (usize, &&str)| {
            let id = format!("call_{said}_{at}");
            Content::ToolCall(ToolCall { id, name: (*name).to_owned(), arguments: json!({}) })
        };
        let message = match line {
            [text] if text.contains(' ') => ChatMessage::assistant(*text),
            calls => ChatMessage::new(Role::Assistant, calls.iter().enumerate().map(call)),
        };
        let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
        let response = ChatResponse { message, usage, stop: StopReason::Completed, model: "plan".to_owned() };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    }
}

/// A process: its agent, and what it did to the world.
#[derive(Clone, Default)]
pub(super) struct World {
    pub(super) asked: Count,
    pub(super) looked: Count,
    pub(super) paid: Count,
}

impl World {
    pub(super) fn live(&self, lines: &'static [&'static [&'static str]]) -> Arc<Live> {
        self.live_on(Session::new(), lines)
    }

    pub(super) fn live_on(&self, session: Session, lines: &'static [&'static [&'static str]]) -> Arc<Live> {
        let bytes = size(&split(&session).unwrap());
        Live::new(self.steps(session, lines, RunContext::default()), None, bytes)
    }

    pub(super) fn steps(&self, session: Session, lines: &'static [&'static [&'static str]], run: RunContext) -> Steps {
        let tool = |name, count: &Count| {
            let count = count.clone();
            tool_fn(name, "Does it.", move |_: Value, _: ToolContext| {
                count.up();
                async { Ok("done") }
            })
        };
        let model = PairingClient::new(Plan { lines, asked: self.asked.clone() });
        let agent = ChatAgent::new("clerk", model, ChatAgentOptions::default())
            .tool(tool("look", &self.looked))
            .tool(tool("pay", &self.paid).needs_approval());
        let steps = Steps::new(agent, session, run);
        steps.ended_by(|session| {
            let last = session.messages().last()?;
            let is_answer = last.role == Role::Assistant && !last.text().is_empty();
            is_answer.then_some(StopReason::Completed)
        })
    }
}
