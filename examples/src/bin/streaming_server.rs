//! A chat server: each answer streams as server-sent events, each session is in a store.
//!
//! ```text
//! POST /sessions/{id}/messages {"text": "…"}    delta…  event…  done (or error), as the run yields them
//! GET  /sessions/{id}                           what was said
//! ```
//!
//! The response's body is the run: it goes on as it is read. The runner stores an event before it shows it, so what a
//! client has seen is what is stored. When the client leaves, the body is dropped and the run with it; the guard beside
//! it cancels what the run has begun elsewhere, such as a tool's own task. The session holds what was committed until
//! then, and can be used again. A second request to a busy session waits.
//!
//! It serves this machine only, and asks nobody who they are.

use std::{convert::Infallible, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatMessage, Error, ErrorKind, JsonlStore, Limits, MemoryStore, Result, RunContext,
    Runner, SessionStore, StopReason,
};
use agent_examples::{ModelArgs, Parrot, sse_event};
use anstream::println;
use axum::{
    Json, Router,
    extract::{Path, State, rejection::JsonRejection},
    http::StatusCode,
    response::sse::{Event, KeepAlive, Sse},
    routing::{get, post},
};
use clap::Parser;
use futures::{Stream, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Serves a chat on 127.0.0.1, until it is killed.
#[derive(Parser)]
struct Cli {
    /// Where to listen; 0 is any free port, which is printed.
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,
    /// Keep the sessions in this directory instead of in memory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How long the offline stand-in for a model takes for each word.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50)]
    pause: u64,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Clone)]
struct Chat {
    runner: Runner,
    store: Arc<dyn SessionStore>,
}

/// The body of a request.
#[derive(Deserialize)]
struct Say {
    text: String,
}

type Refusal = (StatusCode, Json<Value>);

fn refuse(status: StatusCode, why: &str) -> Refusal {
    (status, Json(json!({ "error": why })))
}

async fn say(
    State(chat): State<Chat>,
    Path(id): Path<String>,
    said: Result<Json<Say>, JsonRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let Json(Say { text }) = said.map_err(|why| {
        let status = match why.status() {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            status => status,
        };
        refuse(status, &format!(r#"{}; send {{"text": "…"}}"#, why.body_text()))
    })?;
    if text.trim().is_empty() {
        return Err(refuse(StatusCode::BAD_REQUEST, "the text is empty; say something"));
    }
    let cx = RunContext::new(Limits { wall: Some(Duration::from_mins(5)), ..Limits::default() });
    let cancel_on_drop = cx.cancel().clone().drop_guard();
    let events = chat.runner.run(id, ChatMessage::user(text), cx).map(move |update| {
        let _moved_here = &cancel_on_drop;
        Ok(sse_event(update))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

async fn show(State(chat): State<Chat>, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let stored = chat.store.load(&id).await;
    let stored = stored.map_err(|error| refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:#}")))?;
    Ok(Json(json!({ "messages": stored.session.messages() })))
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.client_or("chat", || Ok(Parrot::new(Duration::from_millis(cli.pause))))?;
    println!("{}", cli.model.headline(&model));
    let store: Arc<dyn SessionStore> = match cli.dir {
        Some(dir) => Arc::new(JsonlStore::open(dir)?),
        None => Arc::new(MemoryStore::new()),
    };
    let agent = ChatAgent::new("assistant", model, ChatAgentOptions::default());
    let chat = Chat { runner: Runner::new(agent, store.clone()), store };
    let routes = Router::new().route("/sessions/{id}", get(show)).route("/sessions/{id}/messages", post(say));

    let failed = |error| {
        let context = format!("serve on port {} (choose another with --port, 0 is any free one)", cli.port);
        Error::new(ErrorKind::Invalid, context).with_source(error)
    };
    let listener = TcpListener::bind(("127.0.0.1", cli.port)).await.map_err(failed)?;
    println!("listening on http://{}", listener.local_addr().map_err(failed)?);
    axum::serve(listener, routes.with_state(chat)).await.map_err(failed)?;
    Ok(StopReason::Completed)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
