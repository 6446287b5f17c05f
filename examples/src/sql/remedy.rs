//! What a writer needs to know to correct a statement.

use super::database::Table;

/// SQLite's message, and what helps against it: a small model does not go and look.
pub(super) fn with_remedy(tables: &[Table], sql: &str, message: &str) -> String {
    let remedy = if message.starts_with("no such column") {
        tables.iter().filter(|table| names(sql, &table.name)).map(columns).collect::<Vec<_>>().join("; ")
    } else if message.starts_with("no such table") || message.starts_with("access to ") {
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        format!("there are: {}", names.join(", "))
    } else if message.starts_with("ambiguous column name") {
        "write the table in front of it".to_owned()
    } else if message.ends_with("syntax error") || message.starts_with("incomplete input") {
        "write one SQLite SELECT statement and nothing else".to_owned()
    } else {
        String::new()
    };
    if remedy.is_empty() { message.to_owned() } else { format!("{message}; {remedy}") }
}

fn columns(table: &Table) -> String {
    format!("the table {} has: {}", table.name, table.columns.join(", "))
}

/// Whether a statement has this word in it.
fn names(sql: &str, table: &str) -> bool {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word.eq_ignore_ascii_case(table))
}
