//! A real model behind three protocols.

use std::sync::Arc;

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatOptions, ChatRequest, ChatResponse, Content,
    Role, RunContext, Session, ToolCall, ToolResult, ToolSpec, run_typed,
};
use agent_providers::{Anthropic, HttpOptions, OpenAi, OpenAiResponses, ProviderErrorKind};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{Clients, adder, ask, kind, outcome, service, text_of};

fn clients() -> Option<Clients> {
    let url = service("LLAMA_CPP_URL")?;
    let at = |url: String| HttpOptions { base_url: Some(url), ..HttpOptions::default() };
    Some(vec![
        ("openai", Arc::new(OpenAi::compatible("any", &format!("{url}/v1"), None, HttpOptions::default()).unwrap())),
        ("openai-responses", Arc::new(OpenAiResponses::new("any", "k", at(format!("{url}/v1"))).unwrap())),
        ("anthropic", Arc::new(Anthropic::new("any", "k", at(url)).unwrap())),
    ])
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct City {
    name: String,
    country: String,
    /// How many people live there, if known.
    people: Option<u64>,
}

fn still() -> ChatOptions {
    ChatOptions { temperature: Some(0.0), max_output_tokens: Some(120), ..ChatOptions::default() }
}

/// The model's answer to a result. The call is ours: a small model cannot be trusted to call.
async fn weather(client: &dyn ChatClient) -> ChatResponse {
    let parameters = json!({
        "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"],
    });
    let (name, description) = ("weather".into(), "The temperature in a city.".into());
    let tools = [ToolSpec { name, description, parameters, needs_approval: false }].into();
    let call = ToolCall { id: "call_1".into(), name: "weather".into(), arguments: json!({ "city": "Oslo" }) };
    let contents = vec![Content::Text("31 degrees".into())];
    let result = ToolResult { call_id: "call_1".into(), contents, is_error: false };
    let messages = [
        ChatMessage::user("How warm is it in Oslo?"),
        ChatMessage::new(Role::Assistant, [Content::ToolCall(call)]),
        ChatMessage::new(Role::Tool, [Content::ToolResult(result)]),
    ];
    let request = ChatRequest { tools, messages: messages.into(), options: still(), ..ChatRequest::default() };
    outcome(client, request).await.1.unwrap()
}

fn show(name: &str, what: &str, outcome: &dyn std::fmt::Debug) {
    println!("{name}, {what}: {outcome:?}");
}

#[tokio::test]
async fn a_real_model_talks_calls_answers_by_schema_and_refuses_what_is_too_long() {
    for (name, client) in clients().unwrap_or_default() {
        let request = ChatRequest { options: still(), ..ask("Name three colors. Only the names.") };
        let (deltas, response) = outcome(&client, request).await;
        let response = response.unwrap();
        show(name, "text", &response);
        assert_eq!(text_of(&deltas), response.message.text(), "{name}");
        assert!(deltas.len() > 2 && response.usage.output_tokens > 2, "{name}: {deltas:?}");

        let answer = weather(&*client).await;
        show(name, "tool", &answer);
        assert!(answer.message.text().contains("31"), "{name}: {answer:?}");

        let mut session = Session::new();
        let called = adder(client.clone(), still()).ask(&mut session, "Use the tool `add` to add 17 and 25.").await;
        show(name, "agent with a tool", &(called.map(|response| response.stop), session.messages()));

        let agent = ChatAgent::new("teller", client.clone(), ChatAgentOptions { chat: still(), ..Default::default() });
        let mut session = Session::new();
        session.push("Tell me about Paris.");
        let typed = run_typed::<City>(&agent, &mut session, &RunContext::default()).await;
        show(name, "schema", &typed);
        // In its other two protocols the service takes a schema and does not keep to it.
        if name == "openai" {
            assert_eq!(typed.unwrap().value.name, "Paris");
        }

        let (_, long) = outcome(&client, ask(&"word ".repeat(60_000))).await;
        let long = long.unwrap_err();
        show(name, "too long", &long);
        assert_eq!(kind(&long), ProviderErrorKind::ContextTooLong, "{name}");

        // A stream that is dropped frees the service for the next call at once.
        let mut updates = client.stream(ask("Count from 1 to 1000, a number a line."));
        updates.next().await.unwrap().unwrap();
        drop(updates);
        let (_, next) = outcome(&client, ChatRequest { options: still(), ..ask("Say yes.") }).await;
        show(name, "after a dropped stream", &next.unwrap().message.text());
    }
}
