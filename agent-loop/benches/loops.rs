//! Wall time of loops. `cargo xtask bench` prints it beside everything else; `cargo bench -p agent-loop --bench loops`
//! prints it alone.

#[path = "support/mod.rs"]
mod support;

use std::hint::black_box;

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Delta,
    Limits, Result, RunContext, Session, StopReason, Update, Usage, agent_fn,
};
use agent_loop::ContextMode;
use divan::{Bencher, counter::ItemsCount};
use futures::{StreamExt, future::BoxFuture, stream, stream::BoxStream};

use support::{block_on, looped, session, writer};

fn main() {
    divan::main();
}

const COUNTS: [u32; 4] = [1, 10, 100, 1000];

/// A loop as one writes it by hand, over an agent behind a box: what there is to compare with.
#[divan::bench(args = COUNTS, consts = [100, 10_240])]
fn bare<const BYTES: usize>(bencher: Bencher<'_, '_>, count: u32) {
    type Agent = Box<dyn for<'a> Fn(&'a mut Vec<ChatMessage>) -> BoxFuture<'a, StopReason>>;
    let answer = ChatMessage::assistant("x".repeat(BYTES));
    let agent: Agent = Box::new(move |messages| {
        let answer = answer.clone();
        Box::pin(async move {
            messages.push(answer);
            StopReason::Completed
        })
    });
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let mut messages = vec![ChatMessage::user("go")];
        block_on(async {
            for _ in 0..count {
                black_box(agent(&mut messages).await);
                messages.push(ChatMessage::user("once more"));
            }
        });
        messages
    });
}

#[divan::bench(args = COUNTS, consts = [100, 10_240])]
fn shared<const BYTES: usize>(bencher: Bencher<'_, '_>, count: u32) {
    iterations(bencher, count, BYTES, ContextMode::Shared);
}

#[divan::bench(args = COUNTS, consts = [100, 10_240])]
fn fresh<const BYTES: usize>(bencher: Bencher<'_, '_>, count: u32) {
    iterations(bencher, count, BYTES, ContextMode::Fresh);
}

fn iterations(bencher: Bencher<'_, '_>, count: u32, bytes: usize, context: ContextMode) {
    let agent = looped(writer(bytes), count, context);
    bencher.counter(ItemsCount::new(count)).bench_local(|| run(&agent));
}

/// A chat agent with its full history, whose model answers at once.
#[divan::bench(args = COUNTS)]
fn chat_agent(bencher: Bencher<'_, '_>, count: u32) {
    let inner = ChatAgent::new("writer", Instant("x".repeat(100)), ChatAgentOptions::default());
    let agent = looped(inner, count, ContextMode::Shared);
    bencher.counter(ItemsCount::new(count)).bench_local(|| run(&agent));
}

fn run(agent: &impl agent_core::Agent) -> Session {
    let mut session = session();
    let cx = RunContext::new(Limits { model_calls: None, ..Limits::default() });
    let response = block_on(agent.complete(&mut session, &cx)).expect("a scripted loop does not fail");
    assert_eq!(response.stop, StopReason::IterationLimit);
    session
}

/// A model that answers at once.
struct Instant(String);

impl ChatClient for Instant {
    fn model(&self) -> &'static str {
        "instant"
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        black_box(request);
        let message = ChatMessage::assistant(self.0.clone());
        let response =
            ChatResponse { message, usage: Usage::default(), stop: StopReason::Completed, model: "instant".into() };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    }
}

const DELTAS: u32 = 10_000;

/// The deltas of one iteration from a boxed stream: what there is to compare with.
#[divan::bench]
fn deltas_bare(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(DELTAS)).bench_local(|| {
        let deltas: BoxStream<'_, Result<Update>> = stream::iter(0..DELTAS).map(|_| Ok(piece())).boxed();
        block_on(deltas.for_each(async |update| drop(black_box(update))));
    });
}

/// The same from an agent, forwarded by so many loops.
#[divan::bench(args = [0, 1, 2])]
fn deltas(bencher: Bencher<'_, '_>, loops: usize) {
    let inner = agent_fn("writer", |_, out| {
        Box::pin(async move {
            for _ in 0..DELTAS {
                out.delta(Delta::Text("token".to_owned())).await;
            }
            Ok(StopReason::Completed)
        })
    });
    let agent = (0..loops).fold(Box::new(inner) as Box<dyn agent_core::Agent>, |inner, at| {
        Box::new(agent_loop::LoopAgent::new(format!("loop {at}"), inner, agent_loop::LoopOptions::default()))
    });
    bencher.counter(ItemsCount::new(DELTAS)).bench_local(|| {
        let (mut session, cx) = (session(), RunContext::default());
        block_on(agent.run(&mut session, &cx).for_each(async |update| drop(black_box(update))));
    });
}

fn piece() -> Update {
    Update::Delta(Delta::Text("token".to_owned()))
}
