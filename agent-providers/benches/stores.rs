//! Wall time of what a session store does, by the store and the number of messages that the session has. `cargo xtask
//! bench stores` prints it beside everything else; `cargo bench -p agent-providers --features postgres,sqlite --bench
//! stores` prints it alone. PostgreSQL is a server of its own on this machine's disk, where it is installed.

#[path = "../tests/support/postgres.rs"]
mod postgres;

use std::{
    hint::black_box,
    num::NonZeroU32,
    slice,
    sync::{Arc, OnceLock},
};

use agent_core::{
    ChatMessage, Draft, Event, JsonlStore, MemoryStore, Result, RunContext, Runner, SessionStore, StopReason, agent_fn,
};
use agent_providers::{PostgresStore, PostgresStoreOptions, SqliteStore, SqliteStoreOptions};
use divan::{Bencher, counter::ItemsCount};
use futures::StreamExt;
use postgres::PostgresServer;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};
use uuid::Uuid;

/// Where PostgreSQL is, if it is installed.
static POSTGRES: OnceLock<String> = OnceLock::new();

fn main() {
    let server = PostgresServer::start();
    if let Some(server) = &server {
        runtime().block_on(write_to_the_disk(&server.url())).expect("the user may do anything");
        POSTGRES.get_or_init(|| server.url());
    }
    divan::main();
}

/// Takes back what makes a server quick for tests.
async fn write_to_the_disk(url: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("ALTER SYSTEM SET fsync = on").await?;
    client.batch_execute("SELECT pg_reload_conf()").await?;
    while client.query_one("SHOW fsync", &[]).await?.get::<_, &str>(0) != "on" {}
    Ok(())
}

/// All but the first are on the disk when an append returns. Databases keep a snapshot every 100 events unless the name
/// says otherwise.
const STORES: [&str; 6] = ["memory", "jsonl", "sqlite", "sqlite_no_snapshots", "postgres", "postgres_no_snapshots"];

/// How many messages a session has before.
const SIZES: [usize; 3] = [10, 1000, 10_000];

/// A store and a session in it.
struct Place {
    runtime: Runtime,
    store: Arc<dyn SessionStore>,
    session: String,
    version: u64,
    _dir: TempDir,
}

impl Place {
    /// The place of this case, such as `sqlite/1000`, with the events that a session of this size has, an answer each.
    fn new(bench: &str, case: &str, event: impl Fn(usize) -> Event) -> Self {
        let (store, size) = case.split_once('/').expect("a store and a size");
        let size: usize = size.parse().expect("a size");
        let (runtime, dir) = (runtime(), tempfile::tempdir().expect("a directory"));
        let store = runtime.block_on(open(store, &dir)).expect("a store");
        let session = format!("{bench}/{case}");
        // As many events are behind a snapshot as there are in the mean.
        let events: Vec<Event> = (0..size + size.min(50)).map(event).collect();
        let (before, after) = events.split_at(size);
        let version = runtime.block_on(async {
            let version = store.append(&session, 0, before).await?;
            store.append(&session, version, after).await
        });
        Self { runtime, store, session, version: version.expect("the store takes them"), _dir: dir }
    }

    fn append(&mut self, event: &Event) {
        let appended = self.store.append(&self.session, self.version, slice::from_ref(event));
        self.version = self.runtime.block_on(appended).expect("the store takes it");
    }

    fn load(&self) {
        black_box(self.runtime.block_on(self.store.load(&self.session)).expect("it is there"));
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

async fn open(name: &str, dir: &TempDir) -> Result<Arc<dyn SessionStore>> {
    let (name, snapshot_every) = match name.strip_suffix("_no_snapshots") {
        Some(name) => (name, None),
        None => (name, NonZeroU32::new(100)),
    };
    Ok(match name {
        "memory" => Arc::new(MemoryStore::new()),
        "jsonl" => Arc::new(JsonlStore::open(dir.path())?),
        "sqlite" => {
            let options = SqliteStoreOptions { snapshot_every, ..Default::default() };
            Arc::new(SqliteStore::open(dir.path().join("db"), options)?)
        }
        "postgres" => {
            let options = PostgresStoreOptions { snapshot_every, ..Default::default() };
            Arc::new(PostgresStore::connect(POSTGRES.get().expect("it runs").as_str(), options).await?)
        }
        name => unreachable!("{name} is no store"),
    })
}

/// The stores that there are here.
fn stores() -> impl Iterator<Item = &'static str> {
    STORES.into_iter().filter(|name| !name.starts_with("postgres") || POSTGRES.get().is_some())
}

fn cases() -> impl Iterator<Item = String> {
    stores().flat_map(|store| SIZES.map(|size| format!("{store}/{size}")))
}

/// An answer of a few sentences: about 600 bytes as JSON.
fn answer(_: usize) -> Event {
    let author: Arc<str> = "agent".into();
    Event {
        id: Uuid::now_v7(),
        run: Uuid::now_v7(),
        author: author.clone(),
        path: Arc::from([]),
        rewind: None,
        messages: vec![ChatMessage::assistant(TEXT.repeat(6)).by(author)],
        state: vec![],
        usage: None,
        escalate: false,
    }
}

const TEXT: &str = "The ferry leaves at half past nine, and dogs are welcome. ";

/// One event. Of 200 of them, two are ones behind which a database keeps a snapshot.
#[divan::bench(args = cases(), sample_count = 200, sample_size = 1)]
fn append(bencher: Bencher<'_, '_>, case: &str) {
    let mut place = Place::new("append", case, answer);
    bencher.with_inputs(|| answer(0)).bench_local_refs(|event| place.append(event));
}

/// 16 sessions at once, 50 events each.
#[divan::bench(args = stores(), sample_count = 10, sample_size = 1)]
fn append_beside(bencher: Bencher<'_, '_>, store: &str) {
    const SESSIONS: usize = 16;
    const EVENTS: usize = 50;
    let place = Place::new("append_beside", &format!("{store}/0"), answer);
    let log: Arc<[Event]> = (0..EVENTS).map(answer).collect();
    bencher.counter(ItemsCount::new(SESSIONS * EVENTS)).bench_local(|| {
        let mut sessions = JoinSet::new();
        for _ in 0..SESSIONS {
            let (store, log, session) = (place.store.clone(), log.clone(), Uuid::now_v7().to_string());
            sessions.spawn_on(
                async move {
                    for (version, event) in (0..).zip(&*log) {
                        store.append(&session, version, slice::from_ref(event)).await.expect("the store takes it");
                    }
                },
                place.runtime.handle(),
            );
        }
        place.runtime.block_on(sessions.join_all());
    });
}

/// A session that keeps all its messages is as long as its history.
#[divan::bench(args = cases(), sample_count = 20)]
fn load(bencher: Bencher<'_, '_>, case: &str) {
    let place = Place::new("load", case, answer);
    bencher.bench_local(|| place.load());
}

/// A session in fresh context, which forgets its messages every fifth time.
#[divan::bench(args = cases(), sample_count = 20)]
fn load_fresh(bencher: Bencher<'_, '_>, case: &str) {
    let rewind = |at: usize| at.is_multiple_of(5).then_some(0);
    let place = Place::new("load_fresh", case, |at| Event { rewind: rewind(at), ..answer(at) });
    bencher.bench_local(|| place.load());
}

/// A run of one event: a load, the run, and an append.
#[divan::bench(args = cases(), sample_count = 20)]
fn run(bencher: Bencher<'_, '_>, case: &str) {
    let place = Place::new("run", case, answer);
    let agent = agent_fn("agent", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant(TEXT.repeat(6)))).await;
            Ok(StopReason::Completed)
        })
    });
    let runner = Runner::new(agent, place.store.clone());
    bencher.bench_local(|| {
        let run = runner.run(place.session.as_str(), None, RunContext::default());
        place.runtime.block_on(run.for_each(async |update| {
            black_box(update).expect("the store takes it");
        }));
    });
}
