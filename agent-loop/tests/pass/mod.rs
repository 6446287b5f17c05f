//! One pass, as an evaluator is told of it, and models from functions.

use std::sync::Arc;

use agent_core::{
    AgentExt, AgentResponse, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Draft, Result, RunContext,
    Session, StopReason, Usage, testing::ScriptedAgent,
};
use agent_loop::LoopContext;
use futures::{
    StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};

/// A pass that has ended.
pub(crate) struct Pass {
    pub(crate) session: Session,
    pub(crate) run: RunContext,
    last: AgentResponse,
    request: usize,
}

impl Pass {
    /// The caller asks this, and an agent says these.
    pub(crate) async fn new(request: impl Into<ChatMessage>, says: impl IntoIterator<Item = ChatMessage>) -> Self {
        let (mut session, run) = (Session::new(), RunContext::default());
        session.push(request);
        let draft = says.into_iter().fold(Draft::default(), Draft::say);
        let agent = ScriptedAgent::new("writer").turn(draft, StopReason::Completed);
        let last = agent.complete(&mut session, &run).await.unwrap();
        Self { session, run, last, request: 1 }
    }

    /// The caller asks for anything, and an agent answers with this text.
    pub(crate) async fn answer(text: &str) -> Self {
        Self::new("Do it.", [ChatMessage::assistant(text)]).await
    }

    pub(crate) fn cx(&self) -> LoopContext<'_> {
        LoopContext {
            session: &self.session,
            request: &self.session.messages()[..self.request],
            iteration: 1,
            is_last: false,
            earlier: &[],
            last: &self.last,
            run: &self.run,
        }
    }
}

/// A model that answers each request with what a function says.
#[derive(Clone)]
pub(crate) struct ClientFn(Arc<dyn Fn(ChatRequest) -> BoxFuture<'static, Result<ChatResponse>> + Send + Sync>);

pub(crate) fn client_fn(
    answer: impl Fn(ChatRequest) -> BoxFuture<'static, Result<ChatResponse>> + Send + Sync + 'static,
) -> ClientFn {
    ClientFn(Arc::new(answer))
}

impl ChatClient for ClientFn {
    fn model(&self) -> &'static str {
        "a model"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let answer = (self.0)(request);
        stream::once(async move { answer.await.map(ChatUpdate::Done) }).boxed()
    }
}

/// A whole answer.
pub(crate) fn response(message: ChatMessage, usage: Usage) -> ChatResponse {
    ChatResponse { message, usage, stop: StopReason::Completed, model: "a model".to_owned() }
}

pub(crate) fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}
