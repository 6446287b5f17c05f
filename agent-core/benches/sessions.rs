//! Wall time of sessions, by the number of messages. `cargo xtask bench` prints it beside everything else;
//! `cargo bench -p agent-core --bench sessions` prints it alone.

use agent_core::{AgentExt, ChatMessage, Content, Draft, RunContext, Session, StopReason, agent_fn};
use divan::{Bencher, counter::BytesCount};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [10, 1000, 10_000];

fn text(at: usize) -> String {
    format!("message {at} {}", "x".repeat(90))
}

fn session(size: usize) -> Session {
    let mut session = Session::new();
    for at in 0..size {
        session.push(if at % 2 == 0 {
            ChatMessage::user(text(at))
        } else {
            ChatMessage::assistant(text(at)).by("writer")
        });
    }
    session
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A clone, which is a snapshot.
#[divan::bench(args = SIZES)]
fn snapshot(bencher: Bencher<'_, '_>, size: usize) {
    let session = session(size);
    bencher.bench_local(|| session.clone());
}

/// One event that says a message, in a session that nobody shares.
#[divan::bench(args = SIZES)]
fn append(bencher: Bencher<'_, '_>, size: usize) {
    let agent = agent_fn("writer", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant("done"))).await;
            Ok(StopReason::Completed)
        })
    });
    let (runtime, cx) = (runtime(), RunContext::default());
    let mut session = session(size);
    bencher.bench_local(|| runtime.block_on(agent.complete(&mut session, &cx)));
}

/// The first message of a clone: the history is copied once.
#[divan::bench(args = SIZES)]
fn fork(bencher: Bencher<'_, '_>, size: usize) {
    let session = session(size);
    bencher.bench_local(|| {
        let mut fork = session.clone();
        fork.push("on");
        fork
    });
}

/// A rewind to the first message where another holds the history: what a fresh context costs without freeing it.
#[divan::bench(args = SIZES)]
fn rewind(bencher: Bencher<'_, '_>, size: usize) {
    let agent = agent_fn("fresh", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::default().rewind(1)).await;
            Ok(StopReason::Completed)
        })
    });
    let (runtime, cx, session) = (runtime(), RunContext::default(), session(size));
    bencher.with_inputs(|| session.clone()).bench_local_refs(|session| runtime.block_on(agent.complete(session, &cx)));
}

/// What a session is made of, as structs that one would write by hand: what there is to compare with.
#[derive(Serialize, Deserialize)]
struct Plain {
    messages: Vec<PlainMessage>,
}

#[derive(Serialize, Deserialize)]
struct PlainMessage {
    role: String,
    author: Option<String>,
    contents: Vec<PlainContent>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlainContent {
    Text(String),
}

fn plain(session: &Session) -> Plain {
    let content = |content: &Content| match content {
        Content::Text(text) => PlainContent::Text(text.clone()),
        other => panic!("only texts here: {other:?}"),
    };
    let message = |message: &ChatMessage| PlainMessage {
        role: format!("{:?}", message.role).to_lowercase(),
        author: message.author.as_deref().map(str::to_owned),
        contents: message.contents.iter().map(content).collect(),
    };
    Plain { messages: session.messages().iter().map(message).collect() }
}

#[divan::bench(args = SIZES)]
fn write_plain(bencher: Bencher<'_, '_>, size: usize) {
    write(bencher, &plain(&session(size)));
}

#[divan::bench(args = SIZES)]
fn write_session(bencher: Bencher<'_, '_>, size: usize) {
    write(bencher, &session(size));
}

#[divan::bench(args = SIZES)]
fn read_plain(bencher: Bencher<'_, '_>, size: usize) {
    read::<Plain>(bencher, &json(&plain(&session(size))));
}

#[divan::bench(args = SIZES)]
fn read_session(bencher: Bencher<'_, '_>, size: usize) {
    read::<Session>(bencher, &json(&session(size)));
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

fn write(bencher: Bencher<'_, '_>, value: &impl Serialize) {
    bencher.counter(BytesCount::of_str(&json(value))).bench_local(|| json(value));
}

fn read<T: serde::de::DeserializeOwned>(bencher: Bencher<'_, '_>, json: &str) {
    bencher.counter(BytesCount::of_str(json)).bench_local(|| serde_json::from_str::<T>(json).expect("it is JSON"));
}
