//! What a session store costs, for each event that is appended and each session that is loaded, with snapshots and
//! without: `cargo bench -p agent-providers --features sqlite,postgres --bench store_costs`. PostgreSQL is a server of its
//! own, on this machine's disk.

#[path = "../tests/support/postgres.rs"]
mod postgres;

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{ChatMessage, Event, JsonlStore, Result, SessionStore};
use agent_providers::{PostgresStore, PostgresStoreOptions, SqliteStore, SqliteStoreOptions};
use postgres::PostgresServer;
use uuid::Uuid;

/// An answer of a few sentences: about 600 bytes as JSON.
fn event(author: &str) -> Event {
    let text = "The ferry leaves at half past nine, and dogs are welcome. ".repeat(6);
    Event {
        id: Uuid::now_v7(),
        run: Uuid::now_v7(),
        author: author.into(),
        path: Arc::from([]),
        rewind: None,
        messages: vec![ChatMessage::assistant(text).by(author)],
        state: vec![],
        usage: None,
        escalate: false,
    }
}

fn events(count: u64) -> Vec<Event> {
    (0..count).map(|_| event("agent")).collect()
}

fn median(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let micros = |at: usize| format!("{:.2} ms", times[at].as_secs_f64() * 1e3);
    format!("{} (p99 {})", micros(times.len() / 2), micros(times.len() * 99 / 100))
}

async fn time<T>(count: usize, mut work: impl AsyncFnMut(usize) -> Result<T>) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for at in 0..count {
        let begin = Instant::now();
        work(at).await?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

async fn appends(name: &str, store: &Arc<dyn SessionStore>) -> Result<()> {
    const COUNT: usize = 1000;
    let log = events(COUNT as u64);
    let alone = time(COUNT, async |at| store.append("appended", at as u64, &log[at..=at]).await).await?;
    let mean = alone.iter().sum::<Duration>() / 1000;
    println!("{name}: append one event: {}, mean {:.2} ms", median(alone), mean.as_secs_f64() * 1e3);

    let begin = Instant::now();
    let sessions = (0..16).map(|session| {
        let (store, log) = (store.clone(), log.clone());
        tokio::spawn(async move {
            for (version, event) in log[..200].iter().enumerate() {
                store.append(&format!("beside-{session}"), version as u64, std::slice::from_ref(event)).await?;
            }
            Ok::<_, agent_core::Error>(())
        })
    });
    for session in sessions.collect::<Vec<_>>() {
        session.await.expect("an append does not panic")?;
    }
    println!("{name}: append to 16 sessions at once: {:.0} events/s", 3200.0 / begin.elapsed().as_secs_f64());
    Ok(())
}

async fn loads(name: &str, store: &Arc<dyn SessionStore>) -> Result<()> {
    // A session that keeps all messages is as long as its history; one in fresh context forgets every fifth time.
    for (count, fresh) in [(10_u64, false), (1000, false), (10_000, false), (10_000, true)] {
        let id = format!("loaded-{count}-{fresh}");
        let mut version = 0;
        // The last ones are as many as come after a snapshot on average.
        for batch in std::iter::repeat_n(100, usize::try_from(count / 100).unwrap_or_default()).chain([50.min(count)]) {
            let mut batch = events(batch);
            if fresh {
                batch.iter_mut().step_by(5).for_each(|event| event.rewind = Some(0));
            }
            version = store.append(&id, version, &batch).await?;
        }
        let loads = time(if count > 1000 { 20 } else { 200 }, async |_| store.load(&id).await).await?;
        let fresh = if fresh { " of fresh context" } else { "" };
        println!("{name}: load {version} events{fresh}: {}", median(loads));
        let tail = time(100, async |_| store.events(&id, version - 10).await).await?;
        println!("{name}: read the last 10 of {version} events: {}", median(tail));
    }
    Ok(())
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

#[tokio::main]
async fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory for what is measured");
    let server = PostgresServer::start();
    if let Some(server) = &server {
        write_to_the_disk(&server.url()).await.expect("the user may do anything");
    }
    let mut stores: Vec<(String, Arc<dyn SessionStore>)> = Vec::new();
    stores.push(("jsonl".to_owned(), Arc::new(JsonlStore::open(dir.path().join("jsonl"))?)));
    for every in [0, 100] {
        let snapshot_every = NonZeroU32::new(every);
        let name =
            |store: &str| format!("{store}, {}", if every == 0 { "no snapshots" } else { "a snapshot every 100" });
        let options = SqliteStoreOptions { snapshot_every, ..Default::default() };
        let file = dir.path().join(format!("{every}.db"));
        stores.push((name("sqlite"), Arc::new(SqliteStore::open(file, options)?)));
        if let Some(server) = &server {
            let options = PostgresStoreOptions { snapshot_every, ..Default::default() };
            let store = PostgresStore::connect(server.url(), options).await?;
            stores.push((name("postgres"), Arc::new(store)));
        }
    }
    for (name, store) in stores {
        for id in store.list().await? {
            store.delete(&id).await?;
        }
        appends(&name, &store).await?;
        loads(&name, &store).await?;
    }
    Ok(())
}
