//! Snapshots save time, and change nothing.

use std::path::Path;

use agent_core::{ChatMessage, Event, SessionStore, StateChange};
use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    places::{client, fold, postgres, said, schema, sqlite},
    postgres::PostgresServer,
};

fn any_event() -> impl Strategy<Value = Event> {
    let key = prop_oneof![Just("a"), Just("b\u{0}")];
    let change = (key, 0..3, any::<f64>()).prop_map(|(key, kind, number)| match kind {
        0 => StateChange::Set { key: key.into(), value: json!({ "n": number }) },
        1 => StateChange::Append { key: key.into(), value: json!([number, u64::MAX]) },
        _ => StateChange::Remove { key: key.into() },
    });
    let changes = proptest::collection::vec(change, 0..3);
    let message = prop_oneof![".{0,8}".prop_map(ChatMessage::user), ".{0,8}".prop_map(ChatMessage::assistant)];
    let messages = proptest::collection::vec(message, 0..3);
    let author = prop_oneof![Just(Event::CALLER), Just("agent")];
    (author, proptest::option::of(0..6_usize), messages, changes).prop_map(|(author, rewind, messages, state)| Event {
        author: author.into(),
        rewind,
        messages,
        state,
        ..said("")
    })
}

fn any_batches() -> impl Strategy<Value = Vec<Vec<Event>>> {
    proptest::collection::vec(proptest::collection::vec(any_event(), 0..5), 0..12)
}

/// A snapshot and the events behind it are the fold of all events, wherever the snapshots are.
async fn check(store: &impl SessionStore, id: &str, batches: Vec<Vec<Event>>) {
    let mut log = Vec::new();
    for batch in batches {
        store.append(id, log.len() as u64, &batch).await.unwrap();
        log.extend(batch);
        assert_eq!(store.load(id).await.unwrap(), fold(&log));
    }
    assert_eq!(store.events(id, 0).await.unwrap(), log);
}

#[test]
fn a_sqlite_snapshot_and_what_follows_are_the_fold_of_all_events() {
    let (dir, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    let file = dir.path().join("sessions.db");
    proptest!(ProptestConfig::with_cases(24), |(every in 1..6_u32, batches in any_batches())| {
        runtime.block_on(check(&sqlite(&file, every), &said("").id.to_string(), batches));
    });
}

#[test]
fn a_postgres_snapshot_and_what_follows_are_the_fold_of_all_events() {
    let Some(server) = PostgresServer::start() else { return };
    let runtime = Runtime::new().unwrap();
    proptest!(ProptestConfig::with_cases(12), |(every in 1..6_u32, batches in any_batches())| {
        runtime.block_on(async {
            check(&postgres(&server.url(), every).await, &said("").id.to_string(), batches).await;
        });
    });
}

/// What a test does to the tables; the statements have the same words in both databases, but for the tables' names.
trait Tables {
    async fn execute(&self, statement: &str);
    /// The snapshot's version and format.
    async fn snapshot(&self) -> Option<(i64, i32)>;
}

struct Sqlite<'a>(&'a Path);

impl Tables for Sqlite<'_> {
    async fn execute(&self, statement: &str) {
        // The columns take bytes alone.
        let bytes = |text: String, json: &str| text.replace(json, &format!("CAST({json} AS BLOB)"));
        let statement = ["'no JSON'", "'{}'"].into_iter().fold(statement.to_owned(), bytes);
        rusqlite::Connection::open(self.0).unwrap().execute_batch(&statement).unwrap();
    }

    async fn snapshot(&self) -> Option<(i64, i32)> {
        let connection = rusqlite::Connection::open(self.0).unwrap();
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        connection.query_row("SELECT version, format FROM snapshots", [], read).ok()
    }
}

struct Postgres(String);

impl Tables for Postgres {
    async fn execute(&self, statement: &str) {
        let statement = ["sessions", "events", "snapshots"]
            .iter()
            .fold(statement.to_owned(), |text, name| text.replace(name, &format!("agent_{name}")));
        client(&self.0).await.batch_execute(&statement.replace("agent_session_json", "session_json")).await.unwrap();
    }

    async fn snapshot(&self) -> Option<(i64, i32)> {
        let row = client(&self.0).await.query_opt("SELECT version, format FROM agent_snapshots", &[]).await.unwrap();
        row.map(|row| (row.get(0), row.get(1)))
    }
}

async fn keep_to_the_rules(store: &impl SessionStore, tables: &impl Tables) {
    let log: Vec<_> = (0..35).map(|n| said(format!("text {n}"))).collect();
    for (version, event) in log[..25].iter().enumerate() {
        store.append("a", version as u64, std::slice::from_ref(event)).await.unwrap();
    }
    assert_eq!(tables.snapshot().await, Some((20, 1)), "after each tenth event");

    for spoil in [
        "UPDATE snapshots SET session_json = 'no JSON'",
        "UPDATE snapshots SET session_json = '{}', format = 99",
        "UPDATE snapshots SET session_json = '{}', version = 99",
        "DELETE FROM snapshots",
    ] {
        tables.execute(spoil).await;
        assert_eq!(store.load("a").await.unwrap(), fold(&log[..25]), "after {spoil}");
        assert_eq!(tables.snapshot().await, Some((25, 1)), "made again by the load, after {spoil}");
        assert_eq!(store.load("a").await.unwrap(), fold(&log[..25]), "after {spoil}");
    }

    // What is before a snapshot is not read by a load.
    tables.execute("UPDATE events SET event = 'no JSON' WHERE number = 7").await;
    assert_eq!(store.load("a").await.unwrap(), fold(&log[..25]));
    store.append("a", 25, &log[25..]).await.unwrap();
    assert_eq!(tables.snapshot().await, Some((35, 1)), "after an append that passes a tenth event");
    assert_eq!(store.load("a").await.unwrap(), fold(&log));
    let error = store.events("a", 0).await.unwrap_err();
    let told = "read session `a`: its event 7 is not readable; restore it from a backup, or delete the session";
    assert_eq!(error.to_string(), told);
    assert_eq!(store.events("a", 7).await.unwrap(), log[7..]);

    store.delete("a").await.unwrap();
    assert_eq!(tables.snapshot().await, None, "a deleted session leaves nothing");
}

#[tokio::test]
async fn sqlite_snapshots_are_kept_ignored_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions.db");
    let store = sqlite(&file, 10);
    keep_to_the_rules(&store, &Sqlite(&file)).await;
}

#[tokio::test]
async fn postgres_snapshots_are_kept_ignored_and_made_again() {
    let Some(server) = PostgresServer::start() else { return };
    let url = schema(&server).await;
    keep_to_the_rules(&postgres(&url, 10).await, &Postgres(url)).await;
}
