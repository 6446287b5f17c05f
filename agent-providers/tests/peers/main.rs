//! The clients against services that others wrote. Each test runs where its variable names a running service, and says
//! so where it does not:
//!
//! - `AIMOCK_URL`: `@copilotkit/aimock` (an npm package) with `tests/peers/fixtures.json`, for all five protocols.
//! - `LLMOCK_URL`: `llmock` (a Python package), which judges how a client bears faults.
//! - `LLAMA_CPP_URL`: llama.cpp's server with any model that calls tools, for three protocols. It takes minutes.
//! - `MCP_PEERS`: a directory with the reference servers of MCP (npm) and with its Python SDK (in `venv`).

mod aimock;
mod llama_cpp;
mod llmock;
#[cfg(feature = "mcp")]
mod mcp;

use std::{error::Error as _, sync::Arc, time::Duration};

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatOptions, ChatRequest, ChatResponse, ChatUpdate, Delta,
    Error, ToolContext, tool_fn,
};
use agent_providers::{HttpOptions, ProviderError, ProviderErrorKind, TimeOuts};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

/// The service's URL or place, if there is one.
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
