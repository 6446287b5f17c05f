//! Evaluators made of evaluators.

use std::{fmt, sync::Arc};

use agent_core::Result;
use async_trait::async_trait;

use crate::{LoopContext, LoopEvaluation, LoopEvaluator, Verdict};

/// Evaluators as one, see [`any_of`].
#[derive(Clone)]
pub struct AnyOf {
    name: String,
    members: Vec<Arc<dyn LoopEvaluator>>,
}

/// One evaluator of several that asks for more as soon as *any of* them does: all must be satisfied. They are asked in
/// order, and the evaluation is that of the first that objects.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_loop::{CompletionMarker, LoopEvaluator, StateEquals, any_of};
///
/// let members: [Arc<dyn LoopEvaluator>; 2] =
///     [Arc::new(StateEquals::new("tests", "green")), Arc::new(CompletionMarker::new("DONE"))];
/// let release = any_of("release", members);
/// # assert_eq!(release.name(), "release");
/// ```
pub fn any_of<E>(name: impl Into<String>, members: impl IntoIterator<Item = E>) -> AnyOf
where
    E: LoopEvaluator + 'static,
{
    AnyOf { name: name.into(), members: shared(members) }
}

#[async_trait]
impl LoopEvaluator for AnyOf {
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok(self.verdict(cx).await?.evaluation)
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        let mut state = Vec::new();
        for member in &self.members {
            let verdict = member.verdict(cx).await?;
            state.extend(verdict.state);
            if verdict.evaluation != LoopEvaluation::Satisfied {
                return Ok(Verdict { evaluation: verdict.evaluation, state });
            }
        }
        Ok(Verdict { evaluation: LoopEvaluation::Satisfied, state })
    }
}

/// Evaluators as one, see [`all_of`].
#[derive(Clone)]
pub struct AllOf {
    name: String,
    members: Vec<Arc<dyn LoopEvaluator>>,
}

/// One evaluator of several that asks for more only if *all of* them do: one satisfied is enough. The evaluation is that
/// of the first. They are asked in order until
/// one is satisfied; one that halts, halts.
pub fn all_of<E>(name: impl Into<String>, members: impl IntoIterator<Item = E>) -> AllOf
where
    E: LoopEvaluator + 'static,
{
    AllOf { name: name.into(), members: shared(members) }
}

#[async_trait]
impl LoopEvaluator for AllOf {
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok(self.verdict(cx).await?.evaluation)
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        let (mut first, mut state) = (None, Vec::new());
        for member in &self.members {
            let verdict = member.verdict(cx).await?;
            match verdict.evaluation {
                decided @ (LoopEvaluation::Satisfied | LoopEvaluation::Halt(_)) => {
                    return Ok(Verdict { evaluation: decided, state: verdict.state });
                }
                more @ (LoopEvaluation::Continue(_) | LoopEvaluation::ContinueWith(_)) => {
                    // What is not said must not be noted as said.
                    if first.is_none() {
                        (first, state) = (Some(more), verdict.state);
                    }
                }
            }
        }
        Ok(Verdict { evaluation: first.unwrap_or(LoopEvaluation::Satisfied), state })
    }
}

/// An evaluator with a limit, see [`at_most`].
#[derive(Debug, Clone, Copy)]
pub struct AtMost<E> {
    n: usize,
    inner: E,
}

/// An evaluator that may decide `n` iterations of a loop; after that it is satisfied, unasked. It counts the
/// iterations that carry its name, so it has to be an evaluator of the loop itself, not part of another.
pub fn at_most<E: LoopEvaluator>(n: u32, inner: E) -> AtMost<E> {
    AtMost { n: n as usize, inner }
}

#[async_trait]
impl<E: LoopEvaluator> LoopEvaluator for AtMost<E> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok(self.verdict(cx).await?.evaluation)
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        let objections = cx.earlier.iter().filter(|earlier| earlier.by.as_deref() == Some(self.name())).count();
        if objections >= self.n { Ok(LoopEvaluation::Satisfied.into()) } else { self.inner.verdict(cx).await }
    }
}

/// An evaluator with a condition, see [`only_while`].
#[derive(Clone, Copy)]
pub struct OnlyWhile<P, E> {
    condition: P,
    inner: E,
}

/// An evaluator that is asked only while a condition holds; otherwise it is satisfied.
pub fn only_while<P, E>(condition: P, inner: E) -> OnlyWhile<P, E>
where
    P: Fn(&LoopContext<'_>) -> bool + Send + Sync,
    E: LoopEvaluator,
{
    OnlyWhile { condition, inner }
}

#[async_trait]
impl<P, E> LoopEvaluator for OnlyWhile<P, E>
where
    P: Fn(&LoopContext<'_>) -> bool + Send + Sync,
    E: LoopEvaluator,
{
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok(self.verdict(cx).await?.evaluation)
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        if (self.condition)(cx) { self.inner.verdict(cx).await } else { Ok(LoopEvaluation::Satisfied.into()) }
    }
}

fn shared<E: LoopEvaluator + 'static>(members: impl IntoIterator<Item = E>) -> Vec<Arc<dyn LoopEvaluator>> {
    members.into_iter().map(|member| Arc::new(member) as Arc<dyn LoopEvaluator>).collect()
}

fn names(members: &[Arc<dyn LoopEvaluator>]) -> Vec<&str> {
    members.iter().map(LoopEvaluator::name).collect()
}

impl fmt::Debug for AnyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyOf").field("name", &self.name).field("members", &names(&self.members)).finish()
    }
}

impl fmt::Debug for AllOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllOf").field("name", &self.name).field("members", &names(&self.members)).finish()
    }
}

impl<P, E: fmt::Debug> fmt::Debug for OnlyWhile<P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnlyWhile").field("inner", &self.inner).finish_non_exhaustive()
    }
}
