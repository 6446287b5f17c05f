//! The questions of `evals/sql` have answers, and each answer is told from a wrong one.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use agent_core::Session;
use agent_eval::{Check, CheckContext, CheckSpec, Outcome, Verdict};
use agent_examples::sql::{Database, FERRY};

use super::{super::tests::load, judges, same_rows::SameRows, second};

static DATABASES: LazyLock<Arc<[Database]>> = LazyLock::new(|| judges().unwrap());

fn judged(reference: &str, answer: &str) -> Outcome {
    let check = SameRows::new(DATABASES.clone(), reference).unwrap();
    check.check(&CheckContext {
        case: None,
        session: &Session::new(),
        events: &[],
        answer,
        stop: None,
        usage: agent_core::Usage::default(),
        wall: None,
        iterations: &[],
    })
}

/// The verdict, the reason and the diff, as a report shows them.
fn said(reference: &str, answer: &str) -> String {
    let Outcome { verdict, reason, diff, .. } = judged(reference, answer);
    format!("{verdict:?} {reason}\n{}", diff.unwrap_or_default()).trim_end().to_owned()
}

/// The reference of each case.
fn references() -> BTreeMap<String, String> {
    let reference = |case: agent_eval::EvalCase| match &case.checks[..] {
        [CheckSpec::Custom { name, args }] if name == "same_rows" => (case.id, args.as_str().unwrap().to_owned()),
        other => panic!("{}: {other:?}", case.id),
    };
    load("sql").cases.into_iter().map(reference).collect()
}

#[test]
fn every_reference_answers_its_own_question() {
    let references = references();
    assert_eq!(references.len(), 50);
    for (case, reference) in references {
        assert_eq!(judged(&reference, &reference), Outcome::pass(), "{case}");
        let fenced = format!("```sql\n{reference};\n```");
        assert_eq!(judged(&reference, &fenced), Outcome::pass(), "{case}");
    }
}

/// A writer that knows nothing does not pass: no question's answer is a 0, a NULL or a name that every query returns.
#[test]
fn no_reference_is_met_by_a_trivial_statement() {
    let trivial = ["SELECT 0", "SELECT 1", "SELECT NULL", "SELECT ''", "SELECT * FROM port", "SELECT * FROM vessel"];
    for (case, reference) in references() {
        let met: Vec<&str> = trivial.into_iter().filter(|answer| judged(&reference, answer).passed()).collect();
        assert_eq!(met, Vec::<&str>::new(), "{case}");
    }
}

/// SQLite can return what is not ordered in the opposite order: a reference that then says something else has ties.
#[test]
fn no_reference_depends_on_the_order_of_the_tables() {
    let rows_of = |script: &str, sql: &str, is_reversed: bool| {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(script).unwrap();
        connection.pragma_update(None, "reverse_unordered_selects", is_reversed).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect::<Result<Vec<_>, _>>();
        let mut rows: Vec<String> = statement
            .query_map([], row)
            .unwrap()
            .map(|row: Result<Vec<rusqlite::types::Value>, _>| format!("{:?}", row.unwrap()))
            .collect();
        if !sql.contains("ORDER BY") {
            rows.sort();
        }
        rows
    };
    for (case, reference) in references() {
        for script in [FERRY, &second()] {
            assert_eq!(rows_of(script, &reference, false), rows_of(script, &reference, true), "{case}");
        }
    }
}

#[test]
fn the_order_of_rows_counts_where_the_reference_orders_them() {
    let names = "SELECT name FROM vessel";
    let newest_first = "SELECT name FROM vessel ORDER BY built DESC";
    let oldest_first = "SELECT name FROM vessel ORDER BY built";
    assert_eq!(judged(names, newest_first), Outcome::pass());
    assert_eq!(judged("SELECT name FROM (SELECT name FROM vessel ORDER BY built)", newest_first), Outcome::pass());
    insta::assert_snapshot!(said(newest_first, oldest_first), @r"
    Fail the rows are right, but not their order: row 1 differs
    - Nordlyn
    + Fjordlys
    ");
}

#[test]
fn names_of_columns_and_roundings_do_not_count() {
    let reference = "SELECT v.name, avg(s.fare_cents) FROM vessel v JOIN sailing s ON s.vessel_id = v.id GROUP BY v.id";
    let rounded = "SELECT v.name AS vessel, round(avg(s.fare_cents), 2) AS fare FROM sailing s JOIN vessel v ON s.vessel_id = v.id GROUP BY v.name";
    assert_eq!(judged(reference, rounded), Outcome::pass());
    assert_eq!(judged("SELECT built FROM vessel", "SELECT built || '' FROM vessel"), Outcome::pass());
    let whole = reference.replace("avg(s.fare_cents)", "avg(s.fare_cents) / 100");
    insta::assert_snapshot!(said(reference, &whole), @r"
    Fail 3 of 3 rows differ
    - Fjordlys | 14900.00
    - Skarven | 7488.24
    - Nordlyn | 21900.00
    + Fjordlys | 149.00
    + Skarven | 74.88
    + Nordlyn | 219.00
    ");
}

#[test]
fn what_differs_is_shown() {
    let names = "SELECT name FROM port";
    let others = [
        "SELECT id, name FROM port",
        "SELECT name FROM port WHERE id < 0",
        "SELECT name FROM port UNION ALL SELECT name FROM vessel UNION ALL SELECT island FROM port",
        "SELECT name FROM port WHERE id > 1",
        "SELECT CASE id WHEN 2 THEN NULL ELSE name END FROM port",
        "SELECT town FROM port",
        "DROP TABLE port",
        "SELECT a.passenger FROM booking a, booking b",
    ];
    let said: Vec<String> = others.iter().map(|answer| format!("{answer}\n{}\n", said(names, answer))).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    SELECT id, name FROM port
    Fail it returns 2 columns instead of 1
    - Havnsund
    - Brattøy
    - Skarvik
    - … and 2 more
    + 1 | Havnsund
    + 2 | Brattøy
    + 3 | Skarvik
    + … and 2 more

    SELECT name FROM port WHERE id < 0
    Fail it returns no rows instead of 5
    - Havnsund
    - Brattøy
    - Skarvik
    - … and 2 more

    SELECT name FROM port UNION ALL SELECT name FROM vessel UNION ALL SELECT island FROM port
    Fail it returns 13 rows instead of 5
    + Fjordlys
    + Skarven
    + Nordlyn
    + … and 5 more

    SELECT name FROM port WHERE id > 1
    Fail it returns 4 rows instead of 5
    - Havnsund

    SELECT CASE id WHEN 2 THEN NULL ELSE name END FROM port
    Fail 1 of 5 rows differ
    - Brattøy
    + NULL

    SELECT town FROM port
    Fail it does not run: no such column: town; the table port has: id, name, island

    DROP TABLE port
    Fail it does not run: write one SELECT statement and nothing else

    SELECT a.passenger FROM booking a, booking b
    Fail it returns more than 1000 rows
    ");
}

#[test]
fn what_is_right_by_chance_fails() {
    let oldest = "SELECT name FROM vessel ORDER BY built LIMIT 1";
    insta::assert_snapshot!(said(oldest, "SELECT name FROM vessel ORDER BY id LIMIT 1"), @r"
    Fail right by chance: on another database 1 of 1 rows differ
    - Fjordlys
    + Nordlyn
    ");
}

#[test]
fn rows_are_compared_with_their_repetitions() {
    let islands = "SELECT island FROM port";
    assert_eq!(judged(islands, "SELECT DISTINCT island FROM port").verdict, Verdict::Fail);
    assert_eq!(judged("SELECT DISTINCT island FROM port", islands).verdict, Verdict::Fail);
}

#[test]
fn a_reference_without_rows_or_that_does_not_run_is_an_error() {
    let says =
        |reference: &str| SameRows::new(DATABASES.clone(), reference).err().map(|error| format!("{error:#}")).unwrap();
    let said = ["SELECT name FROM port WHERE id < 0", "SELECT town FROM port"].map(says);
    insta::assert_snapshot!(said.join("\n"), @r"
    compare with the rows of SELECT name FROM port WHERE id < 0: it returns 0, and 1 to 1000 can be compared
    run the query SELECT town FROM port: no such column: town in SELECT town FROM port at offset 7: Error code 1: SQL logic error
    ");
}
