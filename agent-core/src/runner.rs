//! Runs against a store: yield, commit, resume.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::OwnedMutexGuard;

use crate::{
    Agent, ChatMessage, Emitter, Event, Result, RunContext, SessionStore, StateChange, StopReason, Update, Updates,
    calls::{CallLog, check_answers},
    emitter::{next_update, updates_in},
    telemetry,
};

/// Runs an agent on stored sessions. Each event is stored, then shown, and only then does the agent go on; so what
/// the caller saw is what is stored, and an agent's code after an event stands on committed ground.
///
/// One run per session at a time; a second waits. Other processes on the same store are detected: the slower writer's
/// run ends with [`Conflict`](crate::ErrorKind::Conflict). Clones share the runs.
///
/// State keys that begin with `temp:` are seen during the run, are not stored, and are gone after it.
#[derive(Clone)]
pub struct Runner {
    shared: Arc<Shared>,
}

/// For each session with a run, what its runs wait at.
type Gates = Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>;

struct Shared {
    agent: Box<dyn Agent>,
    store: Box<dyn SessionStore>,
    running: Gates,
}

impl Runner {
    /// Runs this agent on the sessions of this store.
    pub fn new(agent: impl Agent + 'static, store: impl SessionStore + 'static) -> Self {
        let shared = Shared { agent: Box::new(agent), store: Box::new(store), running: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Says something in a session, or nothing (`None`: go on), and runs the agent on it. Nothing happens before the stream is
    /// polled.
    ///
    /// The message is stored as an event by [`Event::CALLER`], which the stream does not show. If it answers
    /// approval requests, the answers are checked before it is stored: an answer that fits none is
    /// [`Invalid`](crate::ErrorKind::Invalid), and nothing is stored or run.
    #[expect(clippy::needless_pass_by_value, reason = "a context is one run's: the caller gives it away")]
    pub fn run(
        &self,
        id: impl Into<String>,
        message: impl Into<Option<ChatMessage>>,
        cx: RunContext,
    ) -> Updates<'static> {
        let (id, message, shared) = (id.into(), message.into(), self.shared.clone());
        let author: Arc<str> = shared.agent.info().name.as_str().into();
        let span = telemetry::run(&author, &id, &cx);
        updates_in(span, author, &cx, |out| async move { shared.go(&id, message, out).await })
    }
}

impl Shared {
    async fn go(&self, id: &str, message: Option<ChatMessage>, out: Emitter) -> Result<StopReason> {
        let cx = out.cx();
        let turn = tokio::select! {
            biased;
            turn = self.turn(id) => turn,
            stop = cx.interrupted() => return Ok(stop),
        };
        let stored = self.store.load(id).await?;
        let (mut session, mut version) = (stored.session, stored.version);
        if let Some(message) = message {
            let event = Event::by_caller(message, cx);
            session.apply(&event);
            check_answers(&session, &CallLog::of(session.messages()))?;
            version = self.store.append(id, version, std::slice::from_ref(&event)).await?;
        }
        let mut run = self.agent.run(&mut session, cx);
        let stop = loop {
            match next_update(&mut run).await? {
                Update::Done(stop) => break stop,
                Update::Event(event) => {
                    version = self.append(id, version, &event).await?;
                    out.send(|| Update::Event(event)).await;
                }
                Update::Delta(delta) => out.delta(delta).await,
            }
        };
        drop(run);
        drop(turn);
        Ok(stop)
    }

    async fn append(&self, id: &str, version: u64, event: &Event) -> Result<u64> {
        if !event.state.iter().any(is_temporary) {
            return self.store.append(id, version, std::slice::from_ref(event)).await;
        }
        let mut kept = event.clone();
        kept.state.retain(|change| !is_temporary(change));
        self.store.append(id, version, &[kept]).await
    }

    /// Waits until no other run of this runner is in the session.
    async fn turn<'a>(&'a self, id: &'a str) -> Turn<'a> {
        let gate = {
            let mut running = lock(&self.running);
            running.get(id).and_then(Weak::upgrade).unwrap_or_else(|| {
                let gate = Arc::default();
                running.insert(id.to_owned(), Arc::downgrade(&gate));
                gate
            })
        };
        let mut turn = Turn { running: &self.running, id, guard: None };
        turn.guard = Some(gate.lock_owned().await);
        turn
    }
}

/// The right to run in a session. The last one to go removes the gate.
struct Turn<'a> {
    running: &'a Gates,
    id: &'a str,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = lock(self.running);
        self.guard = None;
        if running.get(self.id).is_some_and(|gate| gate.strong_count() == 0) {
            running.remove(self.id);
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("agent", self.shared.agent.info()).finish_non_exhaustive()
    }
}

fn is_temporary(change: &StateChange) -> bool {
    change.key().starts_with("temp:")
}

fn lock(running: &Gates) -> MutexGuard<'_, HashMap<String, Weak<tokio::sync::Mutex<()>>>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
