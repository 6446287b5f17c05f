//! The loop's own cost: a scripted inner agent, one evaluator that always objects.
//!
//! Runs one case so that its instructions and its memory can be counted: `loop_overhead CASE SIZE`. `cargo xtask bench`
//! calls it and prints the table. `streamed` cases let go of each event as it comes, as one who stores it does; the
//! others keep all, as [`AgentExt::complete`] does.

#[path = "support/mod.rs"]
mod support;

use std::{hint::black_box, sync::Arc, time::Duration};

use agent_core::{Agent, AgentExt, ChatMessage, Draft, Limits, RunContext, Session, StopReason, Update, agent_fn};
use agent_loop::{ContextMode, LoopAgent};
use futures::{FutureExt, StreamExt};
use tokio::{task::JoinSet, time::Instant};

use support::{block_on, looped, session, writer};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [case, count] = &args[..] else {
        return println!("usage: loop_overhead CASE SIZE (cargo xtask bench calls it)");
    };
    let count: u32 = count.parse().expect("SIZE is a number");
    match case.as_str() {
        "shared" => run(count, ContextMode::Shared, Caller::Keeps),
        "fresh" => run(count, ContextMode::Fresh, Caller::Keeps),
        "streamed" => run(count, ContextMode::Shared, Caller::Streams),
        "clone" => clones(count, 1000),
        "setup" => clones(count, 0),
        "concurrent" => concurrent(count, Caller::Keeps),
        "concurrent_streamed" => concurrent(count, Caller::Streams),
        "waiting" => waiting(count),
        other => panic!("no case named {other}"),
    }
}

/// What is done with a run's events.
#[derive(Clone, Copy)]
enum Caller {
    Keeps,
    Streams,
}

impl Caller {
    async fn run(self, agent: &LoopAgent, session: &mut Session, cx: &RunContext) {
        let stop = match self {
            Self::Keeps => agent.complete(session, cx).await.map(|response| response.stop),
            Self::Streams => {
                let mut updates = agent.run(session, cx);
                loop {
                    match updates.next().await.expect("a run has an end") {
                        Ok(Update::Delta(_) | Update::Event(_)) => (),
                        Ok(Update::Done(stop)) => break Ok(stop),
                        Err(error) => break Err(error),
                    }
                }
            }
        };
        assert_eq!(stop.expect("a scripted loop does not fail"), StopReason::IterationLimit);
    }
}

/// A loop of `count` iterations over an agent that says 100 bytes.
fn run(count: u32, context: ContextMode, caller: Caller) {
    let agent = looped(writer(100), count, context);
    let (mut session, cx) = (session(), RunContext::new(Limits::default()));
    block_on(caller.run(&agent, &mut session, &cx));
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

/// So many loops of 5 iterations at once, whose model takes a millisecond. Prints the seconds, and the KiB of memory that
/// the process had at most.
fn concurrent(count: u32, caller: Caller) {
    let model = agent_fn("writer", |session, out| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            out.record(session, Draft::message(ChatMessage::assistant("x".repeat(100)))).await;
            Ok(StopReason::Completed)
        })
    });
    let agent = Arc::new(looped(model, 5, ContextMode::Shared));
    let one = |agent: Arc<LoopAgent>| async move {
        caller.run(&agent, &mut session(), &RunContext::default()).await;
    };
    let begun = Instant::now();
    block_on(async { (0..count).map(|_| one(agent.clone())).collect::<JoinSet<_>>().join_all().await });
    println!("{} {}", begun.elapsed().as_secs_f64(), memory("VmHWM:").unwrap_or(f64::NAN));
}

/// So many loops that wait for their model. Prints the bytes of each.
fn waiting(count: u32) {
    let agent = looped(agent_fn("writer", |_, _| Box::pin(std::future::pending())), 5, ContextMode::Shared);
    let before = memory("VmRSS:").unwrap_or(f64::NAN);
    let mut loops: Vec<_> = (0..count).map(|_| (session(), RunContext::default())).collect();
    let loops: Vec<_> = loops.iter_mut().map(|(session, cx)| agent.run(session, cx)).collect();
    let loops: Vec<_> =
        loops.into_iter().filter_map(|mut run| run.next().now_or_never().is_some().then_some(run)).collect();
    let loops: Vec<_> =
        loops.into_iter().filter_map(|mut run| run.next().now_or_never().is_none().then_some(run)).collect();
    println!("{}", (memory("VmRSS:").unwrap_or(f64::NAN) - before) * 1024.0 / f64::from(count));
    assert_eq!(loops.len(), count as usize);
}

/// What Linux tells of this process, in KiB.
fn memory(key: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
