//! Wall time of a run of one event on a stored session, by the number of its messages, with each store. `cargo xtask
//! bench` prints it beside everything else; `cargo bench -p agent-providers --bench stores --features sqlite` prints it
//! alone.

use std::hint::black_box;

use agent_core::{ChatMessage, Draft, JsonlStore, MemoryStore, RunContext, Runner, SessionStore, StopReason, agent_fn};
use agent_providers::{SqliteStore, SqliteStoreOptions};
use divan::Bencher;
use futures::StreamExt;
use tempfile::TempDir;
use tokio::runtime::Builder;

fn main() {
    divan::main();
}

/// A store is a line here. Those in files read the whole session and synchronize each append with the disk.
const STORES: [(&str, Open); 3] = [
    ("memory", |_| Box::new(MemoryStore::new())),
    ("jsonl", |dir| Box::new(JsonlStore::open(dir.path()).expect("a store"))),
    ("sqlite", |dir| {
        Box::new(SqliteStore::open(dir.path().join("db"), SqliteStoreOptions::default()).expect("a store"))
    }),
];

type Open = fn(&TempDir) -> Box<dyn SessionStore>;

const SIZES: [usize; 3] = [10, 1000, 10_000];

#[divan::bench(args = STORES.iter().flat_map(|(name, _)| SIZES.map(|size| format!("{name}/{size}"))), sample_count = 20)]
fn run(bencher: Bencher<'_, '_>, case: &str) {
    let (name, size) = case.split_once('/').expect("a store and a size");
    let size: usize = size.parse().expect("a size");
    let (_, open) = STORES.iter().find(|(known, _)| *known == name).expect("a store");
    let agent = agent_fn("writer", move |session, out| {
        Box::pin(async move {
            let said = if session.messages().is_empty() { size } else { 1 };
            let said = (0..said).map(|at| ChatMessage::assistant(format!("message {at} {}", "x".repeat(90))));
            out.record(session, said.fold(Draft::default(), Draft::say)).await;
            Ok(StopReason::Completed)
        })
    });
    let dir = tempfile::tempdir().expect("a directory");
    let runner = Runner::new(agent, open(&dir));
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let run = || {
        runtime.block_on(runner.run("session", None, RunContext::default()).for_each(async |update| {
            black_box(update).expect("the store takes it");
        }));
    };
    run(); // what was said before
    bencher.bench_local(run);
}
