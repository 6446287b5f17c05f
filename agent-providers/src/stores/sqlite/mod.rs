//! Sessions in a file of SQLite.

mod connection;
mod log;

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    panic,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Event, Result, SessionStore, Stored};
use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use self::connection::Failure;
use super::{
    range::IdRange,
    record::{self, Fold},
};

/// Sessions in one file of SQLite: for one machine, where several processes may share the file.
///
/// An append is on the disk when it returns, and it is there as a whole or not at all; it costs its own size. A load
/// costs a snapshot, which is as large as the session, and the events since then, not the history. Clones are the same
/// store. Its own appends queue; those of other processes are waited for, up to
/// [`SqliteStoreOptions::busy_timeout`].
///
/// The file is in SQLite's WAL mode: readers and the writer do not wait for each other, and beside the file there are
/// `…-wal` and `…-shm` while it is in use. The machines that share a file must share their memory, so it must not be
/// on a network file system.
///
/// The tables: `sessions` (an id and its version), `events` (their JSON, in the order of their numbers, from 1) and
/// `snapshots`, which may be emptied at any time. A file with other tables, or of a newer version of these, is refused,
/// and nothing in it is changed.
///
/// Its futures must be polled inside a tokio runtime, whose blocking threads do the work. An append that is dropped
/// while it waits may still happen.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let dir = temporary.path();
/// use agent_core::SessionStore;
/// use agent_providers::{SqliteStore, SqliteStoreOptions};
///
/// let store = SqliteStore::open(dir.join("sessions.db"), SqliteStoreOptions::default())?;
/// let stored = store.load("chat/42").await?;
/// assert_eq!((stored.version, stored.session.messages().len()), (0, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

/// How a [`SqliteStore`] works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteStoreOptions {
    /// After how many events of a session a snapshot of it is kept; none if never. Fewer make loads quicker, and each
    /// writes the whole session. The default is 100.
    pub snapshot_every: Option<NonZeroU32>,
    /// How many sessions may be read at once; each needs a connection. The default is 4.
    pub connections: NonZeroUsize,
    /// How long to wait for other processes that write. The default is 30 seconds.
    pub busy_timeout: Duration,
}

impl Default for SqliteStoreOptions {
    fn default() -> Self {
        Self {
            snapshot_every: record::SNAPSHOT_EVERY,
            connections: const { NonZeroUsize::new(4).expect("4 is not 0") },
            busy_timeout: Duration::from_secs(30),
        }
    }
}

struct Shared {
    /// Absolute.
    path: PathBuf,
    options: SqliteStoreOptions,
    idle: Mutex<Vec<Connection>>,
    readers: Semaphore,
    /// SQLite lets one write at a time, and lets the others try again and again: here they queue.
    writer: Semaphore,
}

impl SqliteStore {
    /// The store in this file, which is created if it is absent; its directory must be there. A relative path is taken
    /// from the current directory as it is now. Blocks for a moment.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be opened or is another program's, [`ErrorKind::Unsupported`] if it is
    /// of a newer version.
    pub fn open(path: impl AsRef<Path>, options: SqliteStoreOptions) -> Result<Self> {
        let path = path.as_ref();
        let path = std::path::absolute(path).map_err(|error| {
            Error::new(ErrorKind::Store, format!("open session database `{}`", path.display())).with_source(error)
        })?;
        let first = connection::open(&path, options.busy_timeout)?;
        let shared = Shared {
            idle: Mutex::new(vec![first]),
            readers: Semaphore::new(options.connections.get()),
            writer: Semaphore::new(1),
            path,
            options,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    async fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.blocking(&self.shared.readers, action, work).await
    }

    async fn write<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.blocking(&self.shared.writer, action, work).await
    }

    /// Works with a connection where blocking is allowed. `action` is what the errors of SQLite say was attempted.
    async fn blocking<T: Send + 'static>(
        &self,
        queue: &Semaphore,
        action: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let _turn = queue.acquire().await.expect("it is never closed");
        let shared = self.shared.clone();
        let done = tokio::task::spawn_blocking(move || shared.with(action, work)).await;
        done.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            Err(error) => {
                let context = "use a session database while the runtime shuts down";
                Err(Error::new(ErrorKind::Store, context).with_source(error))
            }
        })
    }

    async fn keep_snapshot(&self, id: &str, fold: &Fold) {
        let (key, version) = (fold.key(), fold.version());
        let kept = match fold.snapshot() {
            Ok(snapshot) => {
                let work = move |connection: &mut Connection| log::keep_snapshot(connection, key, version, &snapshot);
                self.write("keep a snapshot in", work).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            record::warn_no_snapshot(id, &error);
        }
    }

    async fn fold(&self, id: &str) -> Result<Fold> {
        let id = id.to_owned();
        self.read("load a session from", move |connection| log::load(connection, &id)).await
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, action: &str, work: impl FnOnce(&mut Connection) -> Result<T, Failure>) -> Result<T> {
        let idle = self.idle().pop();
        let mut connection = idle.map_or_else(|| connection::open(&self.path, self.options.busy_timeout), Ok)?;
        let done = work(&mut connection);
        self.idle().push(connection);
        done.map_err(|failure| match failure {
            Failure::Told(error) => error,
            Failure::Sql(error) => connection::failed(action, &self.path, self.options.busy_timeout, error),
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { path, options, .. } = &*self.shared;
        f.debug_struct("SqliteStore").field("path", path).field("options", options).finish_non_exhaustive()
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn load(&self, id: &str) -> Result<Stored> {
        let fold = self.fold(id).await?;
        if fold.is_long(self.shared.options.snapshot_every) {
            self.keep_snapshot(id, &fold).await;
        }
        Ok(fold.end())
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        let (own, events) = (id.to_owned(), record::encode(events)?);
        let append = move |connection: &mut Connection| log::append(connection, &own, expected, &events);
        let version = self.write("append to a session in", append).await?;
        if record::is_snapshot_due(self.shared.options.snapshot_every, expected, version) {
            match self.fold(id).await {
                Ok(fold) => self.keep_snapshot(id, &fold).await,
                Err(error) => record::warn_no_snapshot(id, &error),
            }
        }
        Ok(version)
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        let id = id.to_owned();
        self.read("read a session in", move |connection| log::events(connection, &id, from)).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.list_page("", None, usize::MAX).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write("delete a session from", move |connection| log::delete(connection, &id)).await
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let range = IdRange::of(prefix, after);
        self.read("list the sessions in", move |connection| log::list_page(connection, &range, limit)).await
    }
}
