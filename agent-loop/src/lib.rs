//! Run an agent, ask evaluators whether the work is done, feed the first objection back, and say why it stopped.
//!
//! A [`LoopAgent`] is an agent around another. After each iteration it asks its [`LoopEvaluator`]s in order. The first
//! that objects decides: its feedback becomes the next message, and the inner agent runs again. The loop ends for a
//! reason that the caller can read: a cap is never mistaken for success.
//!
//! # Example
//!
//! The model here plays a script (`agent-core`'s feature `testing`); a client of `agent-providers` takes its place.
//!
//! ```
//! use std::num::NonZeroU32;
//!
//! use agent_core::{AgentExt, ChatAgent, Session, StopReason, testing::ScriptedClient};
//! use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! let model = ScriptedClient::new().says("Our product is a very powerful solution.").says("It boils water in 40 s.");
//! let writer = ChatAgent::new("writer", model, Default::default());
//!
//! let short = evaluate_fn("short", |cx| {
//!     let words = cx.last.text().split_whitespace().count();
//!     if words <= 6 { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback(format!("{words} words; use 6")) }
//! });
//! let options = LoopOptions { max_iterations: NonZeroU32::new(5).expect("not zero"), ..Default::default() };
//! let slogan = LoopAgent::new("slogan", writer, options).evaluator(short);
//!
//! let mut session = Session::new();
//! let response = slogan.ask(&mut session, "A slogan for our kettle, please.").await?;
//!
//! assert_eq!(response.stop, StopReason::Completed);
//! assert_eq!(response.text(), "It boils water in 40 s.");
//! let outcome = LoopOutcome::of(&session, "slogan").expect("it ran");
//! assert_eq!(outcome.iterations.len(), 2);
//! assert_eq!(outcome.iterations[0].feedback.as_deref(), Some("7 words; use 6"));
//! # Ok(())
//! # }
//! ```
//!
//! # Verdicts
//!
//! An evaluator answers with a [`LoopEvaluation`]:
//!
//! - [`Satisfied`](LoopEvaluation::Satisfied): nothing to object; the next evaluator is asked. If all are satisfied,
//!   the loop is done.
//! - [`Continue`](LoopEvaluation::Continue): run again, with this feedback as one user message.
//! - [`ContinueWith`](LoopEvaluation::ContinueWith): run again, with exactly these messages.
//! - [`Halt`](LoopEvaluation::Halt): stop at once, whatever later evaluators want. Guards halt; they stand first.
//!
//! At the cap the evaluators are still asked, so that a success on the last iteration is a success.
//!
//! # How a loop ends
//!
//! [`AgentResponse::stop`](agent_core::AgentResponse::stop) is one of
//!
//! | [`StopReason`](agent_core::StopReason) | when |
//! |---|---|
//! | `Completed` | all evaluators are satisfied, or the inner agent escalated (`exit_loop`) |
//! | `IterationLimit` | the cap is reached, and an evaluator still objects |
//! | `Halted` | an evaluator forbade to go on |
//! | `AwaitingApproval` | a tool call waits for an answer; say it and run again |
//! | `BudgetExhausted`, `Cancelled` | the run was interrupted; run again to go on |
//! | the inner agent's own | the loop has no evaluators |
//!
//! [`LoopOutcome::of`] reads from the session who decided, what was said, and what each iteration cost. It is kept by
//! the same events that end each step, so it survives a crash, and a later agent can read it.
//!
//! # What an iteration sees
//!
//! With [`ContextMode::Shared`] the inner agent sees the whole conversation, and the feedback is its next message.
//! With [`ContextMode::Fresh`] the messages of earlier iterations are forgotten: it sees the request and all feedback
//! so far as one list. The state is kept in both.
//!
//! # Evaluators
//!
//! - [`evaluate_fn`], [`evaluate_async_fn`]: from a function of the [`LoopContext`].
//! - [`CompletionMarker`], [`StateEquals`], `MatchesSchema`, `CommandSucceeds`: look for a word, a state, a form, an
//!   exit code.
//! - [`Judge`]: another model, or a panel, given the request and the answer.
//! - [`TodosDone`] with [`todo_tools`]: until the agent has done what it planned.
//! - [`BackgroundDone`] of [`BackgroundTasks`]: waits for agents that the agent started in the background.
//! - [`UntilEscalated`]: for bodies that say themselves when they are done.
//! - Guards: [`TokenBudget`], [`TimeBudget`], [`Stalled`], [`Oscillating`].
//! - Combined: [`any_of`], [`all_of`], [`at_most`], [`only_while`].
//!
//! ```
//! # use agent_core::testing::ScriptedAgent;
//! # let coder = ScriptedAgent::new("coder");
//! use agent_loop::{CompletionMarker, LoopAgent, Stalled, TokenBudget};
//!
//! let agent = LoopAgent::new("code", coder, Default::default())
//!     .evaluator(TokenBudget::new(200_000))
//!     .evaluator(Stalled::new(3))
//!     .evaluator(CompletionMarker::new("ALL DONE").at_end());
//! ```
//!
//! A loop that shares its context for long needs [`Compaction`], a hook of the chat agent that keeps requests under a
//! token budget.
//!
//! # Taking a loop up again
//!
//! A loop that was suspended or crashed goes on where it stopped when its session is run again: iterations, feedback
//! and tokens count on, and the interrupted iteration runs once more. A new request on the same session begins anew.
//! Nothing has to be kept but the session, so a [`Runner`](agent_core::Runner) and a store are all that is needed.
//!
//! # Testing a loop
//!
//! Three tests say most of a loop: it is content with a good answer, it insists until the answer is good, and it
//! gives up. With `agent_core`'s feature `testing` each is about ten lines.
//!
//! ```test_harness
//! use std::num::NonZeroU32;
//!
//! use agent_core::{AgentExt, Session, StopReason, testing::ScriptedAgent};
//! use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
//!
//! /// The loop under test: at most 3 passes, until the answer is a number.
//! fn counter(worker: ScriptedAgent) -> LoopAgent {
//!     let numeric = evaluate_fn("numeric", |cx| match cx.last.text().parse::<u32>() {
//!         Ok(_) => LoopEvaluation::Satisfied,
//!         Err(_) => LoopEvaluation::feedback("answer with a number"),
//!     });
//!     let options = LoopOptions { max_iterations: NonZeroU32::new(3).unwrap(), ..Default::default() };
//!     LoopAgent::new("count", worker, options).evaluator(numeric)
//! }
//!
//! #[tokio::test]
//! async fn passes_on_the_first() -> agent_core::Result<()> {
//!     let worker = ScriptedAgent::new("worker").says("42");
//!     let response = counter(worker.clone()).ask(&mut Session::new(), "How many?").await?;
//!     assert_eq!((response.stop, worker.runs()), (StopReason::Completed, 1));
//!     assert_eq!(response.text(), "42");
//!     Ok(())
//! }
//!
//! #[tokio::test]
//! async fn passes_on_the_third() -> agent_core::Result<()> {
//!     let worker = ScriptedAgent::new("worker").says("many").says("lots").says("42");
//!     let mut session = Session::new();
//!     let response = counter(worker.clone()).ask(&mut session, "How many?").await?;
//!     assert_eq!((response.stop, worker.runs()), (StopReason::Completed, 3));
//!     let said: Vec<String> = session.messages().iter().map(|message| message.text()).collect();
//!     assert_eq!(said, ["How many?", "many", "answer with a number", "lots", "answer with a number", "42"]);
//!     Ok(())
//! }
//!
//! #[tokio::test]
//! async fn never_passes() -> agent_core::Result<()> {
//!     let worker = ScriptedAgent::new("worker").says("many").says("lots").says("heaps");
//!     let mut session = Session::new();
//!     let response = counter(worker.clone()).ask(&mut session, "How many?").await?;
//!     assert_eq!((response.stop, worker.runs()), (StopReason::IterationLimit, 3));
//!     let outcome = LoopOutcome::of(&session, "count").expect("it ran");
//!     assert_eq!(outcome.by.as_deref(), Some("numeric"));
//!     assert_eq!(outcome.why.as_deref(), Some("answer with a number"));
//!     Ok(())
//! }
//! ```
//!
//! # Feature flags
//!
//! - `command`: `CommandSucceeds`, an evaluator that runs a program.
//! - `schema`: `MatchesSchema`, an evaluator that validates JSON.

mod compaction;
mod digest;
mod evaluation;
mod evaluator;
mod evaluators;
mod loop_agent;
mod model_call;
mod numbers;
mod options;
mod outcome;
mod record;
mod tasks;
mod telemetry;
mod text;
mod todos;

pub use agent_core;
pub use compaction::Compaction;
pub use evaluation::{Interrupted, LoopEvaluation, Verdict};
pub use evaluator::{
    EvaluateAsyncFn, EvaluateFn, Iteration, LoopContext, LoopEvaluator, evaluate_async_fn, evaluate_fn,
};
#[cfg(feature = "command")]
pub use evaluators::CommandSucceeds;
#[cfg(feature = "schema")]
pub use evaluators::MatchesSchema;
pub use evaluators::{
    AllOf, AnyOf, AtMost, CompletionMarker, Judge, OnlyWhile, Oscillating, Stalled, StateEquals, TimeBudget,
    TokenBudget, UntilEscalated, all_of, any_of, at_most, only_while,
};
pub use loop_agent::LoopAgent;
pub use model_call::Patience;
pub use options::{ContextMode, LoopOptions};
pub use outcome::LoopOutcome;
pub use record::IterationRecord;
pub use tasks::{BackgroundDone, BackgroundTasks, TaskRecord, TaskStatus};
pub use todos::{TodosDone, todo_tools};
