//! Connections to the file, and what goes wrong with them.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use agent_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::stores::record::sql;

/// The steps from an empty file to the newest form; `user_version` counts those that were taken.
const MIGRATIONS: &[&str] = &[include_str!("1.sql")];

/// Tells the file from those of other programs: "agen".
const APPLICATION: i64 = 0x6167_656e;

/// Why work on a connection failed.
pub(super) enum Failure {
    /// What the caller is told.
    Told(Error),
    /// SQLite's own error: what was attempted is still to be said.
    Sql(rusqlite::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// The longest that SQLite waits: it counts milliseconds in 32 bits.
const LONGEST_WAIT: Duration = Duration::from_millis(i32::MAX.cast_unsigned() as u64);

/// Opens the file, and brings it to the newest form.
pub(super) fn open(path: &Path, busy_timeout: Duration) -> Result<Connection> {
    let busy_timeout = busy_timeout.min(LONGEST_WAIT);
    let deadline = Instant::now() + busy_timeout;
    loop {
        match try_open(path, busy_timeout) {
            Ok(connection) => return Ok(connection),
            // A file that becomes one of WAL mode, or is closed by its last user, is busy without being waited for.
            Err(Failure::Sql(error)) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(Failure::Sql(error)) => return Err(failed("open", path, busy_timeout, error)),
            Err(Failure::Told(error)) => return Err(error),
        }
    }
}

fn try_open(path: &Path, busy_timeout: Duration) -> Result<Connection, Failure> {
    // Without `SQLITE_OPEN_URI`, so that a path is a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    if !is_current(&connection, path)? {
        let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        if mode != "wal" {
            return Err(refused(path, "its file system has no shared memory, which WAL mode needs; use another").into());
        }
        migrate(&mut connection, path)?;
    }
    // An append is on the disk when it returns.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Whether the file is of the newest form; an error if it is nobody's to change.
fn is_current(connection: &Connection, path: &Path) -> Result<bool, Failure> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && (application, version, tables) != (0, 0, 0) {
        return Err(refused(path, "it is another program's; choose another file").into());
    }
    let newest = sql(MIGRATIONS.len() as u64);
    if version > newest {
        let path = path.display();
        let context = format!(
            "open session database `{path}`: it has version {version} of the tables, and this program knows {newest}; \
             nothing was changed: use a newer program"
        );
        return Err(Error::new(ErrorKind::Unsupported, context).into());
    }
    Ok(version == newest)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Now no other process is at it; one may have been before.
    if is_current(&transaction, path)? {
        return Ok(());
    }
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in &MIGRATIONS[usize::try_from(version).unwrap_or_default()..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", sql(MIGRATIONS.len() as u64))?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    Ok(transaction.commit()?)
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Store, format!("open session database `{}`: {why}", path.display()))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

pub(super) fn failed(action: &str, path: &Path, busy_timeout: Duration, error: rusqlite::Error) -> Error {
    let context = format!("{action} session database `{}`", path.display());
    if !is_busy(&error) {
        return Error::new(ErrorKind::Store, context).with_source(error);
    }
    let context = format!(
        "{context}: others kept it locked for {} ms; try again, raise `busy_timeout`, or write from fewer processes",
        busy_timeout.as_millis()
    );
    Error::new(ErrorKind::Store, context).with_source(error).transient()
}
