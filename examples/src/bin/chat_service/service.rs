//! The requests, and what a conflict means to them.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_core::{
    Agent, ChatMessage, Error, ErrorKind, Event as Committed, Limits, Result, RunContext, Runner, SessionStore, Updates,
};
use agent_examples::sse_event;
use axum::{
    Json, Router,
    extract::{Path, Query, State, rejection::JsonRejection},
    http::StatusCode,
    response::sse::{Event, KeepAlive, KeepAliveStream, Sse},
    routing::{get, post},
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// How often a message is tried that another process came before.
const TRIES: u32 = 5;

#[derive(Clone)]
pub(super) struct Service {
    runner: Runner,
    store: Arc<dyn SessionStore>,
    runs: Arc<Mutex<Vec<RunContext>>>,
}

#[derive(Deserialize)]
struct Say {
    text: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    call_id: String,
    approved: bool,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    prefix: String,
    after: Option<String>,
    limit: Option<usize>,
}

type Refusal = (StatusCode, Json<Value>);
type Answering = Sse<KeepAliveStream<BoxStream<'static, Result<Event, Infallible>>>>;

fn refuse(status: StatusCode, why: &str) -> Refusal {
    (status, Json(json!({ "error": why })))
}

fn refuse_for(error: &Error) -> Refusal {
    let status = match error.kind() {
        ErrorKind::Conflict | ErrorKind::Invalid => StatusCode::CONFLICT,
        _ if error.is_transient() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    refuse(status, &format!("{error:#}"))
}

fn readable<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Refusal> {
    body.map(|Json(body)| body).map_err(|why| refuse(StatusCode::BAD_REQUEST, &why.body_text()))
}

impl Service {
    pub(super) fn new(agent: impl Agent + 'static, store: impl SessionStore + Clone + 'static) -> Self {
        Self { runner: Runner::new(agent, store.clone()), store: Arc::new(store), runs: Arc::default() }
    }

    pub(super) fn routes(&self) -> Router {
        Router::new()
            .route("/sessions", get(list))
            .route("/sessions/{id}", get(show))
            .route("/sessions/{id}/messages", post(say))
            .route("/sessions/{id}/answers", post(answer))
            .with_state(self.clone())
    }

    /// Ends what is still going on: each run's stream ends with `cancelled`, and its session can be gone on with.
    pub(super) fn cancel_runs(&self) {
        for run in self.runs.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            run.cancel().cancel();
        }
    }

    /// A context that [`cancel_runs`](Self::cancel_runs) reaches.
    fn context(&self) -> RunContext {
        let cx = RunContext::new(Limits { wall: Some(Duration::from_mins(5)), ..Limits::default() });
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|run| !run.cancel().is_cancelled());
        runs.push(cx.clone());
        cx
    }

    /// Says it and streams the run. What another process came before is tried again, unless it was stored.
    async fn run(self, id: String, message: Option<ChatMessage>) -> Result<Answering, Refusal> {
        let before = self.store.load(&id).await.map_err(|error| refuse_for(&error))?.version;
        for _ in 0..TRIES {
            let cx = self.context();
            // A run that is over, or that nobody reads any more, is cancelled, too: so it leaves the list.
            let over = cx.cancel().clone().drop_guard();
            let mut updates = self.runner.run(id.clone(), message.clone(), cx.clone());
            match updates.next().await {
                Some(Err(error)) if error.kind() == ErrorKind::Conflict => {
                    let since = self.store.events(&id, before).await.map_err(|error| refuse_for(&error))?;
                    if is_said(&since, cx.id()) {
                        return Err(refuse_for(&overtaken(&id, error)));
                    }
                }
                Some(Err(error)) => return Err(refuse_for(&error)),
                first => {
                    let updates: Updates<'static> = stream::iter(first).chain(updates).boxed();
                    let shown = updates.map(move |update| {
                        let _moved_here = &over;
                        Ok(sse_event(update.map_err(|error| match error.kind() {
                            ErrorKind::Conflict => overtaken(&id, error),
                            _ => error,
                        })))
                    });
                    return Ok(Sse::new(shown.boxed()).keep_alive(KeepAlive::default()));
                }
            }
        }
        let why = format!("others say so much in session `{id}` that this was not stored; try again later");
        Err(refuse(StatusCode::CONFLICT, &why))
    }
}

/// Whether what a run was to say is stored.
fn is_said(events: &[Committed], run: Uuid) -> bool {
    events.iter().any(|event| event.run == run && &*event.author == Committed::CALLER)
}

fn overtaken(id: &str, error: Error) -> Error {
    let context =
        format!("answer: another message came in between, and its answer is to this one, too; GET /sessions/{id}");
    Error::new(ErrorKind::Conflict, context).with_source(error)
}

async fn say(
    State(service): State<Service>,
    Path(id): Path<String>,
    said: Result<Json<Say>, JsonRejection>,
) -> Result<Answering, Refusal> {
    let text = readable(said)?.text;
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(refuse(StatusCode::BAD_REQUEST, "the text is empty; say something, or leave it out to go on"));
    }
    service.run(id, text.map(ChatMessage::user)).await
}

async fn answer(
    State(service): State<Service>,
    Path(id): Path<String>,
    answer: Result<Json<Answer>, JsonRejection>,
) -> Result<Answering, Refusal> {
    let Answer { call_id, approved, reason } = readable(answer)?;
    let message = if approved { ChatMessage::approve(call_id) } else { ChatMessage::reject(call_id, reason) };
    service.run(id, Some(message)).await
}

async fn show(State(service): State<Service>, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let stored = service.store.load(&id).await.map_err(|error| refuse_for(&error))?;
    let (messages, waiting) = (stored.session.messages(), stored.session.open_approvals());
    Ok(Json(json!({ "version": stored.version, "messages": messages, "open_approvals": waiting })))
}

async fn list(State(service): State<Service>, Query(page): Query<Page>) -> Result<Json<Value>, Refusal> {
    let limit = page.limit.unwrap_or(100).min(1000);
    let ids = service.store.list_page(&page.prefix, page.after.as_deref(), limit).await;
    Ok(Json(json!({ "ids": ids.map_err(|error| refuse_for(&error))? })))
}
