//! Sessions in SQL databases: an append-only table of events, and snapshots that are derived from it.

#[cfg(feature = "postgres")]
mod postgres;
mod range;
mod record;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::{PostgresStore, PostgresStoreOptions};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteStore, SqliteStoreOptions};
