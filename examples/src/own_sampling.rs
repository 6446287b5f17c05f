//! What a live service is asked for.

use agent_core::{ChatClient, ChatOptions, ChatRequest, ChatUpdate, Result};
use futures::stream::BoxStream;

/// A model that samples as its service does by default. The examples ask for repeatable answers, which not every
/// service can give: some take no seed, some models no temperature, and thinking models need more room.
#[derive(Debug)]
pub(crate) struct OwnSampling<C>(pub(crate) C);

impl<C: ChatClient> ChatClient for OwnSampling<C> {
    fn model(&self) -> &str {
        self.0.model()
    }

    fn provider(&self) -> Option<&str> {
        self.0.provider()
    }

    fn stream(&self, mut request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        request.options = ChatOptions { temperature: None, seed: None, max_output_tokens: None, ..request.options };
        self.0.stream(request)
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{ChatMessage, testing::ScriptedClient};
    use futures::StreamExt;

    use super::*;
    use crate::repeatable;

    #[tokio::test]
    async fn a_service_is_not_sent_what_only_some_can_do() {
        let model = ScriptedClient::new().says("hello");
        let asked = ChatRequest {
            messages: [ChatMessage::user("go")].into(),
            options: ChatOptions { stop: vec!["END".into()], ..repeatable() },
            ..ChatRequest::default()
        };
        let answer: Vec<_> = OwnSampling(model.clone()).stream(asked).collect().await;
        assert!(matches!(answer.last(), Some(Ok(ChatUpdate::Done(_)))));
        let expected = ChatOptions { stop: vec!["END".into()], ..ChatOptions::default() };
        assert_eq!(model.requests()[0].options, expected);
    }
}
