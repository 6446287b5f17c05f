//! The handlers of the keyed object, over Restate's contexts.

use std::{pin::Pin, sync::Arc};

use agent_core::{ChatMessage, Error, RunContext, Session, Step, ToolCall};
use futures::future::BoxFuture;
use restate_sdk::{
    context::DurableFuture,
    errors::{HandlerError, HandlerResult, TerminalError},
    prelude::{
        ContextAwakeables, ContextClient, ContextReadState, ContextSideEffects, ContextWriteState,
        DurableFuturesUnordered, Json, ObjectContext, RunFuture, RunRetryPolicy, SharedObjectContext,
    },
};
use serde::{Deserialize, Serialize};

use super::{
    Inner, Rejection, Reply, Status, Words,
    live::{Live, Lives},
    parts::{HEAD, Parts, join, pieces, size, split},
    turn::{Ask, Failure, Journal, ask, failure, nobody_waits, turn},
    types::Answer,
};

/// The key of what other handlers read while a turn is under way.
const STATUS: &str = "status";

/// The status, and how to reach the turn that it is of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    status: Status,
    /// The invocation that is at work or waits.
    invocation: Option<String>,
    waits: Vec<Wait>,
}

/// A call that waits for its answer at an awakeable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Wait {
    call_id: String,
    awakeable: String,
}

/// The object: its key is the session's id.
pub(super) struct Handlers {
    pub(super) inner: Arc<Inner>,
    pub(super) lives: Lives,
}

// Lazily: others than a turn do not need the session, and a turn that is taken up has it in its journal.
#[restate_sdk::object(name = "agent", client_visibility = "pub(self)", lazy_state)]
impl Handlers {
    /// Says something, or nothing (`null`: go on), and lets the agent run until it is done. Waits while an approval is
    /// open. Takes a text or a message.
    #[handler(inactivity_timeout = "10m")]
    async fn say(&self, cx: ObjectContext<'_>, words: Json<Option<Words>>) -> HandlerResult<Json<Reply>> {
        let stored = load(|key| cx.get(key)).await?;
        let new = |run| Ok(self.inner.steps(cx.key(), join(&stored)?, run));
        let run = RunContext::new(self.inner.limits);
        let entered =
            self.lives.enter(cx.invocation_id(), size(&stored), run, new).map_err(|error| terminal(&error))?;
        let words = words.into_inner().map(Into::into);
        let reply = play(&cx, self.inner.retries.clone(), entered.live(), words).await;
        // What was recorded stays, however the turn ended.
        let session = entered.end().await;
        store(&cx, &stored, &session)?;
        reply.map(Json).map_err(|failure| TerminalError::from(failure).into())
    }

    /// Where the session stands, also while a turn is under way.
    #[handler(journal_retention = "0s")]
    async fn status(&self, cx: SharedObjectContext<'_>) -> HandlerResult<Json<Status>> {
        Ok(Json(kept(&cx).await?.status))
    }

    /// The session as the last turn left it.
    #[handler(journal_retention = "0s")]
    async fn session(&self, cx: SharedObjectContext<'_>) -> HandlerResult<Json<Session>> {
        let session = join(&load(|key| cx.get(key)).await?).map_err(|error| terminal(&error))?;
        Ok(Json(session))
    }

    /// Lets a call run that waits for approval. Takes its id.
    #[handler]
    async fn approve(&self, cx: SharedObjectContext<'_>, call_id: Json<String>) -> HandlerResult<()> {
        answer(&cx, Answer { call_id: call_id.into_inner(), rejected: None }).await
    }

    /// Refuses a call that waits for approval.
    #[handler]
    async fn reject(&self, cx: SharedObjectContext<'_>, rejection: Json<Rejection>) -> HandlerResult<()> {
        let Rejection { call_id, reason } = rejection.into_inner();
        answer(&cx, Answer { call_id, rejected: Some(reason) }).await
    }

    /// Cancels the turn that is under way; false if there is none. What it recorded stays.
    #[handler]
    async fn cancel(&self, cx: SharedObjectContext<'_>) -> HandlerResult<Json<bool>> {
        let Some(invocation) = kept(&cx).await?.invocation else { return Ok(Json(false)) };
        // Restate tells the turn at its next step. Here, it need not wait for that. It may have ended meanwhile, and the
        // next one begun, which nobody wants to cancel.
        self.lives.cancel(&invocation);
        cx.invocation_handle(invocation).cancel();
        Ok(Json(true))
    }
}

async fn kept(cx: &SharedObjectContext<'_>) -> Result<Kept, TerminalError> {
    Ok(cx.get::<Json<Kept>>(STATUS).await?.map(Json::into_inner).unwrap_or_default())
}

/// Gives an answer to whoever waits for it. Of several answers to one call the first counts.
async fn answer(cx: &SharedObjectContext<'_>, answer: Answer) -> HandlerResult<()> {
    let Kept { status, waits, .. } = kept(cx).await?;
    if let Some(wait) = waits.iter().find(|wait| wait.call_id == answer.call_id) {
        cx.resolve_awakeable(&wait.awakeable, Json(answer));
        return Ok(());
    }
    let waiting: Vec<&str> = waits.iter().map(|wait| &*wait.call_id).collect();
    Err(TerminalError::new_with_code(404, nobody_waits(&answer.call_id, &status, &waiting)).into())
}

/// A turn over Restate's journal. Boxed, as all that borrows a context: else the compiler cannot tell that it is `Send`.
fn play<'a>(
    cx: &'a ObjectContext<'_>,
    retries: RunRetryPolicy,
    live: &'a Arc<Live>,
    words: Option<ChatMessage>,
) -> BoxFuture<'a, Result<Reply, Failure>> {
    let mut journal = Restate::new(cx, retries);
    Box::pin(async move { turn(&mut journal, live, words).await })
}

/// The stored session. `get` reads a key of the object, by whichever of its contexts.
async fn load<F>(get: impl Fn(&'static str) -> F) -> HandlerResult<Parts>
where
    F: Future<Output = Result<Option<String>, TerminalError>> + Send,
{
    let mut parts = Parts::new();
    if let Some(head) = get(HEAD).await? {
        for key in pieces(&head).map_err(|error| terminal(&error))? {
            if let Some(piece) = get(key).await? {
                parts.insert(key, piece);
            }
        }
        parts.insert(HEAD, head);
    }
    Ok(parts)
}

/// Writes what is new.
fn store(cx: &ObjectContext<'_>, before: &Parts, session: &Session) -> HandlerResult<()> {
    let after = split(session).map_err(|error| terminal(&error))?;
    before.keys().filter(|key| !after.contains_key(*key)).for_each(|key| cx.clear(key));
    for (key, part) in after {
        if before.get(key) != Some(&part) {
            cx.set(key, part);
        }
    }
    Ok(())
}

/// A turn's journal: Restate's.
struct Restate<'a, 'ctx> {
    cx: &'a ObjectContext<'ctx>,
    retries: RunRetryPolicy,
    waits: Vec<Wait>,
    answers: DurableFuturesUnordered<Awaited<'ctx>>,
    /// Whose answer each awakeable is, by the order in which they were made.
    calls: Vec<String>,
}

type Awaited<'ctx> = Pin<Box<dyn DurableFuture<Output = Result<Json<Answer>, TerminalError>> + Send + 'ctx>>;

impl<'a, 'ctx> Restate<'a, 'ctx> {
    fn new(cx: &'a ObjectContext<'ctx>, retries: RunRetryPolicy) -> Self {
        Self { cx, retries, waits: Vec::new(), answers: DurableFuturesUnordered::new(), calls: Vec::new() }
    }

    /// Makes an awakeable for each call that has none, and forgets those of calls that are closed.
    fn await_all(&mut self, open: &[ToolCall]) {
        self.waits.retain(|wait| open.iter().any(|call| call.id == wait.call_id));
        for call in open {
            if !self.waits.iter().any(|wait| wait.call_id == call.id) {
                let (awakeable, answer) = self.cx.awakeable::<Json<Answer>>();
                self.answers.push(Box::pin(answer));
                self.calls.push(call.id.clone());
                self.waits.push(Wait { call_id: call.id.clone(), awakeable });
            }
        }
    }
}

impl Journal for Restate<'_, '_> {
    fn take<'s>(&'s mut self, name: String, live: &'s Arc<Live>, asked: Ask) -> BoxFuture<'s, Result<Step, Failure>> {
        let live = live.clone();
        let run = self.cx.run(move || async move { ask(live, asked).await.map(Json).map_err(|error| refusal(&error)) });
        let run = run.name(name).retry_policy(self.retries.clone());
        Box::pin(async move { Ok(run.await?.into_inner()) })
    }

    fn answer<'s>(&'s mut self, status: &'s Status) -> BoxFuture<'s, Result<Answer, Failure>> {
        self.await_all(&status.approvals);
        self.show(status);
        Box::pin(async move {
            let Some((at, answer)) = self.answers.next().await? else {
                let message = "wait for an answer that nobody can give".to_owned();
                return Err(Failure::Failed { code: 500, message });
            };
            // An awakeable that was rejected by its own interface is a no.
            let rejected = |error: TerminalError| Answer {
                call_id: self.calls[at].clone(),
                rejected: Some(error.message().to_owned()),
            };
            let answer = answer.map_or_else(rejected, Json::into_inner);
            self.waits.retain(|wait| wait.call_id != answer.call_id);
            Ok(answer)
        })
    }

    fn show(&mut self, status: &Status) {
        let ended = status.stop.is_some() || status.error.is_some();
        let invocation = (!ended).then(|| self.cx.invocation_id().to_owned());
        let waits = if ended { Vec::new() } else { self.waits.clone() };
        self.cx.set(STATUS, Json(Kept { status: status.clone(), invocation, waits }));
    }
}

/// Restate tells a cancellation as this status.
const CANCELLED: u16 = 409;

impl From<TerminalError> for Failure {
    fn from(error: TerminalError) -> Self {
        match error.code() {
            CANCELLED => Self::Cancelled,
            code => Self::Failed { code, message: error.message().to_owned() },
        }
    }
}

impl From<Failure> for TerminalError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Self::new_with_code(CANCELLED, "cancelled"),
            Failure::Failed { code, message } => Self::new_with_code(code, message),
        }
    }
}

/// What may go away by itself is tried again; all else is told to the caller.
fn refusal(error: &Error) -> HandlerError {
    if error.is_transient() { format!("{error:#}").into() } else { terminal(error) }
}

fn terminal(error: &Error) -> HandlerError {
    TerminalError::from(failure(error)).into()
}
