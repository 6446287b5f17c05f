//! What an event costs in each store, for the guide's page on scaling:
//! `cargo test -p agent-providers --features postgres,sqlite --test stores -- --ignored --nocapture cost::`.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use agent_core::{ChatMessage, Event, JsonlStore, MemoryStore, SessionStore};
use agent_providers::{PostgresStore, PostgresStoreOptions, SqliteStore, SqliteStoreOptions};
use uuid::Uuid;

use crate::postgres::PostgresServer;

const SESSIONS: usize = 20;
const EVENTS: usize = 50;

/// A message of 500 characters, as JSON about 0.8 KB.
fn event() -> Event {
    let message = ChatMessage::assistant("x".repeat(500)).by("writer");
    let event =
        serde_json::json!({ "id": Uuid::now_v7(), "run": Uuid::nil(), "author": "writer", "messages": [message] });
    serde_json::from_value(event).unwrap()
}

/// Appends events one by one to several sessions: the fastest and the median append.
async fn append(store: &dyn SessionStore) -> (Duration, Duration) {
    let mut times = Vec::new();
    for session in 0..SESSIONS {
        for version in 0..EVENTS {
            let (id, event) = (format!("session-{session}"), event());
            let begin = Instant::now();
            store.append(&id, version as u64, &[event]).await.unwrap();
            times.push(begin.elapsed());
        }
    }
    times.sort();
    (times[0], times[times.len() / 2])
}

fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return path.metadata().map_or(0, |file| file.len()) };
    entries.map(|entry| size(&entry.unwrap().path())).sum()
}

fn show(store: &str, (fastest, median): (Duration, Duration), bytes: u64) {
    let events = (SESSIONS * EVENTS) as u64;
    println!("{store}: fastest {fastest:?}, median {median:?}, {} bytes an event", bytes / events);
}

#[tokio::test]
#[ignore = "it measures, and asserts nothing"]
async fn what_an_event_costs() {
    println!("an event is {} bytes of JSON", serde_json::to_vec(&event()).unwrap().len());
    let dir = tempfile::tempdir().unwrap();
    show("memory", append(&MemoryStore::new()).await, 0);
    let path = dir.path().join("jsonl");
    show("jsonl", append(&JsonlStore::open(&path).unwrap()).await, size(&path));
    let path = dir.path().join("sqlite");
    fs::create_dir(&path).unwrap();
    let times = append(&SqliteStore::open(path.join("db"), SqliteStoreOptions::default()).unwrap()).await;
    show("sqlite", times, size(&path));
    let Some(server) = PostgresServer::start() else { return };
    synchronize(&server).await;
    let store = PostgresStore::connect(server.url(), PostgresStoreOptions::default()).await.unwrap();
    let before = database_size(&server).await;
    let times = append(&store).await;
    show("postgres", times, database_size(&server).await - before);
}

async fn client(server: &PostgresServer) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The tests' servers do not wait for the disk; this one does.
async fn synchronize(server: &PostgresServer) {
    let client = client(server).await;
    client.execute("ALTER SYSTEM SET fsync = on", &[]).await.unwrap();
    client.execute("SELECT pg_reload_conf()", &[]).await.unwrap();
    while client.query_one("SHOW fsync", &[]).await.unwrap().get::<_, String>(0) != "on" {
        tokio::task::yield_now().await;
    }
}

async fn database_size(server: &PostgresServer) -> u64 {
    let row = client(server).await.query_one("SELECT pg_database_size(current_database())", &[]).await.unwrap();
    row.get::<_, i64>(0).try_into().unwrap()
}
