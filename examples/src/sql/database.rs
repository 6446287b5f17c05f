//! A database that nothing can change.

use std::{
    fmt,
    time::{Duration, Instant},
};

use agent_core::{Error, ErrorKind, Result};
use rusqlite::{
    Connection, OpenFlags,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
    types::{Value, ValueRef},
};
use tempfile::NamedTempFile;

/// The script of an invented ferry line: its ports, vessels, sailings and bookings.
pub const FERRY: &str = include_str!("ferry.sql");

/// How long a statement may take, to compile or to run.
const TIME_LIMIT: Duration = Duration::from_secs(1);

/// How much memory SQLite may use, in bytes.
const MEMORY_LIMIT: u32 = 16 << 20;

/// A SQLite database in a temporary file. Each use opens it anew, read-only, for queries alone, and not for long.
#[derive(Debug)]
pub struct Database {
    file: NamedTempFile,
    tables: Vec<Table>,
}

/// A table, as far as a query has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
}

/// The first rows of a query's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The values.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more.
    pub is_cut: bool,
}

impl Database {
    /// The ferry line of [`FERRY`].
    ///
    /// # Errors
    /// If there is no place for temporary files.
    pub fn ferry() -> Result<Self> {
        Self::from_script(FERRY)
    }

    /// The database that a script builds.
    ///
    /// # Errors
    /// If there is no place for temporary files, or the script fails.
    pub fn from_script(script: &str) -> Result<Self> {
        let failed = |error| Error::new(ErrorKind::Invalid, "build the database").with_source(error);
        let file = NamedTempFile::new().map_err(|error| {
            Error::new(ErrorKind::Store, "make a temporary file for the database").with_source(error)
        })?;
        let build = || {
            let connection = Connection::open(file.path())?;
            connection.execute_batch(script)?;
            tables_of(&connection)
        };
        let tables = build().map_err(failed)?;
        Ok(Self { file, tables })
    }

    /// The names of its tables.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    pub(super) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Runs a query, for its first `limit` rows and for a second at most.
    ///
    /// # Errors
    /// If SQLite refuses it, or it takes too long.
    pub fn query(&self, sql: &str, limit: usize) -> Result<Rows> {
        self.try_query(sql, limit)
            .map_err(|error| Error::new(ErrorKind::Tool, format!("run the query {sql}")).with_source(error))
    }

    fn try_query(&self, sql: &str, limit: usize) -> rusqlite::Result<Rows> {
        let connection = self.connect()?;
        let mut statement = connection.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            if rows.len() == limit {
                return Ok(Rows { columns, rows, is_cut: true });
            }
            rows.push((0..columns.len()).map(|at| row.get_ref(at).map(value_of)).collect::<Result<_, _>>()?);
        }
        Ok(Rows { columns, rows, is_cut: false })
    }

    /// A connection that can read and do nothing else, and is interrupted when its time is over.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(self.file.path(), flags)?;
        // Bytes of a value, and of a statement; attached databases.
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 1_000_000)?;
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 10_000)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        // The time limit is not looked at while common table expressions are expanded, which can double with each. This
        // ends that too. It holds for all of the process.
        connection.pragma_update(None, "hard_heap_limit", MEMORY_LIMIT)?;
        let tables: Vec<String> = self.table_names().map(str::to_owned).collect();
        connection.authorizer(Some(move |cx: AuthContext<'_>| allow_queries(&tables, &cx)))?;
        let end = Instant::now() + TIME_LIMIT;
        connection.progress_handler(1000, Some(move || Instant::now() >= end))?;
        Ok(connection)
    }
}

/// SQLite asks this about everything that a statement would do.
fn allow_queries(tables: &[String], cx: &AuthContext<'_>) -> Authorization {
    let is_allowed = match cx.action {
        AuthAction::Select | AuthAction::Recursive => true,
        // No column is read of what is only counted, be it a table or a query by name.
        AuthAction::Read { table_name, column_name } => {
            column_name.is_empty() || tables.iter().any(|table| table == table_name)
        }
        AuthAction::Function { function_name } => function_name != "load_extension",
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

fn tables_of(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'
               ORDER BY t.rowid, c.cid";
    let mut tables: Vec<Table> = Vec::new();
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, column): (String, String) = (row.get(0)?, row.get(1)?);
        match tables.last_mut() {
            Some(table) if table.name == name => table.columns.push(column),
            Some(_) | None => tables.push(Table { name, columns: vec![column] }),
        }
    }
    Ok(tables)
}

/// The value, whatever bytes a text is made of.
fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

/// A value as a person reads it.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:.2}"),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// A table of text, its columns in line.
impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![self.columns.clone()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(text_of).collect()));
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for line in &lines {
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        if self.is_cut { writeln!(f, "… and more") } else { Ok(()) }
    }
}
