//! What the measured programs share.

use std::{cell::LazyCell, num::NonZeroU32};

use agent_core::{Agent, ChatMessage, Draft, Session, StopReason, agent_fn};
use agent_loop::{ContextMode, LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use tokio::runtime::{Builder, Runtime};

/// An agent that says so many bytes.
pub(crate) fn writer(bytes: usize) -> impl Agent {
    let answer = ChatMessage::assistant("x".repeat(bytes));
    agent_fn("writer", move |session, out| {
        let answer = answer.clone();
        Box::pin(async move {
            out.record(session, Draft::message(answer)).await;
            Ok(StopReason::Completed)
        })
    })
}

/// A loop of `count` iterations: one evaluator that always objects.
pub(crate) fn looped(inner: impl Agent + 'static, count: u32, context: ContextMode) -> LoopAgent {
    let max_iterations = NonZeroU32::new(count).expect("at least one iteration");
    let options = LoopOptions { max_iterations, context, ..LoopOptions::default() };
    LoopAgent::new("loop", inner, options).evaluator(evaluate_fn("again", move |_| match context {
        ContextMode::Shared => LoopEvaluation::feedback("once more"),
        ContextMode::Fresh => LoopEvaluation::again(), // all feedback so far would be said again each time
    }))
}

/// A session in which the caller has spoken.
pub(crate) fn session() -> Session {
    let mut session = Session::new();
    session.push("go");
    session
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: LazyCell<Runtime> =
            const { LazyCell::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime")) };
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
