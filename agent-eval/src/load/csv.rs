//! Cases from a table.

use std::path::Path;

use agent_core::Result;
use csv::{ReaderBuilder, StringRecord, Trim};
use serde_json::{Value, json};

use super::tree::{Node, Spot, Tree, error_at};
use crate::{
    SCHEMA,
    text::{listed, nearest},
};

const COLUMNS: [&str; 9] = ["id", "input", "expected", "tags", "split", "group", "repeats", "contains", "regex"];

/// What a table does not say of its set.
pub(super) fn header(file: &str) -> Tree {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let start = Spot { line: 1, column: 1 };
    leaf_map(start, [("schema", json!(SCHEMA)), ("name", json!(name))])
}

fn leaf_map<const N: usize>(spot: Spot, entries: [(&str, Value); N]) -> Tree {
    let entries = entries.map(|(key, value)| (spot, key.to_owned(), Tree { spot, node: Node::Leaf(value) }));
    Tree { spot, node: Node::Map(entries.into()) }
}

pub(super) fn cases(file: &str, text: &str) -> Result<Vec<Tree>> {
    let mut reader = ReaderBuilder::new().trim(Trim::Headers).from_reader(text.as_bytes());
    let failed = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        error_at(file, Spot { line, column: 1 }, format!("no CSV: {error}"))
    };
    let columns = reader.headers().map_err(failed)?.clone();
    for (column, name) in (1..).zip(&columns) {
        let nested = ["state.", "metadata."].iter().any(|start| name.len() > start.len() && name.starts_with(start));
        if !nested && !COLUMNS.contains(&name) {
            let meant = nearest(name, COLUMNS).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            let what =
                format!("unknown column `{name}`; {meant}known are {}, `state.KEY`, `metadata.KEY`", listed(COLUMNS));
            return Err(error_at(file, Spot { line: 1, column }, what));
        }
    }
    let records = reader.records().map(|record| record.map(|record| case(&columns, &record)).map_err(failed));
    records.collect()
}

fn case(columns: &StringRecord, record: &StringRecord) -> Tree {
    let line = record.position().map_or(1, csv::Position::line);
    let start = Spot { line, column: 1 };
    let mut fields: Vec<(Spot, String, Tree)> = Vec::new();
    for ((column, name), cell) in (1..).zip(columns).zip(record).filter(|(_, cell)| !cell.trim().is_empty()) {
        let spot = Spot { line, column };
        let leaf = |value: Value| Tree { spot, node: Node::Leaf(value) };
        let list = |values: Vec<Tree>| Tree { spot, node: Node::List(values) };
        let (key, tree) = match name {
            "input" => ("input", leaf(json!({ "text": cell }))),
            "expected" => ("expected", list(vec![leaf(json!(cell))])),
            "tags" => {
                let tags = cell.split([' ', ',', ';']).filter(|tag| !tag.is_empty());
                ("tags", list(tags.map(|tag| leaf(json!(tag))).collect()))
            }
            "repeats" => ("repeats", leaf(cell.trim().parse::<u64>().map_or(json!(cell), |count| json!(count)))),
            "contains" => ("checks", list(vec![leaf(json!({ "contains": { "all": [cell] } }))])),
            "regex" => ("checks", list(vec![leaf(json!({ "regex": cell }))])),
            plain => match plain.split_once('.') {
                Some((part, key)) => {
                    let value = serde_json::from_str(cell).unwrap_or_else(|_| json!(cell));
                    (part, Tree { spot, node: Node::Map(vec![(spot, key.to_owned(), leaf(value))]) })
                }
                None => (plain, leaf(json!(cell))),
            },
        };
        // Columns of one field add to each other.
        match fields.iter_mut().find(|(_, other, _)| other == key) {
            Some((_, _, Tree { node: Node::List(items), .. })) => items.extend(tree.items().to_vec()),
            Some((_, _, Tree { node: Node::Map(entries), .. })) => {
                if let Node::Map(more) = tree.node {
                    entries.extend(more);
                }
            }
            Some(_) | None => fields.push((spot, key.to_owned(), tree)),
        }
    }
    Tree { spot: start, node: Node::Map(fields) }
}
