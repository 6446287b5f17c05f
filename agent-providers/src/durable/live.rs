//! Turns that are alive in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Result, RunContext, Session, Spent, Step, Steps};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use super::parts::{LARGEST, LIMIT, largest, size, split, too_large};

/// How long a run is kept that nobody goes on with: its turn may go on in another process.
const KEPT: Duration = Duration::from_hours(1);

/// The steps of one turn.
pub(super) struct Live(AsyncMutex<State>);

struct State {
    steps: Steps,
    /// How many steps of the journal they have.
    taken: u32,
    /// Those of an attempt before, whose run is under way. They are ahead of the replay, which must see the session as it
    /// was; so they take over when it has come as far.
    parked: Option<Parked>,
    /// At most so many bytes the session is as it is stored: what it was, and what came since.
    bytes: usize,
    /// At most so many of them are in one of its parts.
    largest: usize,
}

/// Steps that stand still between two attempts.
pub(super) struct Parked {
    steps: Steps,
    taken: u32,
}

impl Live {
    /// `bytes`: those of the stored session.
    pub(super) fn new(steps: Steps, parked: Option<Parked>, bytes: usize) -> Arc<Self> {
        Arc::new(Self(AsyncMutex::new(State { steps, taken: 0, parked, bytes, largest: bytes }.resumed())))
    }

    /// Asks the steps for something.
    pub(super) async fn ask<T>(&self, ask: impl AsyncFnOnce(&mut Steps) -> T) -> T {
        ask(&mut self.0.lock().await.steps).await
    }

    /// An error if the step could not be journaled, or the session not stored with it: then it must not be accepted.
    pub(super) async fn check(&self, step: &Step) -> Result<()> {
        let Step::Event { event, .. } = step else { return Ok(()) };
        let mut state = self.0.lock().await;
        let more = length(step);
        if more > LARGEST {
            return Err(too_large("a step"));
        }
        if state.bytes + more > LIMIT || state.largest + more > LARGEST {
            // One of its parts may be too large, or all together. What was rewound still counts: now exactly.
            let mut session = state.steps.session().clone();
            session.apply(event);
            let parts = split(&session)?;
            (state.bytes, state.largest) = (size(&parts).saturating_sub(more), largest(&parts));
        }
        Ok(())
    }

    /// The next step is in the journal, or its failure is.
    pub(super) async fn accept(&self, step: Option<&Step>) {
        let mut state = self.0.lock().await;
        if let Some(step) = step {
            state.steps.accept(step);
            if let Step::Event { .. } = step {
                let more = length(step);
                state.bytes += more;
                state.largest += more;
            }
        }
        state.taken += 1;
        state.resume();
    }

    pub(super) async fn session(&self) -> Session {
        self.0.lock().await.steps.session().clone()
    }

    /// Ends the turn's runs, those to come included.
    pub(super) async fn cancel(&self) {
        self.0.lock().await.steps.cx().cancel().cancel();
    }
}

/// How many bytes it is as JSON: at least as many as it adds to the stored session.
fn length(step: &Step) -> usize {
    serde_json::to_vec(step).map_or(0, |json| json.len())
}

impl State {
    fn resume(&mut self) {
        if let Some(parked) = self.parked.take_if(|parked| parked.taken == self.taken) {
            self.steps = parked.steps;
        }
    }

    fn resumed(mut self) -> Self {
        self.resume();
        self
    }
}

/// The turns of this process, by their invocations. Between a suspension and the next attempt a run stands still here; else
/// each attempt would let the agent begin anew.
#[derive(Default)]
pub(super) struct Lives(Mutex<HashMap<String, Entry>>);

struct Entry {
    /// Shares the cancellation with the turn's steps.
    run: RunContext,
    /// What the last attempt left, and when.
    parked: Option<(Parked, Instant)>,
}

impl Lives {
    /// An attempt at the turn of this invocation: `make` gives its steps as they are before the journal, in a context.
    /// `bytes`: those of the stored session.
    pub(super) fn enter(
        &self,
        invocation: &str,
        bytes: usize,
        run: RunContext,
        make: impl FnOnce(RunContext) -> Result<Steps>,
    ) -> Result<Entered<'_>> {
        let mut lives = self.lives();
        lives.retain(|_, entry| entry.parked.as_ref().is_none_or(|(_, left)| left.elapsed() < KEPT));
        let parked = lives.get_mut(invocation).and_then(|entry| entry.parked.take()).map(|(parked, _)| parked);
        // The same cancellation before and after the parked steps take over.
        let run =
            parked.as_ref().map_or(run, |parked| parked.steps.cx().taken_up(parked.steps.cx().id(), Spent::default()));
        let live = Live::new(make(run.clone())?, parked, bytes);
        lives.insert(invocation.to_owned(), Entry { run, parked: None });
        Ok(Entered { lives: self, invocation: invocation.to_owned(), live: Some(live) })
    }

    /// Cancels the turn of this invocation, and no other of its session's.
    pub(super) fn cancel(&self, invocation: &str) {
        if let Some(entry) = self.lives().get(invocation) {
            entry.run.cancel().cancel();
        }
    }

    fn lives(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt at a turn. When it is over, what is under way is kept.
pub(super) struct Entered<'a> {
    lives: &'a Lives,
    invocation: String,
    live: Option<Arc<Live>>,
}

impl Entered<'_> {
    pub(super) fn live(&self) -> &Arc<Live> {
        self.live.as_ref().expect("it is taken at the end only")
    }

    /// The turn is over, and so is its run; the session that it left.
    pub(super) async fn end(mut self) -> Session {
        self.live.take().expect("it is taken at the end only").session().await
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let state = self.live.take().and_then(Arc::into_inner).map(|live| live.0.into_inner());
        let parked = state.and_then(|State { steps, taken, parked, .. }| {
            parked.or_else(|| steps.is_running().then_some(Parked { steps, taken }))
        });
        let mut lives = self.lives.lives();
        match (parked, lives.get_mut(&self.invocation)) {
            (Some(parked), Some(entry)) => entry.parked = Some((parked, Instant::now())),
            (Some(_) | None, _) => drop(lives.remove(&self.invocation)),
        }
    }
}
