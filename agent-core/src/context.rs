//! One run's shared limits, cancellation and bookkeeping.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Format, Limits, LoopStep, Spent, StopReason, Usage, budget::Budget, ids, ledger::Ledger};

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
    part: Arc<Part>,
    path: Arc<[LoopStep]>,
}

/// What the contexts of one part of a run share: all of the run, unless a part has something of its own.
#[derive(Clone)]
struct Part {
    run: Arc<Run>,
    format: Option<Arc<Format>>,
    content_in_spans: bool,
    ledger: Arc<Ledger>,
    is_branch: bool,
    /// How many agents this one is a tool of, one within the other.
    depth: u32,
    scratch: Arc<Scratch>,
}

struct Run {
    id: Uuid,
    cancel: CancellationToken,
    budget: Budget,
}

/// A few values with their keys; gone with the last context that shares them.
type Scratch = Mutex<Vec<(Uuid, Arc<dyn Any + Send + Sync>)>>;

impl RunContext {
    /// A run that starts now, with these limits.
    pub fn new(limits: Limits) -> Self {
        let budget = Budget::new(limits, Spent::default());
        let part = Part {
            run: Arc::new(Run { id: ids::next(), cancel: CancellationToken::new(), budget }),
            format: None,
            content_in_spans: false,
            ledger: Arc::default(),
            is_branch: false,
            depth: 0,
            scratch: Arc::default(),
        };
        Self { part: Arc::new(part), path: Arc::from([]) }
    }

    /// The same run, taken up after it had spent so much, perhaps in a process that is gone: its calls, tokens and time
    /// count on from there, and between then and now it spent nothing. The cancellation and the [scratch](Self::scratch)
    /// are shared with this context; what is spent is not.
    pub fn taken_up(&self, id: Uuid, spent: Spent) -> Self {
        let Run { cancel, budget, .. } = &*self.part.run;
        let run = Run { id, cancel: cancel.clone(), budget: Budget::new(*budget.limits(), spent) };
        self.with(Part { run: Arc::new(run), ..self.own_part() })
    }

    /// The run's id (UUID version 7); every event of the run carries it.
    pub fn id(&self) -> Uuid {
        self.part.run.id
    }

    /// The token that cancels the whole run.
    pub fn cancel(&self) -> &CancellationToken {
        &self.part.run.cancel
    }

    /// What the run may spend.
    pub fn limits(&self) -> &Limits {
        self.budget().limits()
    }

    /// The iterations of loops that this part of the run is in, outermost first.
    pub fn path(&self) -> &Arc<[LoopStep]> {
        &self.path
    }

    /// The same run, inside one more iteration of a loop.
    pub fn enter(&self, step: LoopStep) -> Self {
        let path = self.path.iter().cloned().chain([step]).collect();
        Self { path, part: self.part.clone() }
    }

    /// What the run has spent so far.
    pub fn spent(&self) -> Spent {
        self.budget().spent()
    }

    /// The same run, whose answers are to have this form.
    pub fn with_format(&self, format: Format) -> Self {
        self.with(Part { format: Some(Arc::new(format)), ..self.own_part() })
    }

    /// The form that the caller of the run wants answers to have; an agent prefers it to its own.
    pub fn format(&self) -> Option<&Format> {
        self.part.format.as_deref()
    }

    /// The same run, whose spans show what was said: instructions, prompts, answers, tools with their arguments and
    /// results, feedback. Without it they show names, numbers and reasons only.
    pub fn with_content_in_spans(&self) -> Self {
        self.with(Part { content_in_spans: true, ..self.own_part() })
    }

    /// Whether spans may show what was said; see [`with_content_in_spans`](Self::with_content_in_spans).
    pub fn shows_content(&self) -> bool {
        self.part.content_in_spans
    }

    /// The same run, in an agent that has a session and an answer of its own.
    pub(crate) fn for_tool(&self) -> Self {
        let part = self.own_part();
        let (depth, ledger) = (part.depth + 1, part.ledger.inside());
        self.with(Part { format: None, is_branch: false, depth, ledger, ..part })
    }

    /// How many agents this one is a tool of, one within the other.
    pub(crate) fn depth(&self) -> u32 {
        self.part.depth
    }

    /// The same run, in a branch beside others that share the session.
    pub fn in_branch(&self) -> Self {
        self.with(Part { ledger: self.part.ledger.inside(), is_branch: true, ..self.own_part() })
    }

    /// Whether this is a branch beside others that share the session.
    pub fn is_branch(&self) -> bool {
        self.part.is_branch
    }

    /// The same run, for work that goes on beside it in a session of its own: the limits, the cancellation and what
    /// was spent are shared; [`scratch`](Self::scratch) and the answers' form are not. So what keeps such work in
    /// scratch is dropped with the run's last other context, and can stop the work then.
    pub fn in_background(&self) -> Self {
        let inside = self.for_tool();
        inside.with(Part { scratch: Arc::default(), ..inside.own_part() })
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    /// [`StopReason::Cancelled`] if it is cancelled, [`StopReason::BudgetExhausted`] if its tokens or its time are
    /// used up.
    pub fn check(&self) -> Result<(), StopReason> {
        match self.interruption() {
            Some(stop) => Err(stop),
            None if self.budget().is_out_of_tokens() => Err(StopReason::BudgetExhausted),
            None => Ok(()),
        }
    }

    /// What interrupts the run at this moment: whether it is cancelled or out of time. [`interrupted`](Self::interrupted)
    /// waits for that.
    pub fn interruption(&self) -> Option<StopReason> {
        if self.cancel().is_cancelled() {
            return Some(StopReason::Cancelled);
        }
        self.budget().is_out_of_time().then_some(StopReason::BudgetExhausted)
    }

    /// Takes one model call, or says why there is none. To be asked before each call, with [`spend`](Self::spend)
    /// (or [`bill`](Self::bill)) after it.
    ///
    /// # Errors
    /// What [`check`](Self::check) says, or [`StopReason::BudgetExhausted`] if all calls are taken.
    pub fn take_model_call(&self) -> Result<(), StopReason> {
        self.check()?;
        self.budget().take_model_call()
    }

    /// Takes one tool call, or says why there is none.
    ///
    /// # Errors
    /// [`StopReason::BudgetExhausted`] if all calls are taken.
    pub fn take_tool_call(&self) -> Result<(), StopReason> {
        self.budget().take_tool_call()
    }

    /// Counts tokens that an event reports.
    pub fn spend(&self, usage: Usage) {
        self.budget().spend(usage);
    }

    /// Counts tokens that no event reports yet, such as a judge's; the enclosing loop's next event does.
    pub fn bill(&self, usage: Usage) {
        self.spend(usage);
        self.owe(usage);
    }

    /// As [`bill`](Self::bill), for tokens that are counted already, such as those of an agent in the background.
    pub fn owe(&self, usage: Usage) {
        self.part.ledger.owe(usage);
    }

    /// Takes what was [billed](Self::bill) and not taken yet, to report it.
    pub fn take_bill(&self) -> Option<Usage> {
        self.part.ledger.take()
    }

    /// Ends when the run is cancelled or out of time; for `select!`. With a [`Limits::wall`] it needs a tokio
    /// runtime with time enabled.
    pub async fn interrupted(&self) -> StopReason {
        // The timer stands still while a task never waits.
        if let Some(stop) = self.interruption() {
            return stop;
        }
        tokio::select! {
            biased;
            () = self.cancel().cancelled() => StopReason::Cancelled,
            () = self.budget().out_of_time() => StopReason::BudgetExhausted,
        }
    }

    /// A value that lives as long as the run's contexts, one for each key and made at its first use: for hooks and
    /// tools that count within a run. A key belongs to one type; another type gets a value of its own that is not kept.
    pub fn scratch<T: Default + Send + Sync + 'static>(&self, key: Uuid) -> Arc<T> {
        // What is behind the lock is whole between any two statements, so a panic elsewhere has not spoiled it.
        let mut scratch = self.part.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let known = scratch.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone());
        let value = known.unwrap_or_else(|| {
            let value: Arc<dyn Any + Send + Sync> = Arc::new(T::default());
            scratch.push((key, value.clone()));
            value
        });
        value.downcast().unwrap_or_default()
    }

    fn budget(&self) -> &Budget {
        &self.part.run.budget
    }

    /// What this part shares with others, to be changed for one of its own.
    fn own_part(&self) -> Part {
        (*self.part).clone()
    }

    /// The same place in the run, as another part of it.
    fn with(&self, part: Part) -> Self {
        Self { part: Arc::new(part), path: self.path.clone() }
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
            .field("id", &self.id())
            .field("path", &self.path)
            .field("limits", self.limits())
            .field("spent", &self.spent())
            .field("cancelled", &self.cancel().is_cancelled())
            .finish_non_exhaustive()
    }
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
        let parent = run.part.ledger.clone();
        drop(run);
        assert!(kept.upgrade().is_none(), "scratch goes with the contexts that share it");
        drop(background);
        assert_eq!(parent.take(), Some(usage), "what nobody took goes to the run");
    }
}
