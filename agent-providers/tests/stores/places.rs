//! Where tests keep sessions.

use std::{
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use agent_core::{ChatMessage, Event, JsonlStore, Session, SessionStore, Stored};
use agent_providers::{PostgresStore, PostgresStoreOptions, SqliteStore, SqliteStoreOptions};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use crate::postgres::PostgresServer;

/// A file, a directory or a database, by a name that other processes understand.
pub(crate) struct Place {
    pub(crate) name: String,
    _kept: Kept,
}

#[expect(dead_code, reason = "they go when they are dropped")]
enum Kept {
    Dir(TempDir),
    Server(PostgresServer),
}

impl Place {
    pub(crate) fn jsonl() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { name: format!("jsonl:{}", dir.path().display()), _kept: Kept::Dir(dir) }
    }

    pub(crate) fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { name: format!("sqlite:{}", dir.path().join("sessions.db").display()), _kept: Kept::Dir(dir) }
    }

    /// None where PostgreSQL is not installed.
    pub(crate) fn postgres() -> Option<Self> {
        let server = PostgresServer::start()?;
        Some(Self { name: server.url(), _kept: Kept::Server(server) })
    }
}

/// The store in the place of this name.
pub(crate) async fn open(place: &str) -> Arc<dyn SessionStore> {
    match place.split_once(':').unwrap() {
        ("jsonl", dir) => Arc::new(JsonlStore::open(dir).unwrap()),
        ("sqlite", file) => Arc::new(sqlite(Path::new(file), 100)),
        _ => Arc::new(postgres(place, 100).await),
    }
}

pub(crate) fn sqlite(file: &Path, snapshot_every: u32) -> SqliteStore {
    let options = SqliteStoreOptions { snapshot_every: NonZeroU32::new(snapshot_every), ..Default::default() };
    SqliteStore::open(file, options).unwrap()
}

pub(crate) async fn postgres(url: &str, snapshot_every: u32) -> PostgresStore {
    let options = PostgresStoreOptions { snapshot_every: NonZeroU32::new(snapshot_every), ..Default::default() };
    PostgresStore::connect(url, options).await.unwrap()
}

/// A connection for the test itself.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A new, empty schema, as a URL.
pub(crate) async fn schema(server: &PostgresServer) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NEXT.fetch_add(1, Relaxed));
    client(&server.url()).await.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    format!("{}&options=-csearch_path%3D{name}", server.url())
}

pub(crate) fn said(text: impl Into<String>) -> Event {
    Event {
        id: Uuid::now_v7(),
        run: Uuid::nil(),
        author: Event::CALLER.into(),
        path: Arc::from([]),
        rewind: None,
        messages: vec![ChatMessage::user(text)],
        state: vec![],
        usage: None,
        escalate: false,
    }
}

pub(crate) fn fold(events: &[Event]) -> Stored {
    let mut session = Session::new();
    for event in events {
        session.apply(event);
    }
    Stored { session, version: events.len() as u64 }
}
