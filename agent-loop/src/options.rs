//! How a loop runs.

use std::num::NonZeroU32;

use crate::LoopAgent;

/// How a loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopOptions {
    /// How many iterations there may be, resumed parts included; 10 by default. None cannot be written:
    ///
    /// ```compile_fail
    /// let options = agent_loop::LoopOptions { max_iterations: 0, ..Default::default() };
    /// ```
    pub max_iterations: NonZeroU32,
    /// What an iteration sees of the ones before it.
    pub context: ContextMode,
    /// Whether the evaluators are asked after the last iteration too; yes by default. If not, their calls are saved,
    /// and an iteration at the cap is [`IterationLimit`](agent_core::StopReason::IterationLimit) however good it is.
    pub verdict_at_cap: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        const CAP: NonZeroU32 = NonZeroU32::new(LoopAgent::DEFAULT_MAX_ITERATIONS).expect("not zero");
        Self { max_iterations: CAP, context: ContextMode::Shared, verdict_at_cap: true }
    }
}

/// What an iteration sees of the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ContextMode {
    /// The whole conversation; the feedback is its next message.
    #[default]
    Shared,
    /// What was there when the loop began, and all feedback so far as one message. The messages of earlier iterations
    /// are forgotten, but for the results of calls from before; the state is kept.
    Fresh,
}
