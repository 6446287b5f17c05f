//! What every store must do.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use agent_core::testing::store_conformance;

use crate::{
    places::{postgres, schema, sqlite},
    postgres::PostgresServer,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_store_conforms_with_many_snapshots_and_with_few() {
    let (dir, next) = (tempfile::tempdir().unwrap(), AtomicU32::new(0));
    for snapshot_every in [1, 100] {
        let fresh = || dir.path().join(next.fetch_add(1, Relaxed).to_string());
        store_conformance(async || sqlite(&fresh(), snapshot_every)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_store_conforms_with_many_snapshots_and_with_few() {
    let Some(server) = PostgresServer::start() else { return };
    for snapshot_every in [1, 100] {
        store_conformance(async || postgres(&schema(&server).await, snapshot_every).await).await;
    }
}
