//! Evaluators that never ask for more: they halt the loop, or are satisfied. They stand first.

use std::time::Duration;

use agent_core::Result;
use async_trait::async_trait;

use crate::{LoopContext, LoopEvaluation, LoopEvaluator};

/// `stalled`: halts when the last passes all came to the same texts and calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stalled {
    passes: u32,
}

impl Stalled {
    /// Halts after this many equal passes in a row; fewer than 2 count as 2.
    pub fn new(n: u32) -> Self {
        Self { passes: n.max(2) }
    }
}

#[async_trait]
impl LoopEvaluator for Stalled {
    fn name(&self) -> &'static str {
        "stalled"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let digest = cx.digest();
        let before = self.passes as usize - 1;
        let same = cx.earlier.iter().rev().take(before).filter(|earlier| earlier.digest == digest).count();
        let halt = || LoopEvaluation::Halt(format!("the last {} passes came to the same", self.passes));
        Ok(if same == before { halt() } else { LoopEvaluation::Satisfied })
    }
}

/// `oscillating`: halts when a pass comes to the same as an earlier one, after a different one in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oscillating;

impl Oscillating {
    /// Halts at the first return.
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl LoopEvaluator for Oscillating {
    fn name(&self) -> &'static str {
        "oscillating"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let digest = cx.digest();
        let unchanged = cx.earlier.last().is_none_or(|previous| previous.digest == digest);
        let before = cx.earlier.iter().position(|earlier| earlier.digest == digest).filter(|_| !unchanged);
        Ok(match before {
            Some(at) => {
                let (now, then) = (cx.iteration, at + 1);
                LoopEvaluation::Halt(format!("pass {now} came to the same as pass {then}, after others in between"))
            }
            None => LoopEvaluation::Satisfied,
        })
    }
}

/// `token_budget`: halts when the loop's passes have used so many tokens, judges included.
///
/// As every guard it halts a loop whose answer is good, too; behind an evaluator that objects it is not asked. To end
/// the whole run instead, in the middle of a pass and to be taken up again, there is
/// [`Limits::tokens`](agent_core::Limits::tokens).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    tokens: u64,
}

impl TokenBudget {
    /// Halts at this many input and output tokens together, or more.
    pub fn new(tokens: u64) -> Self {
        Self { tokens }
    }
}

#[async_trait]
impl LoopEvaluator for TokenBudget {
    fn name(&self) -> &'static str {
        "token_budget"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let earlier = cx.earlier.iter().map(|earlier| earlier.response.usage.total());
        let used = earlier.fold(cx.last.usage.total(), u64::saturating_add);
        let halt = || LoopEvaluation::Halt(format!("the loop used {used} tokens of {}", self.tokens));
        Ok(if used >= self.tokens { halt() } else { LoopEvaluation::Satisfied })
    }
}

/// `time_budget`: halts when the run has taken so long. It is asked between iterations and interrupts none;
/// [`Limits::wall`](agent_core::Limits::wall) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBudget {
    time: Duration,
}

impl TimeBudget {
    /// Halts once the run has taken this long; a resumed loop counts from its resumption.
    pub fn new(time: Duration) -> Self {
        Self { time }
    }
}

#[async_trait]
impl LoopEvaluator for TimeBudget {
    fn name(&self) -> &'static str {
        "time_budget"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let wall = cx.run.spent().wall;
        let halt = || LoopEvaluation::Halt(format!("the run took {wall:.1?} of {:.1?}", self.time));
        Ok(if wall >= self.time { halt() } else { LoopEvaluation::Satisfied })
    }
}
