//! The clients against services that others wrote. Each test runs where its variable names a running service, and says
//! so where it does not:
//!
//! - `AIMOCK_URL`: `@copilotkit/aimock` (an npm package) with `tests/peers/fixtures.json`, for all five protocols.
//! - `LLMOCK_URL`: `llmock` (a Python package), which judges how a client bears faults.
//! - `LLAMA_CPP_URL`: llama.cpp's server with any model that calls tools, for three protocols. It takes minutes.

use std::{error::Error as _, sync::Arc, time::Duration};

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatOptions, ChatRequest, ChatResponse, ChatUpdate,
    Content, Delta, Error, Role, RunContext, Session, StopReason, ToolCall, ToolContext, ToolResult, ToolSpec,
    run_typed, tool_fn,
};
use agent_providers::{
    Anthropic, Gemini, HttpOptions, Ollama, OpenAi, OpenAiResponses, ProviderError, ProviderErrorKind, Retry,
    RetryOptions, TimeOuts,
};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The service's URL, if there is one.
fn service(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        println!("skipped: {variable} names no service");
    }
    url
}

fn at(url: String) -> HttpOptions {
    let time_outs = TimeOuts { idle: Duration::from_millis(500), ..TimeOuts::default() };
    HttpOptions { base_url: Some(url), time_outs, ..HttpOptions::default() }
}

type Clients = Vec<(&'static str, Arc<dyn ChatClient>)>;

fn ask(text: &str) -> ChatRequest {
    ChatRequest { messages: [ChatMessage::user(text)].into(), ..ChatRequest::default() }
}

/// The deltas, and the answer or the error.
async fn outcome(client: &dyn ChatClient, request: ChatRequest) -> (Vec<Delta>, Result<ChatResponse, Error>) {
    let mut updates = client.stream(request);
    let mut deltas = Vec::new();
    loop {
        match updates.next().await.expect("a stream ends with an answer or an error") {
            Ok(ChatUpdate::Delta(delta)) => deltas.push(delta),
            Ok(ChatUpdate::Done(response)) => return (deltas, Ok(response)),
            Err(error) => return (deltas, Err(error)),
        }
    }
}

fn kind(error: &Error) -> ProviderErrorKind {
    error.source().and_then(|source| source.downcast_ref::<ProviderError>()).expect("a typed error").kind
}

fn text_of(deltas: &[Delta]) -> String {
    let texts =
        deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None });
    texts.collect()
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

fn adder(client: Arc<dyn ChatClient>, chat: ChatOptions) -> ChatAgent {
    let add = tool_fn("add", "Adds two numbers.", async |sum: Sum, _: ToolContext| Ok((sum.a + sum.b).to_string()));
    let options = ChatAgentOptions { instructions: "You add by the tool `add`.".into(), chat, ..Default::default() };
    ChatAgent::new("adder", client, options).tool(add)
}

mod aimock {
    use super::*;

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
}

mod llmock {
    use super::*;

    fn clients(url: &str) -> Clients {
        let retry = RetryOptions { first_delay: Duration::from_millis(40), jitter: 0.1, ..RetryOptions::default() };
        let retried = |client: Arc<dyn ChatClient>| Arc::new(Retry::new(client, retry.clone())) as Arc<dyn ChatClient>;
        vec![
            ("openai", retried(Arc::new(OpenAi::new("gpt-4o", "k", at(format!("{url}/v1"))).unwrap()))),
            (
                "openai-responses",
                retried(Arc::new(OpenAiResponses::new("gpt-4o", "k", at(format!("{url}/v1"))).unwrap())),
            ),
            (
                "anthropic",
                retried(Arc::new(Anthropic::new("claude-test", "k", at(format!("{url}/anthropic"))).unwrap())),
            ),
            ("gemini", retried(Arc::new(Gemini::new("gemini-test", "k", at(format!("{url}/gemini"))).unwrap()))),
        ]
    }

    /// What the service is to do, and what the caller gets: `None` is the answer.
    fn scenarios() -> Vec<(Value, Option<ProviderErrorKind>)> {
        use ProviderErrorKind::{Auth, BadFrame, BadRequest, Overloaded, TimeOut, Truncated};
        let fail = |status: u16, times: Option<u32>| json!({ "type": "fail", "status": status, "times": times });
        let fault = |kind: &str, after: u32| json!({ "type": "stream_fault", "kind": kind, "after_chunks": after, "stall_seconds": 2 });
        vec![
            (json!({ "type": "reply", "text": "Fine, thank you." }), None),
            (json!({ "type": "delay", "seconds": 0.2 }), None),
            (json!({ "type": "slow_first_token", "seconds": 0.3 }), None),
            (json!({ "type": "fail", "status": 429, "retry_after": 0.3, "times": 2 }), None),
            (json!({ "type": "fail", "status": 503, "retry_after": 0.3 }), None),
            (fail(429, Some(1)), None),
            (fail(500, Some(2)), None),
            (fail(529, Some(3)), None),
            (fail(503, None), Some(Overloaded)),
            (fail(400, Some(1)), Some(BadRequest)),
            (fail(401, Some(1)), Some(Auth)),
            (fail(403, Some(1)), Some(Auth)),
            (fail(404, Some(1)), Some(BadRequest)),
            (fail(422, Some(1)), Some(BadRequest)),
            // Nothing was told yet: the client asks again by itself.
            (fault("disconnect", 0), None),
            (fault("truncate", 0), None),
            (fault("malformed", 0), None),
            (fault("stall", 0), None),
            // Something was told: the caller is told of the fault.
            (fault("disconnect", 5), Some(Truncated)),
            (fault("truncate", 5), Some(Truncated)),
            (fault("malformed", 5), Some(BadFrame)),
            (fault("stall", 5), Some(TimeOut)),
        ]
    }

    /// One test: a judge judges all that reaches it. Where the variable names several, separated by commas, each judges
    /// some of the clients.
    #[tokio::test]
    async fn every_fault_is_borne_and_the_judge_has_nothing_to_object() {
        let Some(urls) = service("LLMOCK_URL") else { return };
        let urls = &urls.split(',').collect::<Vec<_>>();
        let courts = urls.iter().enumerate().map(|(n, url)| async move {
            let mut objections = Vec::new();
            for (name, client) in clients(url).into_iter().skip(n).step_by(urls.len()) {
                objections.extend(hearing(url, name, client).await);
            }
            objections
        });
        let objections = futures::future::join_all(courts).await.concat();
        assert!(objections.is_empty(), "{}", objections.join("\n"));
    }

    /// Each fault for one client.
    async fn hearing(url: &str, name: &str, client: Arc<dyn ChatClient>) -> Vec<String> {
        let mut objections = Vec::new();
        for (scenario, expected) in scenarios() {
            let objection = judge(url, &client, &scenario, expected).await;
            objections.extend(objection.map(|objection| format!("{name}, {scenario}: {objection}")));
        }
        for kind in ["malformed_arguments", "unknown_tool"] {
            script(url, &json!({ "type": "tool_fault", "kind": kind })).await;
            let mut session = Session::new();
            let response = adder(client.clone(), ChatOptions::default()).ask(&mut session, "Add 1 and 2.").await;
            assert_eq!(response.unwrap().stop, StopReason::Completed, "{name}, {kind}");
            let mut results = session.messages().iter().flat_map(ChatMessage::tool_results);
            assert!(results.next().unwrap().is_error, "{name}, {kind}: {session:?}");
        }
        http(url, "POST", "/_llmock/reset", "").await;
        objections
    }

    /// What the judge or this test has to object, if anything.
    async fn judge(
        url: &str,
        client: &dyn ChatClient,
        scenario: &Value,
        expected: Option<ProviderErrorKind>,
    ) -> Option<String> {
        script(url, scenario).await;
        let request = ask("How are you? Answer at some length, please.");
        let (deltas, read) = outcome(client, request.clone()).await;
        if read.as_ref().err().map(kind) != expected {
            return Some(format!("{read:?} after {} deltas", deltas.len()));
        }
        // Once something was told, asking again is up to the caller; the error says that it may help. The judge has to
        // see the first call's end before.
        if read.is_err_and(|error| error.is_transient() && !deltas.is_empty()) {
            tokio::time::sleep(Duration::from_millis(300)).await;
            outcome(client, request).await.1.unwrap();
        }
        let verdict = http(url, "GET", "/_llmock/verdict", "").await;
        let verdict = serde_json::from_str::<Value>(&verdict).unwrap();
        assert_ne!(verdict["calls"], 0, "the judge saw nothing");
        let content = verdict["passed"] == true && verdict["warnings"] == 0;
        (!content).then(|| verdict["findings"].to_string())
    }

    async fn script(url: &str, behavior: &Value) {
        http(url, "POST", "/_llmock/reset", "").await;
        http(url, "POST", "/_llmock/scenario", &json!({ "behaviors": [behavior] }).to_string()).await;
    }

    /// The body of a response; nothing of ours is between the test and the judge.
    async fn http(url: &str, method: &str, path: &str, body: &str) -> String {
        let host = url.strip_prefix("http://").unwrap();
        let mut socket = TcpStream::connect(host).await.unwrap();
        let head = format!("{method} {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {}\r\n\r\n", body.len());
        socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.lines().next().unwrap().contains(" 20"), "{method} {path}: {response}");
        body.to_owned()
    }
}

mod llama_cpp {
    use super::*;

    fn clients() -> Option<Clients> {
        let url = service("LLAMA_CPP_URL")?;
        let at = |url: String| HttpOptions { base_url: Some(url), ..HttpOptions::default() };
        Some(vec![
            (
                "openai",
                Arc::new(OpenAi::compatible("any", &format!("{url}/v1"), None, HttpOptions::default()).unwrap()),
            ),
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

            let agent =
                ChatAgent::new("teller", client.clone(), ChatAgentOptions { chat: still(), ..Default::default() });
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
}
