//! The statements.

use agent_core::{Error, Event, Result};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{IdRange, connection::Failure};
use crate::stores::record::{self, Fold, SNAPSHOT_FORMAT, sql, unsigned};

/// A session's key and version.
fn find(connection: &Connection, id: &str) -> rusqlite::Result<Option<(i64, u64)>> {
    let mut statement = connection.prepare_cached("SELECT key, version FROM sessions WHERE id = ?1")?;
    statement.query_row([id], |row| Ok((row.get(0)?, unsigned(row.get(1)?)))).optional()
}

/// A snapshot, and the events behind it.
pub(super) fn load(connection: &mut Connection, id: &str) -> Result<Fold, Failure> {
    let reading = connection.transaction()?;
    let Some((key, version)) = find(&reading, id)? else { return Ok(Fold::default()) };
    let snapshot = {
        let mut statement = reading.prepare_cached(
            "SELECT version, session_json FROM snapshots WHERE session = ?1 AND format = ?2 AND version <= ?3",
        )?;
        let read = |row: &Row<'_>| Ok((unsigned(row.get(0)?), row.get(1)?));
        statement.query_row(params![key, SNAPSHOT_FORMAT, sql(version)], read).optional()?
    };
    let mut fold = Fold::begin(id, key, snapshot.as_ref().map(|(version, bytes): &(_, Vec<u8>)| (*version, &**bytes)));
    let from = fold.version();
    visit(&reading, key, from, |number, event| fold.apply(id, number, event))?;
    if fold.version() == version { Ok(fold) } else { Err(record::incomplete(id).into()) }
}

/// The events behind the first `from`.
pub(super) fn events(connection: &mut Connection, id: &str, from: u64) -> Result<Vec<Event>, Failure> {
    let reading = connection.transaction()?;
    let mut events = Vec::new();
    if let Some((key, _)) = find(&reading, id)? {
        visit(&reading, key, from, |number, event| record::push(&mut events, id, from, number, event))?;
    }
    Ok(events)
}

fn visit(
    connection: &Connection,
    session: i64,
    from: u64,
    mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<(), Failure> {
    let mut statement = connection
        .prepare_cached("SELECT number, event FROM events WHERE session = ?1 AND number > ?2 ORDER BY number")?;
    let mut rows = statement.query(params![session, sql(from)])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        visit(unsigned(row.get(0)?), bytes)?;
    }
    Ok(())
}

pub(super) fn append(connection: &mut Connection, id: &str, expected: u64, events: &[Vec<u8>]) -> Result<u64, Failure> {
    let writing = !events.is_empty();
    let behavior = if writing { TransactionBehavior::Immediate } else { TransactionBehavior::Deferred };
    let transaction = connection.transaction_with_behavior(behavior)?;
    let found = find(&transaction, id)?;
    let before = found.map_or(0, |(_, version)| version);
    if before != expected {
        return Err(Error::conflict(id, expected, before).into());
    }
    if writing {
        write(&transaction, id, found.map(|(key, _)| key), before, events)?;
        transaction.commit()?;
    }
    Ok(before + events.len() as u64)
}

fn write(
    transaction: &Transaction<'_>,
    id: &str,
    key: Option<i64>,
    before: u64,
    events: &[Vec<u8>],
) -> rusqlite::Result<()> {
    let after = sql(before + events.len() as u64);
    let key = if let Some(key) = key {
        let mut statement = transaction.prepare_cached("UPDATE sessions SET version = ?2 WHERE key = ?1")?;
        statement.execute(params![key, after])?;
        key
    } else {
        let mut statement = transaction.prepare_cached("INSERT INTO sessions (id, version) VALUES (?1, ?2)")?;
        statement.insert(params![id, after])?
    };
    let mut statement =
        transaction.prepare_cached("INSERT INTO events (session, number, event) VALUES (?1, ?2, ?3)")?;
    for (number, event) in (before + 1..).zip(events) {
        statement.execute(params![key, sql(number), event])?;
    }
    Ok(())
}

/// Keeps a snapshot, if the session is still there. One that is a little newer may go: it is as right as this one.
pub(super) fn keep_snapshot(
    connection: &mut Connection,
    key: i64,
    version: u64,
    snapshot: &[u8],
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO snapshots (session, version, format, session_json)
         SELECT key, ?2, ?3, ?4 FROM sessions WHERE key = ?1 AND version >= ?2
         ON CONFLICT (session) DO UPDATE
         SET version = excluded.version, format = excluded.format, session_json = excluded.session_json",
    )?;
    statement.execute(params![key, sql(version), SNAPSHOT_FORMAT, snapshot])?;
    Ok(())
}

pub(super) fn delete(connection: &mut Connection, id: &str) -> Result<(), Failure> {
    connection.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
    Ok(())
}

pub(super) fn list_page(connection: &mut Connection, range: &IdRange, limit: usize) -> Result<Vec<String>, Failure> {
    let IdRange { low, high } = range;
    let before = if high.is_some() { "AND id < ?3" } else { "AND ?3 IS NULL" };
    let text = format!("SELECT id FROM sessions WHERE id >= ?1 {before} ORDER BY id LIMIT ?2");
    let mut statement = connection.prepare_cached(&text)?;
    let ids = statement.query_map(params![low, sql(limit as u64), high], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}
