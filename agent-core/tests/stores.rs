//! Every store of this crate does what the trait promises.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU32, Ordering},
};

use agent_core::{
    Event, JsonlStore, MemoryStore, Result, SessionStore, Stored,
    testing::{RecordingStore, store_conformance},
};
use async_trait::async_trait;
use futures::FutureExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_store_conforms() {
    store_conformance(async || MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recording_store_conforms() {
    store_conformance(async || RecordingStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn jsonl_store_conforms() {
    let (dir, next) = (tempfile::tempdir().unwrap(), AtomicU32::new(0));
    let fresh = || dir.path().join(next.fetch_add(1, Ordering::Relaxed).to_string());
    store_conformance(async || JsonlStore::open(fresh()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pointer_to_a_store_conforms() {
    let boxed = || -> Box<dyn SessionStore> { Box::new(MemoryStore::new()) };
    store_conformance(async || boxed()).await;
}

/// A store that breaks one rule.
struct Broken {
    fault: Fault,
    inner: MemoryStore,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    ChecksNoVersion,
    ChecksTheVersionTooEarly,
    StoresOneByOne,
    FoldsCase,
    SkipsNothing,
    ListsInAnyOrder,
    PagesFromTheLastId,
    KeepsTheDeleted,
    LosesUsage,
    CutsLongHistories,
}

#[async_trait]
impl SessionStore for Broken {
    async fn load(&self, id: &str) -> Result<Stored> {
        self.inner.load(&self.id(id)).await
    }

    async fn append(&self, id: &str, mut expected: u64, events: &[Event]) -> Result<u64> {
        let id = &*self.id(id);
        let mut events = events.to_vec();
        let version = self.inner.load(id).await?.version;
        match self.fault {
            Fault::ChecksNoVersion => expected = version,
            Fault::ChecksTheVersionTooEarly if version == expected => {
                tokio::task::yield_now().await;
                expected = self.inner.load(id).await?.version;
            }
            Fault::StoresOneByOne => {
                for event in events {
                    expected = self.inner.append(id, version, &[event]).await?;
                }
                return Ok(expected);
            }
            Fault::LosesUsage => events.iter_mut().for_each(|event| event.usage = None),
            Fault::ChecksTheVersionTooEarly
            | Fault::FoldsCase
            | Fault::SkipsNothing
            | Fault::ListsInAnyOrder
            | Fault::PagesFromTheLastId
            | Fault::KeepsTheDeleted
            | Fault::CutsLongHistories => (),
        }
        self.inner.append(id, expected, &events).await
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        let mut events =
            self.inner.events(&self.id(id), if self.fault == Fault::SkipsNothing { 0 } else { from }).await?;
        if self.fault == Fault::CutsLongHistories {
            events.truncate(1000);
        }
        Ok(events)
    }

    async fn list(&self) -> Result<Vec<String>> {
        let mut ids = self.inner.list().await?;
        if self.fault == Fault::ListsInAnyOrder {
            ids.reverse();
        }
        Ok(ids)
    }

    async fn delete(&self, id: &str) -> Result<()> {
        if self.fault == Fault::KeepsTheDeleted { Ok(()) } else { self.inner.delete(&self.id(id)).await }
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let mut ids = self.inner.list().await?;
        let inclusive = self.fault == Fault::PagesFromTheLastId;
        let follows = |id: &str, after: &str| id > after || inclusive && id == after;
        ids.retain(|id| id.starts_with(prefix) && after.is_none_or(|after| follows(id, after)));
        ids.truncate(limit);
        Ok(ids)
    }
}

impl Broken {
    fn id(&self, id: &str) -> String {
        if self.fault == Fault::FoldsCase { id.to_lowercase() } else { id.to_owned() }
    }
}

/// What the suite says of a store with this fault.
async fn complaint(fault: Fault) -> String {
    let suite = store_conformance(async || Broken { fault, inner: MemoryStore::new() });
    let Err(panic) = AssertUnwindSafe(suite).catch_unwind().await else { return "nothing".to_owned() };
    let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    message.unwrap_or("no text").lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_suite_names_the_rule_that_a_store_breaks() {
    let mut complaints = Vec::new();
    for fault in [
        Fault::ChecksNoVersion,
        Fault::ChecksTheVersionTooEarly,
        Fault::StoresOneByOne,
        Fault::FoldsCase,
        Fault::SkipsNothing,
        Fault::ListsInAnyOrder,
        Fault::PagesFromTheLastId,
        Fault::KeepsTheDeleted,
        Fault::LosesUsage,
        Fault::CutsLongHistories,
    ] {
        let complaint = complaint(fault).await.replace(|c: char| !c.is_ascii(), "?");
        complaints.push(format!("{fault:?}: {complaint:.160}"));
    }
    insta::assert_snapshot!(complaints.join("\n"), @r#"
    ChecksNoVersion: append to "unknown" at the wrong version 1 is a Conflict, not Ok(1)
    ChecksTheVersionTooEarly: of 8 concurrent appends at version 0 exactly one succeeds
    StoresOneByOne: append 3 events to "a" at version 1 succeeds, not append to session `a` at version 1: it is at 2; load it again
    FoldsCase: id "a" is a session of its own, so its first append succeeds, not append to session `a` at version 0: it is at 1; load it again
    SkipsNothing: events(id, 1) skips the first 1 of 5 events, batches or not; item 0 is another
    ListsInAnyOrder: list gives every id once, in byte order; item 0 is another
    PagesFromTheLastId: list_page("", Some(""), 1) is that part of the list; item 0 is another
    KeepsTheDeleted: delete removes one id and no other; item 0 is another
    LosesUsage: events gives what was appended, in order; item 6 is another
    CutsLongHistories: events gives what was appended, in order; item 1000 is another
    "#);
}
