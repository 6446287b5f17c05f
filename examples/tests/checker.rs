//! What the checker of `sql_refine` lets through, what it says to the rest, and that nothing gets at the database.

use agent_examples::sql::{Database, Verdict, check};

fn ferry() -> Database {
    Database::ferry().unwrap()
}

/// What the checker says to each answer.
fn verdicts(answers: &[&str]) -> String {
    let database = ferry();
    let before = database.query("SELECT * FROM booking", usize::MAX).unwrap();
    let mut lines = String::new();
    for answer in answers {
        let checked = check(&database, answer).unwrap();
        let feedback = checked.feedback.as_deref().unwrap_or("accepted");
        assert_eq!(checked.verdict == Verdict::Accepted, checked.feedback.is_none());
        lines.extend([answer, "\n  ", feedback, "\n"]);
    }
    assert_eq!(database.query("SELECT * FROM booking", usize::MAX).unwrap(), before);
    lines
}

#[test]
fn a_query_is_accepted_as_it_is_or_fenced() {
    let database = ferry();
    let answers = [
        "SELECT name FROM vessel",
        "  SELECT name FROM vessel\n",
        "```sql\nSELECT name FROM vessel\n```",
        "```\nSELECT name FROM vessel\n```",
        "Here it is:\n```sqlite\nSELECT name FROM vessel\n```\nIt lists the vessels.\n```sql\nDROP TABLE vessel\n```",
        "```sql\nSELECT name FROM vessel",
    ];
    for answer in answers {
        let checked = check(&database, answer).unwrap();
        assert_eq!((checked.statement.as_str(), checked.feedback), ("SELECT name FROM vessel", None), "{answer}");
    }
}

#[test]
fn every_form_of_query_is_accepted() {
    insta::assert_snapshot!(verdicts(&[
        "select name from vessel;",
        "SELECT name FROM vessel; -- all of them",
        "/* all */ SELECT name FROM vessel",
        "WITH old AS (SELECT * FROM vessel WHERE built < 2000) SELECT name FROM old",
        "SELECT name FROM port UNION SELECT name FROM vessel",
        "VALUES (1), (2)",
        "SELECT strftime('%Y', departs_at), count(*) FROM sailing GROUP BY 1",
        "SELECT 'DROP TABLE vessel; --'",
    ]));
}

#[test]
fn what_is_wrong_is_said_with_what_helps() {
    insta::assert_snapshot!(verdicts(&[
        "SELECT age FROM vessel",
        "SELECT v.name, s.fare FROM vessel v JOIN sailing s ON s.vessel_id = v.id",
        "SELECT x.name FROM vessel v",
        "SELECT name FROM boats",
        "SELECT name FROM vessel JOIN port ON vessel.id = port.id",
        "SELECT year(departs_at) FROM sailing",
        "SELECT name FORM vessel WHERE",
        "SELECT name FROM vessel WHERE (",
        "The vessel is Skarven.",
        "SELECT name FROM vessel WHERE id = ?",
    ]));
}

#[test]
fn whatever_is_not_one_query_is_refused() {
    insta::assert_snapshot!(verdicts(&[
        "",
        "   ",
        "``````",
        ";",
        "-- SELECT name FROM vessel",
        "/* SELECT name FROM vessel */",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE booking",
        "SELECT 1 /* ; */; DELETE FROM booking --",
        "DROP TABLE booking",
        "DELETE FROM booking",
        "UPDATE booking SET seats = 0",
        "INSERT INTO port VALUES (9, 'x', 'y')",
        "REPLACE INTO port VALUES (1, 'x', 'y')",
        "WITH x AS (SELECT 1) INSERT INTO port SELECT 9, 'x', 'y'",
        "WITH x AS (SELECT 1) DELETE FROM booking",
        "DELETE FROM booking RETURNING *",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t AS SELECT * FROM booking",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE VIRTUAL TABLE t USING fts5 (x)",
        "PRAGMA table_info(booking)",
        "PRAGMA query_only = OFF",
        "ATTACH 'other.db' AS other",
        "ATTACH 'other' || '.db' AS other",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "REINDEX",
        "ANALYZE",
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN DELETE FROM booking",
        "SELECT load_extension('./evil')",
        "SELECT 1 WHERE load_extension('./evil') IS NULL",
        "SELECT 1\0; DROP TABLE booking",
    ]));
}

#[test]
fn nothing_but_the_tables_is_read() {
    insta::assert_snapshot!(verdicts(&[
        "SELECT * FROM sqlite_schema",
        "SELECT sql FROM (SELECT * FROM sqlite_master)",
        "SELECT * FROM pragma_database_list",
        "SELECT name FROM vessel WHERE EXISTS (SELECT file FROM pragma_database_list)",
        "SELECT count(*) FROM sqlite_schema",
        "SELECT n FROM (SELECT name AS n FROM vessel), port AS p WHERE p.name = n",
        "SELECT count(*) FROM \"Vessel\", main.port",
    ]));
}

#[test]
fn a_query_that_never_ends_is_not_run_by_the_checker_and_stopped_when_it_is_run() {
    let database = ferry();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    assert_eq!(check(&database, endless).unwrap().feedback, None);
    let error = std::error::Error::source(&database.query(endless, 10).unwrap_err()).unwrap().to_string();
    assert_eq!(error, "interrupted");
}

#[test]
fn a_huge_answer_is_cut_and_a_huge_value_is_refused() {
    let database = ferry();
    let rows = database.query("SELECT a.id FROM booking a, booking b, booking c, booking d", 3).unwrap();
    assert_eq!((rows.rows.len(), rows.is_cut), (3, true));
    let error = database.query("SELECT zeroblob(1000000000)", 3).unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "string or blob too big");
}

#[test]
fn what_is_run_without_being_checked_cannot_write_either() {
    let database = ferry();
    for sql in ["DELETE FROM booking", "DROP TABLE booking", "PRAGMA user_version = 7", "ATTACH 'x.db' AS x"] {
        let error = database.query(sql, 1).unwrap_err();
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "not authorized", "{sql}");
    }
}

#[test]
fn rows_are_shown_in_columns() {
    let database = ferry();
    let rows =
        database.query("SELECT name, built, NULL AS none, 0.5 AS half, x'00ff' AS bytes FROM vessel", 2).unwrap();
    insta::assert_snapshot!(rows, @r"
    name      built  none  half  bytes
    Fjordlys  1998   NULL  0.50  2 bytes
    Skarven   2011   NULL  0.50  2 bytes
    … and more
    ");
}
