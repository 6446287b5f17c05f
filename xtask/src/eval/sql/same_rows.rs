//! Whether a statement returns the rows of a reference.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, Result};
use agent_eval::{Check, CheckContext, Outcome};
use agent_examples::sql::{Database, Value, check, text_of};

/// The most rows that are compared.
const MAX_ROWS: usize = 1000;
/// The most rows of each side that a failure shows.
const SHOWN_ROWS: usize = 3;
/// How far numbers may be apart: a mean that is rounded to two places is the mean.
const TOLERANCE: f64 = 0.01;

type Row = Vec<Value>;

/// The answer's statement returns the reference's rows on every database: in its order if the reference orders them,
/// else in any. The columns' order counts, their names do not; numbers may be [this far](TOLERANCE) apart.
///
/// On one database alone a statement may be right by chance (Zhong, Yu and Klein 2020, "Semantic Evaluation for
/// Text-to-SQL with Distilled Test Suites").
///
/// It runs what a model wrote, on databases that nothing can change.
pub(super) struct SameRows {
    databases: Arc<[Database]>,
    /// The reference's rows, by database.
    expected: Vec<Vec<Row>>,
    is_ordered: bool,
}

impl SameRows {
    /// # Errors
    /// A reference that does not run, or returns nothing: too much would equal it.
    pub(super) fn new(databases: Arc<[Database]>, reference: &str) -> Result<Self> {
        let rows_of = |database: &Database| {
            let found = database.query(reference, MAX_ROWS)?;
            if found.is_cut || found.rows.is_empty() {
                let count = found.rows.len();
                let what = format!(
                    "compare with the rows of {reference}: it returns {count}, and 1 to {MAX_ROWS} can be compared"
                );
                return Err(Error::new(ErrorKind::Invalid, what));
            }
            Ok(found.rows)
        };
        let expected = databases.iter().map(rows_of).collect::<Result<_>>()?;
        Ok(Self { databases, expected, is_ordered: orders(reference) })
    }

    /// What one database says of a statement.
    fn compare_on(&self, database: &Database, expected: &[Row], answer: &str) -> Outcome {
        let checked = match check(database, answer) {
            Ok(checked) => checked,
            Err(error) => return Outcome::error(format!("{error:#}")),
        };
        if let Some(feedback) = checked.feedback {
            return Outcome::fail(format!("it does not run: {feedback}"));
        }
        match database.query(&checked.statement, MAX_ROWS) {
            Ok(found) if found.is_cut => Outcome::fail(format!("it returns more than {MAX_ROWS} rows")),
            Ok(found) => self.compare(expected, &found.rows),
            Err(error) => Outcome::fail(format!("it fails: {error:#}")),
        }
    }

    fn compare(&self, expected: &[Row], found: &[Row]) -> Outcome {
        let (missing, unexpected) = difference(expected, found);
        if missing.is_empty() && unexpected.is_empty() {
            let place = expected.iter().zip(found).position(|(expected, found)| !same_row(expected, found));
            let Some(place) = place.filter(|_| self.is_ordered) else { return Outcome::pass() };
            let diff = diff(&[&expected[place]], &[&found[place]]);
            return Outcome::fail(format!("the rows are right, but not their order: row {} differs", place + 1))
                .with_diff(diff);
        }
        let reason = match (expected[0].len(), found.first().map_or(0, Vec::len)) {
            (_, 0) => format!("it returns no rows instead of {}", expected.len()),
            (right, wrong) if right != wrong => format!("it returns {wrong} columns instead of {right}"),
            _ if expected.len() == found.len() => format!("{} of {} rows differ", missing.len(), expected.len()),
            _ => format!("it returns {} rows instead of {}", found.len(), expected.len()),
        };
        Outcome::fail(reason).with_diff(diff(&missing, &unexpected))
    }
}

impl Check for SameRows {
    fn name(&self) -> &'static str {
        "same_rows"
    }

    fn check(&self, cx: &CheckContext<'_>) -> Outcome {
        for (place, (database, expected)) in self.databases.iter().zip(&self.expected).enumerate() {
            let mut outcome = self.compare_on(database, expected, cx.answer);
            if !outcome.passed() {
                if place > 0 {
                    outcome.reason = format!("right by chance: on another database {}", outcome.reason);
                }
                return outcome;
            }
        }
        Outcome::pass()
    }
}

/// Whether a statement orders its rows: by an `ORDER BY` that is in no parentheses.
fn orders(sql: &str) -> bool {
    let mut depth = 0_usize;
    let outside: String = sql
        .chars()
        .filter(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => (),
            }
            depth == 0
        })
        .collect();
    let words: Vec<&str> = outside.split_whitespace().collect();
    words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case("order") && pair[1].eq_ignore_ascii_case("by"))
}

/// The rows of each list that have no partner in the other.
fn difference<'a>(expected: &'a [Row], found: &'a [Row]) -> (Vec<&'a Row>, Vec<&'a Row>) {
    let mut unexpected: Vec<&Row> = found.iter().collect();
    let mut missing = Vec::new();
    for row in expected {
        match unexpected.iter().position(|found| same_row(row, found)) {
            Some(at) => {
                unexpected.remove(at);
            }
            None => missing.push(row),
        }
    }
    (missing, unexpected)
}

fn same_row(a: &Row, b: &Row) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
}

fn same_value(a: &Value, b: &Value) -> bool {
    a == b || number(a).zip(number(b)).is_some_and(|(a, b)| (a - b).abs() <= TOLERANCE)
}

/// The number that a value is, or that its text is: `strftime` returns texts.
fn number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "the tolerance is coarser")]
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Text(text) => text.parse().ok(),
        Value::Null | Value::Blob(_) => None,
    }
}

/// The first rows that are missing, and those that are there in their stead.
fn diff(missing: &[&Row], unexpected: &[&Row]) -> String {
    [('-', missing), ('+', unexpected)]
        .into_iter()
        .flat_map(|(sign, rows)| side(sign, rows))
        .collect::<Vec<_>>()
        .join("\n")
}

fn side(sign: char, rows: &[&Row]) -> Vec<String> {
    let line = |row: &&Row| format!("{sign} {}", row.iter().map(text_of).collect::<Vec<_>>().join(" | "));
    let mut lines: Vec<String> = rows.iter().take(SHOWN_ROWS).map(line).collect();
    if rows.len() > SHOWN_ROWS {
        lines.push(format!("{sign} … and {} more", rows.len() - SHOWN_ROWS));
    }
    lines
}
