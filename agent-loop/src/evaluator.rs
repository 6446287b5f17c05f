//! Who decides whether a loop goes on, and what it is told.

use std::{fmt, sync::Arc};

use agent_core::{AgentResponse, ChatMessage, Result, RunContext, Session, StopReason};
use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::{
    IterationRecord, LoopEvaluation, Verdict,
    digest::{cut_off, digest},
    outcome::Progress,
};

/// Decides after each iteration whether the loop goes on.
///
/// An evaluator is a function of its [`LoopContext`] and nothing else: it may be shared by loops that run at once, and
/// a resumed loop asks it as if nothing had happened. An error ends the run; it is never read as "stop" or "go on".
/// One that calls a model takes the call before and bills its tokens after, see
/// [`RunContext::take_model_call`] and [`RunContext::bill`]; where the call is refused it returns
/// [`Interrupted`](crate::Interrupted).
#[async_trait]
pub trait LoopEvaluator: Send + Sync {
    /// Its name in the loop's record, unique in a loop.
    fn name(&self) -> &str;

    /// Judges the iteration that just ended.
    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation>;

    /// The same with what is to be noted in the session's state; this is what a loop asks. Only an evaluator that has
    /// to remember what it said needs to write it, and then [`evaluate`](Self::evaluate) in its terms.
    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        Ok(self.evaluate(cx).await?.into())
    }
}

/// What an evaluator is told.
#[derive(Debug, Clone, Copy)]
pub struct LoopContext<'a> {
    /// The session after the iteration.
    pub session: &'a Session,
    /// What the loop was asked: the same in all iterations, after a resume too.
    pub request: &'a [ChatMessage],
    /// Which iteration has ended, from 1.
    pub iteration: u32,
    /// Whether it is the last one that the cap allows.
    pub is_last: bool,
    /// The iterations before it, oldest first.
    pub earlier: &'a [Iteration],
    /// What the iteration came to: the inner agent's events, and the tokens of the whole pass.
    pub last: &'a AgentResponse,
    /// The run, in this iteration.
    pub run: &'a RunContext,
}

impl LoopContext<'_> {
    /// The digest of the iteration that just ended, comparable with [`Iteration::digest`].
    pub fn digest(&self) -> u64 {
        let step = self.run.path().last();
        let begun = step.and_then(|step| {
            let cut_off = || cut_off(self.session, &step.name, self.earlier, self.last);
            // What was kept first: a loop in the pass may have forgotten messages since. Beside a branch's messages are
            // those of others.
            let kept = Progress::interrupted_digest(self.session, &step.name);
            if self.run.is_branch() { kept } else { kept.or_else(cut_off) }
        });
        digest(begun, self.last)
    }
}

/// An iteration that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// What it came to. After a resume it has no events, only its usage.
    pub response: AgentResponse,
    /// The evaluator that objected.
    pub by: Option<String>,
    /// What it said.
    pub feedback: Option<String>,
    /// A hash of the iteration's texts and calls, without ids: equal iterations have equal digests, on every machine.
    pub digest: u64,
}

impl Iteration {
    /// One that another run finished.
    pub(crate) fn without_events(record: IterationRecord) -> Self {
        let IterationRecord { usage, by, feedback, digest, .. } = record;
        let response = AgentResponse { events: Vec::new(), usage, stop: StopReason::Completed };
        Self { response, by, feedback, digest }
    }
}

macro_rules! forward_evaluator {
    ($pointer:ty) => {
        #[async_trait]
        impl<E: LoopEvaluator + ?Sized> LoopEvaluator for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
                (**self).evaluate(cx).await
            }

            async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
                (**self).verdict(cx).await
            }
        }
    };
}

forward_evaluator!(Box<E>);
forward_evaluator!(Arc<E>);

/// An evaluator from a function, see [`evaluate_fn`].
pub struct EvaluateFn<F> {
    name: String,
    f: F,
}

/// An evaluator from a function that cannot fail.
///
/// ```
/// use agent_loop::{LoopEvaluation, evaluate_fn};
///
/// let short = evaluate_fn("short", |cx| {
///     let length = cx.last.text().chars().count();
///     if length <= 280 { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback(format!("{length} characters: cut to 280")) }
/// });
/// # use agent_loop::LoopEvaluator;
/// assert_eq!(short.name(), "short");
/// ```
pub fn evaluate_fn<F>(name: impl Into<String>, f: F) -> EvaluateFn<F>
where
    F: Fn(&LoopContext<'_>) -> LoopEvaluation + Send + Sync,
{
    EvaluateFn { name: name.into(), f }
}

#[async_trait]
impl<F> LoopEvaluator for EvaluateFn<F>
where
    F: Fn(&LoopContext<'_>) -> LoopEvaluation + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok((self.f)(cx))
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        Ok((self.f)(cx).into()) // one box less than by way of `evaluate`
    }
}

impl<F> fmt::Debug for EvaluateFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvaluateFn").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An evaluator from an async function, see [`evaluate_async_fn`].
pub struct EvaluateAsyncFn<F> {
    name: String,
    f: F,
}

/// An evaluator from an async function.
///
/// ```
/// use agent_loop::{LoopEvaluation, evaluate_async_fn};
///
/// let linked = evaluate_async_fn("linked", |cx| {
///     Box::pin(async move {
///         let text = cx.last.text(); // look its links up here
///         Ok(if text.contains("http") { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback("add a source") })
///     })
/// });
/// # use agent_loop::LoopEvaluator;
/// assert_eq!(linked.name(), "linked");
/// ```
pub fn evaluate_async_fn<F>(name: impl Into<String>, f: F) -> EvaluateAsyncFn<F>
where
    F: for<'a> Fn(&'a LoopContext<'a>) -> BoxFuture<'a, Result<LoopEvaluation>> + Send + Sync,
{
    EvaluateAsyncFn { name: name.into(), f }
}

#[async_trait]
impl<F> LoopEvaluator for EvaluateAsyncFn<F>
where
    F: for<'a> Fn(&'a LoopContext<'a>) -> BoxFuture<'a, Result<LoopEvaluation>> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        (self.f)(cx).await
    }
}

impl<F> fmt::Debug for EvaluateAsyncFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvaluateAsyncFn").field("name", &self.name).finish_non_exhaustive()
    }
}
