//! A store that keeps a log.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::lock;
use crate::{Event, MemoryStore, Result, SessionStore, Stored};

/// A [`MemoryStore`] that keeps what was appended, of all sessions, in order.
#[derive(Debug, Clone, Default)]
pub struct RecordingStore {
    inner: MemoryStore,
    appended: Arc<Mutex<Vec<Event>>>,
}

impl RecordingStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was appended so far.
    pub fn appended(&self) -> Vec<Event> {
        lock(&self.appended).clone()
    }
}

#[async_trait]
impl SessionStore for RecordingStore {
    async fn load(&self, id: &str) -> Result<Stored> {
        self.inner.load(id).await
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        let version = self.inner.append(id, expected, events).await?;
        lock(&self.appended).extend_from_slice(events);
        Ok(version)
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        self.inner.events(id, from).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.inner.list().await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.inner.delete(id).await
    }
}
