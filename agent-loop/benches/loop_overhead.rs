//! The loop's own cost: a scripted inner agent, one evaluator that always objects.
//!
//! Runs one case so that valgrind can count its instructions: `loop_overhead CASE SIZE`, where the case is
//! `shared`, `fresh`, `clone` or `setup`. `cargo xtask bench` calls it and prints the table.

use std::{hint::black_box, num::NonZeroU32};

use agent_core::{AgentExt, ChatMessage, Draft, Limits, RunContext, Session, StopReason, agent_fn};
use agent_loop::{ContextMode, LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [case, count] = &args[..] else {
        return println!("usage: loop_overhead shared|fresh|clone|setup SIZE (cargo xtask bench calls it)");
    };
    let count: u32 = count.parse().expect("SIZE is a number");
    match case.as_str() {
        "shared" => run(count, ContextMode::Shared),
        "fresh" => run(count, ContextMode::Fresh),
        "clone" => clones(count, 1000),
        "setup" => clones(count, 0),
        other => panic!("no case named {other}"),
    }
}

/// A loop of `count` iterations over an agent that says 100 bytes.
fn run(count: u32, context: ContextMode) {
    let answer = ChatMessage::assistant("x".repeat(100));
    let inner = agent_fn("writer", move |session, out| {
        let answer = answer.clone();
        Box::pin(async move {
            out.record(session, Draft::message(answer)).await;
            Ok(StopReason::Completed)
        })
    });
    let max_iterations = NonZeroU32::new(count).expect("at least one iteration");
    let options = LoopOptions { max_iterations, context, ..LoopOptions::default() };
    let agent = LoopAgent::new("loop", inner, options).evaluator(evaluate_fn("again", move |_| match context {
        ContextMode::Shared => LoopEvaluation::feedback("once more"),
        ContextMode::Fresh => LoopEvaluation::again(), // all feedback so far would be said again each time
    }));
    let mut session = Session::new();
    session.push("go");
    let cx = RunContext::new(Limits::default());
    let response = block_on(agent.complete(&mut session, &cx)).expect("a scripted loop does not fail");
    assert_eq!(response.stop, StopReason::IterationLimit);
    black_box(session);
}

/// So many clones of a session with `count` messages.
fn clones(count: u32, clones: u32) {
    let mut session = Session::new();
    (0..count).for_each(|number| session.push(format!("message {number}")));
    for _ in 0..clones {
        black_box(session.clone());
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
