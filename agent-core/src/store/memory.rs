//! Sessions in memory.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{SessionStore, Stored};
use crate::{Error, Event, Result, Session};

/// Sessions in memory, for tests and for processes that may forget. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    logs: Arc<Mutex<BTreeMap<String, Log>>>,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    session: Session,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<String, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("sessions", &self.logs().len()).finish()
    }
}

fn version(log: &Log) -> u64 {
    log.events.len() as u64
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn load(&self, id: &str) -> Result<Stored> {
        let logs = self.logs();
        Ok(logs.get(id).map(|log| Stored { session: log.session.clone(), version: version(log) }).unwrap_or_default())
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        let mut logs = self.logs();
        let found = logs.get(id).map_or(0, version);
        if found != expected {
            return Err(Error::conflict(id, expected, found));
        }
        if events.is_empty() {
            return Ok(found); // nothing was said, so an unknown id stays unknown
        }
        let log = logs.entry(id.to_owned()).or_default();
        for event in events {
            log.session.apply(event);
            log.events.push(event.clone());
        }
        Ok(version(log))
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(self.logs().get(id).map_or_else(Vec::new, |log| log.events.iter().skip(from).cloned().collect()))
    }

    async fn list(&self) -> Result<Vec<String>> {
        Ok(self.logs().keys().cloned().collect())
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.logs().remove(id);
        Ok(())
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let logs = self.logs();
        let ids = logs.range::<str, _>((from, Bound::Unbounded)).map(|(id, _)| id);
        Ok(ids.take_while(|id| id.starts_with(prefix)).take(limit).cloned().collect())
    }
}
