//! Loops.

mod digest;
mod evaluation;
mod evaluator;
mod evaluators;
mod loop_agent;
mod options;
mod outcome;

pub use evaluation::LoopEvaluation;
pub use evaluator::{
    EvaluateAsyncFn, EvaluateFn, Iteration, LoopContext, LoopEvaluator, evaluate_async_fn, evaluate_fn,
};
#[cfg(feature = "command")]
pub use evaluators::CommandSucceeds;
pub use evaluators::{
    AllOf, AnyOf, AtMost, CompletionMarker, OnlyWhile, Oscillating, Stalled, StateEquals, TimeBudget, TokenBudget,
    UntilEscalated, all_of, any_of, at_most, only_while,
};
pub use loop_agent::LoopAgent;
pub use options::{ContextMode, LoopOptions};
pub use outcome::{IterationRecord, LoopOutcome};
