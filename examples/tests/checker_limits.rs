//! Statements that are made to exhaust the compiler. A file, and so a process, of its own: the memory limit that they run
//! into is the process's.

use agent_examples::sql::{Database, check};

#[test]
fn statements_that_are_too_large_to_compile_are_refused() {
    let long = format!("SELECT {}1", "1 + ".repeat(5000));
    let deep = format!("SELECT {}1", "NOT ".repeat(2000));
    let joined = format!("SELECT 1 FROM {}", vec!["vessel"; 65].join(", "));
    let doubling: Vec<String> = (1..20).map(|n| format!("t{n} AS (SELECT a.x FROM t{0} a, t{0} b)", n - 1)).collect();
    let doubling = format!("WITH t0 AS (SELECT 1 AS x), {} SELECT x FROM t19", doubling.join(", "));
    let database = Database::ferry().unwrap();
    let feedback = [long, deep, joined, doubling]
        .map(|sql| check(&database, &sql).unwrap().feedback.unwrap_or_else(|| "accepted".into()));
    insta::assert_snapshot!(feedback.join("\n"), @r"
    statement too long
    Expression tree is too large (maximum depth 1000)
    at most 64 tables in a join
    it takes too much to compile; write a simpler statement
    ");
}
