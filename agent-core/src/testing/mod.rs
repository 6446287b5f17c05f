//! What users script their own tests with (feature `testing`). Clones of everything here share what they hold.

mod agent;
mod client;
mod conformance;
mod laws;
mod pairing;
mod store;

pub use agent::ScriptedAgent;
pub use client::ScriptedClient;
pub use conformance::store_conformance;
pub use laws::assert_laws;
pub use pairing::PairingClient;
pub use store::RecordingStore;

use std::sync::{Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
