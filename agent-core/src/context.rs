//! One run's shared limits, cancellation and bookkeeping.

use std::{
    any::Any,
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Format, Limits, LoopStep, Spent, StopReason, Usage, ids, ledger::Ledger};

/// One run: its id, its limits and what it spent, shared by every agent that it reaches. A clone is cheap.
///
/// ```
/// use agent_core::{Limits, RunContext, StopReason};
///
/// let cx = RunContext::new(Limits { model_calls: Some(1), ..Limits::default() });
/// assert_eq!(cx.take_model_call(), Ok(()));
/// assert_eq!(cx.take_model_call(), Err(StopReason::BudgetExhausted));
/// ```
#[derive(Clone)]
pub struct RunContext {
    run: Arc<Run>,
    path: Arc<[LoopStep]>,
    format: Option<Arc<Format>>,
    content_in_spans: bool,
    ledger: Arc<Ledger>,
    is_branch: bool,
    /// How many agents this one is a tool of, one within the other.
    depth: u32,
    scratch: Arc<Scratch>,
}

/// Values by key; gone with the last context that shares them.
type Scratch = Mutex<HashMap<Uuid, Arc<dyn Any + Send + Sync>>>;

struct Run {
    id: Uuid,
    limits: Limits,
    cancel: CancellationToken,
    start: Instant,
    /// What it had run for before it was taken up here.
    before: Duration,
    model_calls: AtomicU32,
    tool_calls: AtomicU32,
    tokens: AtomicU64,
}

impl Run {
    fn new(id: Uuid, limits: Limits, cancel: CancellationToken, spent: Spent) -> Self {
        let Spent { model_calls, tool_calls, tokens, wall } = spent;
        Self {
            id,
            limits,
            cancel,
            start: Instant::now(),
            before: wall,
            model_calls: AtomicU32::new(model_calls),
            tool_calls: AtomicU32::new(tool_calls),
            tokens: AtomicU64::new(tokens),
        }
    }

    fn elapsed(&self) -> Duration {
        self.before.saturating_add(self.start.elapsed())
    }
}

impl RunContext {
    /// A run that starts now, with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            run: Arc::new(Run::new(ids::next(), limits, CancellationToken::new(), Spent::default())),
            path: Arc::from([]),
            format: None,
            content_in_spans: false,
            ledger: Arc::default(),
            is_branch: false,
            depth: 0,
            scratch: Arc::default(),
        }
    }

    /// The same run, taken up after it had spent so much, perhaps in a process that is gone: its calls, tokens and time
    /// count on from there, and between then and now it spent nothing. The cancellation and the [scratch](Self::scratch)
    /// are shared with this context; what is spent is not.
    pub fn taken_up(&self, id: Uuid, spent: Spent) -> Self {
        let run = Run::new(id, self.run.limits, self.run.cancel.clone(), spent);
        Self { run: Arc::new(run), ..self.clone() }
    }

    /// The run's id (UUID version 7); every event of the run carries it.
    pub fn id(&self) -> Uuid {
        self.run.id
    }

    /// The token that cancels the whole run.
    pub fn cancel(&self) -> &CancellationToken {
        &self.run.cancel
    }

    /// What the run may spend.
    pub fn limits(&self) -> &Limits {
        &self.run.limits
    }

    /// The iterations of loops that this part of the run is in, outermost first.
    pub fn path(&self) -> &Arc<[LoopStep]> {
        &self.path
    }

    /// The same run, inside one more iteration of a loop.
    pub fn enter(&self, step: LoopStep) -> Self {
        let path = self.path.iter().cloned().chain([step]).collect();
        Self { path, ..self.clone() }
    }

    /// What the run has spent so far.
    pub fn spent(&self) -> Spent {
        Spent {
            model_calls: self.run.model_calls.load(Relaxed),
            tool_calls: self.run.tool_calls.load(Relaxed),
            tokens: self.run.tokens.load(Relaxed),
            wall: self.run.elapsed(),
        }
    }

    /// The same run, whose answers are to have this form.
    pub fn with_format(&self, format: Format) -> Self {
        Self { format: Some(Arc::new(format)), ..self.clone() }
    }

    /// The form that the caller of the run wants answers to have; an agent prefers it to its own.
    pub fn format(&self) -> Option<&Format> {
        self.format.as_deref()
    }

    /// The same run, whose spans show what was said: instructions, prompts, answers, tools with their arguments and
    /// results, feedback. Without it they show names, numbers and reasons only.
    pub fn with_content_in_spans(&self) -> Self {
        Self { content_in_spans: true, ..self.clone() }
    }

    /// Whether spans may show what was said; see [`with_content_in_spans`](Self::with_content_in_spans).
    pub fn shows_content(&self) -> bool {
        self.content_in_spans
    }

    /// The same run, in an agent that has a session and an answer of its own.
    pub(crate) fn for_tool(&self) -> Self {
        Self { format: None, is_branch: false, depth: self.depth + 1, ledger: self.ledger.inside(), ..self.clone() }
    }

    /// How many agents this one is a tool of, one within the other.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// The same run, in a branch beside others that share the session.
    pub fn in_branch(&self) -> Self {
        Self { ledger: self.ledger.inside(), is_branch: true, ..self.clone() }
    }

    /// Whether this is a branch beside others that share the session.
    pub fn is_branch(&self) -> bool {
        self.is_branch
    }

    /// The same run, for work that goes on beside it in a session of its own: the limits, the cancellation and what
    /// was spent are shared; [`scratch`](Self::scratch) and the answers' form are not. So what keeps such work in
    /// scratch is dropped with the run's last other context, and can stop the work then.
    pub fn in_background(&self) -> Self {
        Self { scratch: Arc::default(), ..self.for_tool() }
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    /// [`StopReason::Cancelled`] if it is cancelled, [`StopReason::BudgetExhausted`] if its tokens or its time are
    /// used up.
    pub fn check(&self) -> Result<(), StopReason> {
        let out_of_tokens = || self.run.limits.tokens.is_some_and(|max| self.run.tokens.load(Relaxed) >= max);
        match self.interruption() {
            Some(stop) => Err(stop),
            None if out_of_tokens() => Err(StopReason::BudgetExhausted),
            None => Ok(()),
        }
    }

    /// What interrupts the run at this moment: whether it is cancelled or out of time. [`interrupted`](Self::interrupted)
    /// waits for that.
    pub fn interruption(&self) -> Option<StopReason> {
        if self.run.cancel.is_cancelled() {
            return Some(StopReason::Cancelled);
        }
        let out_of_time = self.run.limits.wall.is_some_and(|max| self.run.elapsed() >= max);
        out_of_time.then_some(StopReason::BudgetExhausted)
    }

    /// Takes one model call, or says why there is none. To be asked before each call, with [`spend`](Self::spend)
    /// (or [`bill`](Self::bill)) after it.
    ///
    /// # Errors
    /// What [`check`](Self::check) says, or [`StopReason::BudgetExhausted`] if all calls are taken.
    pub fn take_model_call(&self) -> Result<(), StopReason> {
        self.check()?;
        take(&self.run.model_calls, self.run.limits.model_calls)
    }

    /// Takes one tool call, or says why there is none.
    ///
    /// # Errors
    /// [`StopReason::BudgetExhausted`] if all calls are taken.
    pub fn take_tool_call(&self) -> Result<(), StopReason> {
        take(&self.run.tool_calls, self.run.limits.tool_calls)
    }

    /// Counts tokens that an event reports.
    pub fn spend(&self, usage: Usage) {
        // `fetch_update` saturates where `fetch_add` would wrap round to a fresh budget.
        let add = |tokens: u64| Some(tokens.saturating_add(usage.total()));
        let _ = self.run.tokens.fetch_update(Relaxed, Relaxed, add);
    }

    /// Counts tokens that no event reports yet, such as a judge's; the enclosing loop's next event does.
    pub fn bill(&self, usage: Usage) {
        self.spend(usage);
        self.owe(usage);
    }

    /// As [`bill`](Self::bill), for tokens that are counted already, such as those of an agent in the background.
    pub fn owe(&self, usage: Usage) {
        self.ledger.owe(usage);
    }

    /// Takes what was [billed](Self::bill) and not taken yet, to report it.
    pub fn take_bill(&self) -> Option<Usage> {
        self.ledger.take()
    }

    /// Ends when the run is cancelled or out of time; for `select!`. With a [`Limits::wall`] it needs a tokio
    /// runtime with time enabled.
    pub async fn interrupted(&self) -> StopReason {
        let Some(wall) = self.run.limits.wall else {
            self.run.cancel.cancelled().await;
            return StopReason::Cancelled;
        };
        // The timer stands still while a task never waits.
        if let Some(stop) = self.interruption() {
            return stop;
        }
        let end = self.run.start.checked_add(wall.saturating_sub(self.run.before));
        let out_of_time = async {
            match end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await, // further away than the clock can tell
            }
        };
        tokio::select! {
            biased;
            () = self.run.cancel.cancelled() => StopReason::Cancelled,
            () = out_of_time => StopReason::BudgetExhausted,
        }
    }

    /// A value that lives as long as the run's contexts, one for each key and made at its first use: for hooks and
    /// tools that count within a run. A key belongs to one type; another type gets a value of its own that is not kept.
    pub fn scratch<T: Default + Send + Sync + 'static>(&self, key: Uuid) -> Arc<T> {
        // What is behind the lock is whole between any two statements, so a panic elsewhere has not spoiled it.
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let value = scratch.entry(key).or_insert_with(|| Arc::new(T::default())).clone();
        value.downcast().unwrap_or_default()
    }
}

impl Default for RunContext {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("id", &self.run.id)
            .field("path", &self.path)
            .field("limits", &self.run.limits)
            .field("spent", &self.spent())
            .field("cancelled", &self.run.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

fn take(count: &AtomicU32, max: Option<u32>) -> Result<(), StopReason> {
    let max = max.unwrap_or(u32::MAX);
    let next = |taken| (taken < max).then(|| taken + 1);
    count.fetch_update(Relaxed, Relaxed, next).map(drop).map_err(|_| StopReason::BudgetExhausted)
}

#[cfg(test)]
mod tests {
    use super::{Limits, RunContext};
    use crate::{StopReason, Usage};
    use uuid::Uuid;

    #[test]
    fn background_work_shares_the_run_but_not_its_scratch() {
        let run = RunContext::new(Limits { model_calls: Some(1), ..Limits::default() });
        let kept = std::sync::Arc::downgrade(&run.scratch::<u8>(Uuid::nil()));
        let background = run.in_background();
        assert_eq!(background.id(), run.id());
        assert_eq!((background.take_model_call(), run.take_model_call()), (Ok(()), Err(StopReason::BudgetExhausted)));
        let usage = Usage { input_tokens: 7, ..Usage::default() };
        background.bill(usage);
        assert_eq!((run.spent().tokens, run.take_bill(), background.clone().take_bill()), (7, None, Some(usage)));
        background.owe(usage);
        assert!(kept.upgrade().is_some());
        let parent = run.ledger.clone();
        drop(run);
        assert!(kept.upgrade().is_none(), "scratch goes with the contexts that share it");
        drop(background);
        assert_eq!(parent.take(), Some(usage), "what nobody took goes to the run");
    }
}
