//! Scripted services of all five protocols.

use std::sync::Arc;

use agent_core::{AgentExt, ChatClient, ChatMessage, ChatOptions, Content, Session, StopReason};
use agent_providers::{Anthropic, Gemini, Ollama, OpenAi, OpenAiResponses, ProviderErrorKind};

use crate::{Clients, adder, ask, at, kind, outcome, service, text_of};

fn clients() -> Option<Clients> {
    let url = service("AIMOCK_URL")?;
    Some(vec![
        ("openai", Arc::new(OpenAi::new("gpt-5", "k", at(format!("{url}/v1"))).unwrap()) as Arc<dyn ChatClient>),
        ("openai-responses", Arc::new(OpenAiResponses::new("gpt-5", "k", at(format!("{url}/v1"))).unwrap())),
        ("anthropic", Arc::new(Anthropic::new("claude-sonnet-4-5", "k", at(url.clone())).unwrap())),
        ("gemini", Arc::new(Gemini::new("gemini-2.5-flash", "k", at(url.clone())).unwrap())),
        ("ollama", Arc::new(Ollama::new("qwen3", None, at(url)).unwrap())),
    ])
}

#[tokio::test]
async fn a_streamed_text_is_told_in_pieces_and_as_a_whole() {
    for (name, client) in clients().unwrap_or_default() {
        let (deltas, response) = outcome(&client, ask("Tell a story.")).await;
        let response = response.unwrap();
        assert!(deltas.len() > 2, "{name}: {deltas:?}");
        assert_eq!(text_of(&deltas), response.message.text(), "{name}");
        assert!(
            response.message.text().starts_with("Once upon a time – it was spring – a crab"),
            "{name}: {response:?}"
        );
        assert_eq!(response.stop, StopReason::Completed, "{name}");
    }
}

#[tokio::test]
async fn parallel_calls_go_to_the_tools_and_their_results_back() {
    for (name, client) in clients().unwrap_or_default() {
        let mut session = Session::new();
        let response = adder(client, ChatOptions::default()).ask(&mut session, "Add twice.").await.unwrap();
        let results = session.messages().iter().flat_map(ChatMessage::tool_results);
        let results = results.map(|result| (result.text(), result.is_error)).collect::<Vec<_>>();
        assert_eq!(results, [("3".to_owned(), false), ("7".to_owned(), false)], "{name}");
        assert_eq!(response.text(), "The sums are 3 and 7.", "{name}");
        assert_eq!(session.messages()[1].text(), "I add both.", "{name}");
    }
}

#[tokio::test]
async fn thoughts_are_apart_from_the_answer() {
    for (name, client) in clients().unwrap_or_default() {
        if name == "ollama" {
            continue; // the service gives them a name that Ollama does not have
        }
        let (_, response) = outcome(&client, ask("Think first.")).await;
        let message = response.unwrap().message;
        let thoughts = message.contents.iter().find_map(|content| match content {
            Content::Reasoning { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!((thoughts, &*message.text()), (Some("Three and four are seven."), "Seven."), "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_the_limit_cuts_and_a_busy_service_are_told_as_such() {
    for (name, client) in clients().unwrap_or_default() {
        let (_, cut) = outcome(&client, ask("Stop early.")).await;
        // Where it plays Ollama, the service always says that it came to the end.
        let expected = if name == "ollama" { StopReason::Completed } else { StopReason::Length };
        assert_eq!(cut.unwrap().stop, expected, "{name}");
        let (_, busy) = outcome(&client, ask("Be busy.")).await;
        assert_eq!(kind(&busy.unwrap_err()), ProviderErrorKind::RateLimited, "{name}");
    }
}
