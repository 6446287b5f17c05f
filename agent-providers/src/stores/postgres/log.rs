//! The statements.

use std::pin::pin;

use agent_core::{Error, ErrorKind, Event, Result};
use deadpool_postgres::Object;
use futures::TryStreamExt;
use tokio_postgres::{Row, types::ToSql};

use super::database::Database;
use crate::stores::{
    range::IdRange,
    record::{self, Fold, SNAPSHOT_FORMAT, sql, unsigned},
};

/// What the index of ids finds; `$1` is the id.
macro_rules! is_id {
    () => {
        "substring(id, 1, 1000) = substring($1::bytea, 1, 1000) AND sha256(id) = sha256($1::bytea) AND id = $1"
    };
}

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection, and what is attempted with it.
struct Session<'a> {
    connection: Object,
    database: &'a Database,
    attempt: &'static str,
}

impl<'a> Session<'a> {
    async fn to(attempt: &'static str, database: &'a Database) -> Result<Self> {
        Ok(Self { connection: database.connection().await?, database, attempt })
    }

    /// Hands each row to `visit` as it comes: a history need not be in memory at once.
    async fn visit(
        &self,
        statement: &str,
        parameters: Parameters<'_>,
        mut visit: impl FnMut(Row) -> Result<()> + Send,
    ) -> Result<()> {
        let failed = |error| self.failed(error);
        let statement = self.connection.prepare_cached(statement).await.map_err(failed)?;
        let rows = self.connection.query_raw(&statement, parameters.iter().copied()).await.map_err(failed)?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            visit(row)?;
        }
        Ok(())
    }

    async fn row(&self, statement: &str, parameters: Parameters<'_>) -> Result<Option<Row>> {
        let mut found = None;
        let keep = |row| {
            found = Some(row);
            Ok(())
        };
        self.visit(statement, parameters, keep).await?;
        Ok(found)
    }

    /// Returns how many rows it changed.
    async fn change(&self, statement: &str, parameters: Parameters<'_>) -> Result<u64, tokio_postgres::Error> {
        let statement = self.connection.prepare_cached(statement).await?;
        self.connection.execute(&statement, parameters).await
    }

    fn failed(&self, error: tokio_postgres::Error) -> Error {
        self.database.failed(self.attempt, error)
    }
}

/// How often a load begins anew because the session was deleted meanwhile.
const LOADS: u32 = 8;

/// A snapshot, and the events behind it.
pub(super) async fn load(database: &Database, id: &str) -> Result<Fold> {
    let session = Session::to("load a session", database).await?;
    for _ in 0..LOADS {
        let begin = concat!(
            "SELECT s.key, s.version, p.version, p.session_json FROM agent_sessions s LEFT JOIN agent_snapshots p \
             ON p.session = s.key AND p.format = $2 AND p.version <= s.version WHERE ",
            is_id!()
        );
        let Some(row) = session.row(begin, &[&id.as_bytes(), &SNAPSHOT_FORMAT]).await? else {
            return Ok(Fold::default());
        };
        let (key, version): (i64, i64) = (row.get(0), row.get(1));
        let snapshot = row.get::<_, Option<i64>>(2).map(|version| (unsigned(version), row.get(3)));
        let mut fold = Fold::begin(id, key, snapshot);
        let events = "SELECT number, event FROM agent_events WHERE session = $1 AND number > $2 AND number <= $3 ORDER BY number";
        let from = sql(fold.version());
        let apply = |row: Row| fold.apply(id, unsigned(row.get(0)), row.get(1));
        session.visit(events, &[&key, &from, &version], apply).await?;
        if fold.version() == unsigned(version) {
            return Ok(fold);
        }
    }
    Err(record::incomplete(id))
}

/// The events behind the first `from`.
pub(super) async fn events(database: &Database, id: &str, from: u64) -> Result<Vec<Event>> {
    let session = Session::to("read a session", database).await?;
    let statement = concat!(
        "SELECT number, event FROM agent_events JOIN agent_sessions ON key = session \
         WHERE number > $2 AND ",
        is_id!(),
        " ORDER BY number"
    );
    let mut events = Vec::new();
    let keep = |row: Row| record::push(&mut events, id, from, unsigned(row.get(0)), row.get(1));
    session.visit(statement, &[&id.as_bytes(), &sql(from)], keep).await?;
    Ok(events)
}

/// In one statement: the row of the session is changed if the version is right, and the events go where it was.
pub(super) async fn append(database: &Database, id: &str, expected: u64, events: &[Vec<u8>]) -> Result<u64> {
    const INSERT: &str = "INSERT INTO agent_events (session, number, event) \
         SELECT key, $2 + position, event FROM changed, unnest($3::bytea[]) WITH ORDINALITY AS new (event, position)";
    const CREATE: &str = "WITH changed AS (INSERT INTO agent_sessions (id, version) \
         VALUES ($1::bytea, $2::bigint + cardinality($3::bytea[])) ON CONFLICT DO NOTHING RETURNING key) ";
    const UPDATE: &str = concat!(
        "WITH changed AS (UPDATE agent_sessions SET version = version + cardinality($3::bytea[]) \
         WHERE version = $2::bigint AND ",
        is_id!(),
        " RETURNING key) "
    );

    let session = Session::to("append to a session", database).await?;
    let bytes = id.as_bytes();
    let changed = if events.is_empty() {
        0
    } else {
        let statement = [if expected == 0 { CREATE } else { UPDATE }, INSERT].concat();
        let changed = session.change(&statement, &[&bytes, &sql(expected), &events]).await;
        changed.map_err(|error| database.failed_append(session.attempt, error))?
    };
    if changed > 0 {
        return Ok(expected + changed);
    }
    let row = session.row(concat!("SELECT version FROM agent_sessions WHERE ", is_id!()), &[&bytes]).await?;
    let found = row.map_or(0, |row| unsigned(row.get(0)));
    if events.is_empty() && found == expected { Ok(found) } else { Err(Error::conflict(id, expected, found)) }
}

/// Keeps a snapshot, if the session is still there. One that is a little newer may go: it is as right as this one.
pub(super) async fn keep_snapshot(database: &Database, fold: &Fold) -> Result<()> {
    let session = Session::to("keep a snapshot of a session", database).await?;
    let statement = "INSERT INTO agent_snapshots (session, version, format, session_json) \
         SELECT key, $2, $3, $4 FROM agent_sessions WHERE key = $1 AND version >= $2 FOR KEY SHARE \
         ON CONFLICT (session) DO UPDATE \
         SET version = excluded.version, format = excluded.format, session_json = excluded.session_json";
    let snapshot = fold.snapshot()?;
    let kept = session.change(statement, &[&fold.key(), &sql(fold.version()), &SNAPSHOT_FORMAT, &snapshot]).await;
    kept.map(|_| ()).map_err(|error| session.failed(error))
}

pub(super) async fn delete(database: &Database, id: &str) -> Result<()> {
    let session = Session::to("delete a session", database).await?;
    let deleted = session.change(concat!("DELETE FROM agent_sessions WHERE ", is_id!()), &[&id.as_bytes()]).await;
    deleted.map(|_| ()).map_err(|error| session.failed(error))
}

pub(super) async fn list_page(database: &Database, range: &IdRange, limit: usize) -> Result<Vec<String>> {
    const FROM: &str = "SELECT id FROM agent_sessions \
         WHERE substring(id, 1, 1000) >= substring($2::bytea, 1, 1000) AND id >= $2";
    const BEFORE: &str = " AND substring(id, 1, 1000) <= substring($3::bytea, 1, 1000) AND id < $3";
    const ORDER: &str = " ORDER BY substring(id, 1, 1000), id LIMIT $1";

    let session = Session::to("list sessions", database).await?;
    let (low, high, limit) = (range.low.as_bytes(), range.high.as_deref().map(str::as_bytes), sql(limit as u64));
    let mut ids = Vec::new();
    let keep = |row: Row| {
        let id = String::from_utf8(row.get(0));
        ids.push(id.map_err(|error| {
            Error::new(ErrorKind::Store, format!("list sessions in {database}: one has an id that is no text"))
                .with_source(error)
        })?);
        Ok(())
    };
    match &high {
        Some(high) => session.visit(&[FROM, BEFORE, ORDER].concat(), &[&limit, &low, high], keep).await?,
        None => session.visit(&[FROM, ORDER].concat(), &[&limit, &low], keep).await?,
    }
    Ok(ids)
}
