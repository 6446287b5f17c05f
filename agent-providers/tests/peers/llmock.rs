//! A judge of how a client bears faults.

use std::{sync::Arc, time::Duration};

use agent_core::{AgentExt, ChatClient, ChatMessage, ChatOptions, Session, StopReason};
use agent_providers::{Anthropic, Gemini, OpenAi, OpenAiResponses, ProviderErrorKind, Retry, RetryOptions};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Clients, adder, ask, at, kind, outcome, service};

fn clients(url: &str) -> Clients {
    let retry = RetryOptions { first_delay: Duration::from_millis(40), jitter: 0.1, ..RetryOptions::default() };
    let retried = |client: Arc<dyn ChatClient>| Arc::new(Retry::new(client, retry.clone())) as Arc<dyn ChatClient>;
    vec![
        ("openai", retried(Arc::new(OpenAi::new("gpt-4o", "k", at(format!("{url}/v1"))).unwrap()))),
        ("openai-responses", retried(Arc::new(OpenAiResponses::new("gpt-4o", "k", at(format!("{url}/v1"))).unwrap()))),
        ("anthropic", retried(Arc::new(Anthropic::new("claude-test", "k", at(format!("{url}/anthropic"))).unwrap()))),
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
