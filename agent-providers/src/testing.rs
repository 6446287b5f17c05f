//! A client by script, for the tests of wrappers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use agent_core::{ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Delta, Result, StopReason, Usage};
use futures::{StreamExt, stream, stream::BoxStream};
use tokio::time::Instant;

/// A client that gives its answers in order, and notes when it was asked.
#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<Vec<Result<ChatUpdate>>>>>,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Vec<Result<ChatUpdate>>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    /// When it was asked, in milliseconds since the first time.
    pub(crate) fn asked(&self) -> Vec<u128> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|at| (*at - asked[0]).as_millis()).collect()
    }
}

impl ChatClient for Script {
    fn model(&self) -> &'static str {
        "scripted"
    }

    fn provider(&self) -> Option<&str> {
        Some("a script")
    }

    fn stream(&self, _request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        self.asked.lock().unwrap().push(Instant::now());
        let answer = self.answers.lock().unwrap().pop_front().expect("the script has an answer");
        stream::iter(answer).boxed()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a script")]
pub(crate) fn delta(text: &str) -> Result<ChatUpdate> {
    Ok(ChatUpdate::Delta(Delta::Text(text.into())))
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a script")]
pub(crate) fn done(text: &str) -> Result<ChatUpdate> {
    let usage = Usage { input_tokens: 60, output_tokens: 40, ..Usage::default() };
    let message = ChatMessage::assistant(text);
    Ok(ChatUpdate::Done(ChatResponse { message, usage, stop: StopReason::Completed, model: "scripted-1".into() }))
}

pub(crate) fn ask(text: &str) -> ChatRequest {
    ChatRequest { messages: [ChatMessage::user(text)].into(), ..ChatRequest::default() }
}

/// The text of an answer, or its error; and how many deltas came before.
pub(crate) async fn outcome(client: &impl ChatClient, request: ChatRequest) -> (usize, Result<String>) {
    let mut updates = client.stream(request);
    let mut deltas = 0;
    loop {
        match updates.next().await.expect("a stream ends with an answer or an error") {
            Ok(ChatUpdate::Delta(_)) => deltas += 1,
            Ok(ChatUpdate::Done(response)) => return (deltas, Ok(response.message.text())),
            Err(error) => return (deltas, Err(error)),
        }
    }
}
