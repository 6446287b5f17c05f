//! Where the clients of Anthropic, Gemini and Ollama ask, and how they are made.

use agent_core::{ChatClient, ChatOptions, ChatRequest};
use agent_providers::{Anthropic, Gemini, HttpOptions, Ollama};
use futures::StreamExt;

use crate::{
    outcome,
    protocols::KEY,
    server::{Server, Step, head},
};

/// The request line and the headers that matter.
async fn asked(client: impl Fn(HttpOptions) -> Box<dyn ChatClient>) -> String {
    let refusal = Step::Send(b"{\"error\":\"no\"}".to_vec());
    let server = Server::start(vec![vec![head(400, "application/json", ""), refusal]]).await;
    let options = HttpOptions { base_url: Some(server.url.clone()), ..HttpOptions::default() };
    outcome(&client(options)).await.unwrap_err();
    let request = &server.requests()[0];
    let headers = ["POST", "accept:", "x-api-key:", "anthropic-version:", "x-goog-api-key:", "authorization:"];
    let lines = request.lines().filter(|line| headers.iter().any(|header| line.starts_with(header)));
    let mut lines = lines.map(|line| line.replace(KEY, "KEY")).collect::<Vec<_>>();
    lines.sort();
    lines.join("\n")
}

#[tokio::test]
async fn each_service_is_asked_at_its_path_with_its_headers() {
    let requests = [
        asked(|options| Box::new(Anthropic::new("claude-test", KEY, options).unwrap())).await,
        asked(|options| Box::new(Gemini::new("gemini-test", KEY, options).unwrap())).await,
        asked(|options| Box::new(Gemini::new("tunedModels/mine", KEY, options).unwrap())).await,
        asked(|options| Box::new(Ollama::new("qwen-test", None, options).unwrap())).await,
        asked(|options| Box::new(Ollama::new("qwen-test", Some(KEY.into()), options).unwrap())).await,
    ];
    insta::assert_snapshot!(requests.join("\n\n"), @r"
    POST /v1/messages HTTP/1.1
    accept: text/event-stream
    anthropic-version: 2023-06-01
    x-api-key: KEY

    POST /v1beta/models/gemini-test:streamGenerateContent?alt=sse HTTP/1.1
    accept: text/event-stream
    x-goog-api-key: KEY

    POST /v1beta/tunedModels/mine:streamGenerateContent?alt=sse HTTP/1.1
    accept: text/event-stream
    x-goog-api-key: KEY

    POST /api/chat HTTP/1.1
    accept: application/x-ndjson

    POST /api/chat HTTP/1.1
    accept: application/x-ndjson
    authorization: Bearer KEY
    ");
}

#[tokio::test]
async fn another_model_of_the_same_service_is_asked_by_its_name() {
    let gemini = |options| Gemini::new("a", KEY, options).unwrap().with_model("b");
    let server = Server::start(vec![vec![head(400, "application/json", "")]]).await;
    let client = gemini(HttpOptions { base_url: Some(server.url.clone()), ..HttpOptions::default() });
    assert_eq!(client.model(), "b");
    let options = ChatOptions { model: Some("c".into()), ..ChatOptions::default() };
    for options in [ChatOptions::default(), options] {
        client.stream(ChatRequest { options, ..ChatRequest::default() }).next().await.unwrap().unwrap_err();
    }
    let lines = server.requests().into_iter().map(|request| request.lines().next().unwrap().to_owned());
    let expected =
        ["b", "c"].map(|model| format!("POST /v1beta/models/{model}:streamGenerateContent?alt=sse HTTP/1.1"));
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[test]
fn a_client_is_made_of_variables_and_a_missing_one_is_named() {
    let none = |_: &str| None;
    let model = |name: &str| name.ends_with("_MODEL").then(|| "m".to_owned());
    let all = |name: &str| Some(if name.ends_with("_BASE_URL") { "http://localhost:1" } else { "m" }.to_owned());
    let clients = [
        Anthropic::from_vars(all).unwrap().model().to_owned(),
        Gemini::from_vars(all).unwrap().model().to_owned(),
        Ollama::from_vars(all).unwrap().model().to_owned(),
        Ollama::from_vars(model).unwrap().model().to_owned(),
    ];
    assert_eq!(clients, ["m"; 4]);
    let errors = [
        Anthropic::from_vars(none).unwrap_err(),
        Anthropic::from_vars(model).unwrap_err(),
        Gemini::from_vars(none).unwrap_err(),
        Gemini::from_vars(model).unwrap_err(),
        Ollama::from_vars(none).unwrap_err(),
    ];
    insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"), @r"
    connect to anthropic: set the variable ANTHROPIC_MODEL
    connect to anthropic: set the variable ANTHROPIC_API_KEY
    connect to gemini: set the variable GEMINI_MODEL
    connect to gemini: set the variable GEMINI_API_KEY
    connect to ollama: set the variable OLLAMA_MODEL
    ");
}
