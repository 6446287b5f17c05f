//! Every store of this crate does what the trait promises.

use std::sync::atomic::{AtomicU32, Ordering};

use agent_core::{JsonlStore, MemoryStore, SessionStore, testing::store_conformance};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_store_conforms() {
    store_conformance(async || MemoryStore::new()).await;
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
