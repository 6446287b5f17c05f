//! A stand-in for a model that answers anything, word by word.

use std::time::Duration;

use agent_core::{
    ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Delta, Result, Role, StopReason, Usage,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

/// A model that is none: it repeats the last message, and says how many there were.
#[derive(Debug, Clone)]
pub struct Parrot {
    pause: Duration,
}

impl Parrot {
    /// One that takes this long for each word.
    pub fn new(pause: Duration) -> Self {
        Self { pause }
    }
}

impl ChatClient for Parrot {
    fn model(&self) -> &'static str {
        "parrot"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let heard: Vec<_> = request.messages.iter().filter(|message| message.role == Role::User).collect();
        let last = heard.last().map(|message| message.text()).unwrap_or_default();
        let answer = format!("Message {} was: {last}", heard.len());
        let words: Vec<String> = answer.split_inclusive(' ').map(str::to_owned).collect();
        let done = ChatUpdate::Done(ChatResponse {
            message: ChatMessage::assistant(answer),
            usage: Usage::default(),
            stop: StopReason::Completed,
            model: self.model().to_owned(),
        });
        let deltas = stream::iter(words).then(|word| async {
            tokio::time::sleep(self.pause).await;
            Ok(ChatUpdate::Delta(Delta::Text(word)))
        });
        deltas.chain(stream::iter([Ok(done)])).boxed()
    }
}
