//! Whether a statement may be run, and what is wrong with it.

use agent_core::{Error, ErrorKind, Result};
use rusqlite::ErrorCode;

use super::{Database, remedy::with_remedy};

/// What an answer came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The statement in it.
    pub statement: String,
    /// Whether it may be run.
    pub verdict: Verdict,
    /// What is wrong with a refused one, and how to do better.
    pub feedback: Option<String>,
}

/// Whether a statement may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is one query, and SQLite can run it on the database.
    Accepted,
    /// It is not.
    Refused,
}

/// Checks an answer: one statement, a query, which SQLite compiles. Nothing of it is run, so what it comes to depends
/// on the answer and on the database's tables alone.
///
/// It cannot tell whether the query answers the question.
///
/// # Errors
/// If the database cannot be opened.
pub fn check(database: &Database, answer: &str) -> Result<Checked> {
    let statement = statement_of(answer);
    let connection =
        database.connect().map_err(|error| Error::new(ErrorKind::Tool, "open the database").with_source(error))?;
    let feedback = match compile(&connection, statement) {
        Ok(refusal) => refusal.map(str::to_owned),
        Err(error) => Some(describe(database, statement, &error)),
    };
    let verdict = if feedback.is_none() { Verdict::Accepted } else { Verdict::Refused };
    Ok(Checked { statement: statement.to_owned(), verdict, feedback })
}

/// The statement in an answer: the text inside the first Markdown fence; all of it if there is none.
pub fn statement_of(answer: &str) -> &str {
    let Some((_, rest)) = answer.split_once("```") else { return answer.trim() };
    let (_, inside) = rest.split_once('\n').unwrap_or(("", rest));
    inside.split_once("```").map_or(inside, |(inside, _)| inside).trim()
}

/// What is wrong with a statement, if it compiles: its kind is seen as it is, its program by `EXPLAIN`.
fn compile(connection: &rusqlite::Connection, sql: &str) -> rusqlite::Result<Option<&'static str>> {
    if sql.contains('\0') {
        return Ok(Some(ONE_SELECT)); // for SQLite it would end there
    }
    let statement = connection.prepare(sql)?;
    if statement.column_count() == 0 || statement.is_explain() != 0 {
        return Ok(Some(ONE_SELECT));
    }
    if statement.parameter_count() > 0 {
        return Ok(Some("there is nobody to fill in parameters; write the values into the statement"));
    }
    let mut explain = connection.prepare(&format!("EXPLAIN {sql}"))?;
    let mut steps = explain.query([])?;
    while steps.next()?.is_some() {}
    Ok(None)
}

const ONE_SELECT: &str = "write one SELECT statement and nothing else";

fn describe(database: &Database, sql: &str, error: &rusqlite::Error) -> String {
    let (code, text) = match error {
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.code, msg.as_str()),
        rusqlite::Error::SqliteFailure(error, text) => (error.code, text.as_deref().unwrap_or_default()),
        rusqlite::Error::MultipleStatement => return ONE_SELECT.to_owned(),
        other => return other.to_string(),
    };
    match code {
        ErrorCode::AuthorizationForStatementDenied if text == "not authorized" => ONE_SELECT.to_owned(),
        ErrorCode::OperationInterrupted | ErrorCode::OutOfMemory => {
            "it takes too much to compile; write a simpler statement".to_owned()
        }
        _ => with_remedy(database.tables(), sql, text),
    }
}
