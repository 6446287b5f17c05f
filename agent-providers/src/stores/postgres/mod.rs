//! Sessions in PostgreSQL.

mod database;
mod log;
mod schema;

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use agent_core::{Event, Result, SessionStore, Stored};
use async_trait::async_trait;

use self::database::Database;
use super::{
    range::IdRange,
    record::{self, Fold},
};
use crate::Secret;

/// Sessions in a database of PostgreSQL, 13 or newer: for any number of processes on any number of machines.
///
/// An append is one statement: it is there as a whole or not at all, and of several at one version exactly one
/// succeeds. A load costs a snapshot, which is as large as the session, and the events since then, not the history.
/// Clones share a pool of connections.
///
/// # The tables
///
/// [`connect`](Self::connect) creates them, and brings older ones to the newest form; several processes may do so at
/// once. They are in the schema that the connection finds first: `…?options=-csearch_path%3Dagents` puts them
/// elsewhere than `public`. Where they are there, the role only has to read and write them.
///
/// - `agent_sessions`: an id and its version. The id is of type `bytea`, so that any text will do and the order is that
///   of its bytes; `WHERE id = 'chat/42'` works, `encode(id, 'escape')` shows it.
/// - `agent_events`: their JSON, in the order of their numbers, from 1. It is kept as bytes because `jsonb` refuses the
///   character NUL; `convert_from(event, 'UTF8')` shows it, with `::jsonb` behind it unless it has one.
/// - `agent_snapshots`: derived from the events; it may be emptied at any time.
///
/// # The connection
///
/// A connection that breaks in the middle of an append leaves open whether it happened. The error is
/// [transient](agent_core::Error::is_transient): load, and see. Trying the same append again is safe: it is a
/// [`Conflict`](agent_core::ErrorKind::Conflict) if it had happened. An append that is dropped while it
/// waits may still happen.
///
/// TLS is used if the server offers it, and then its certificate must be one that the system trusts, for that host;
/// `?sslmode=require` insists on TLS, `?sslmode=disable` goes without. Behind PgBouncer, statements must be prepared: its
/// `max_prepared_statements` must not be 0.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent_core::SessionStore;
/// use agent_providers::{PostgresStore, PostgresStoreOptions};
///
/// let store = PostgresStore::connect(std::env::var("DATABASE_URL")?, PostgresStoreOptions::default()).await?;
/// let stored = store.load("chat/42").await?;
/// println!("{} events", stored.version);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    database: Database,
    options: PostgresStoreOptions,
}

/// How a [`PostgresStore`] works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresStoreOptions {
    /// After how many events of a session a snapshot of it is kept; none if never. Fewer make loads quicker, and each
    /// writes the whole session. The default is 100.
    pub snapshot_every: Option<NonZeroU32>,
    /// How many connections there may be. One is needed while something is read or written, none while a model is
    /// waited for. The default is 8.
    pub connections: NonZeroUsize,
    /// How long to wait for a connection of the pool, and for the server to accept a new one, unless the URL has a
    /// `connect_timeout`. The default is 30 seconds.
    pub wait: Duration,
}

impl Default for PostgresStoreOptions {
    fn default() -> Self {
        Self {
            snapshot_every: record::SNAPSHOT_EVERY,
            connections: const { NonZeroUsize::new(8).expect("8 is not 0") },
            wait: Duration::from_secs(30),
        }
    }
}

impl PostgresStore {
    /// The store in this database, such as `postgres://user:password@host/database`. Creates its tables if there are none.
    ///
    /// # Errors
    /// [`Invalid`](agent_core::ErrorKind::Invalid) if the URL is none, [`Store`](agent_core::ErrorKind::Store) if the
    /// database cannot be used, [`Unsupported`](agent_core::ErrorKind::Unsupported) if its tables are of a newer version.
    pub async fn connect(url: impl Into<Secret>, options: PostgresStoreOptions) -> Result<Self> {
        let database = Database::new(&url.into(), options.connections, options.wait)?;
        schema::migrate(&mut *database.connection().await?, &database).await?;
        Ok(Self { database, options })
    }

    async fn keep_snapshot(&self, id: &str, fold: &Fold) {
        if let Err(error) = log::keep_snapshot(&self.database, fold).await {
            record::warn_no_snapshot(id, &error);
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, options } = self;
        f.debug_struct("PostgresStore").field("database", &database.to_string()).field("options", options).finish()
    }
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn load(&self, id: &str) -> Result<Stored> {
        let fold = log::load(&self.database, id).await?;
        if fold.is_long(self.options.snapshot_every) {
            self.keep_snapshot(id, &fold).await;
        }
        Ok(fold.end())
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        let version = log::append(&self.database, id, expected, &record::encode(events)?).await?;
        if record::is_snapshot_due(self.options.snapshot_every, expected, version) {
            match log::load(&self.database, id).await {
                Ok(fold) => self.keep_snapshot(id, &fold).await,
                Err(error) => record::warn_no_snapshot(id, &error),
            }
        }
        Ok(version)
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        log::events(&self.database, id, from).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.list_page("", None, usize::MAX).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        log::delete(&self.database, id).await
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        log::list_page(&self.database, &IdRange::of(prefix, after), limit).await
    }
}
