//! Where sessions are kept: an append-only log of events for each.

mod jsonl;
mod memory;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Event, Result, Session};

pub use jsonl::JsonlStore;
pub use memory::MemoryStore;

/// A session as it is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stored {
    /// The fold of its events.
    pub session: Session,
    /// How many events are stored.
    pub version: u64,
}

/// A place for sessions. What it stores are events; a session is their fold.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// The session of this id; an unknown id is an empty session of version 0.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn load(&self, id: &str) -> Result<Stored>;

    /// Appends events, all or none, and returns the new version.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) if the stored version is not `expected`; [`Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64>;

    /// The stored events, oldest first, without the first `from`.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if they cannot be read.
    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>>;

    /// All ids, in byte order.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if they cannot be read.
    async fn list(&self) -> Result<Vec<String>>;

    /// Forgets a session; an unknown id is no error.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if it cannot be removed.
    async fn delete(&self, id: &str) -> Result<()>;

    /// At most `limit` ids that begin with `prefix` and come after `after`, in byte order. As it stands it reads the
    /// whole [`list`](Self::list); stores that can, do better.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if they cannot be read.
    async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let mut ids = self.list().await?;
        ids.retain(|id| id.starts_with(prefix) && after.is_none_or(|after| id.as_str() > after));
        ids.sort_unstable();
        ids.truncate(limit);
        Ok(ids)
    }
}

macro_rules! forward_store {
    ($pointer:ty) => {
        #[async_trait]
        impl<S: SessionStore + ?Sized> SessionStore for $pointer {
            async fn load(&self, id: &str) -> Result<Stored> {
                (**self).load(id).await
            }

            async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
                (**self).append(id, expected, events).await
            }

            async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
                (**self).events(id, from).await
            }

            async fn list(&self) -> Result<Vec<String>> {
                (**self).list().await
            }

            async fn delete(&self, id: &str) -> Result<()> {
                (**self).delete(id).await
            }

            async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
                (**self).list_page(prefix, after, limit).await
            }
        }
    };
}

forward_store!(Box<S>);
forward_store!(Arc<S>);
