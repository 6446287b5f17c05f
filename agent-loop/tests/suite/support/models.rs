use std::sync::Arc;

use agent_core::{ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Result, StopReason, Usage};
use futures::{
    StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};

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
