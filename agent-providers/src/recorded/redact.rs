//! Keeps keys out of cassettes.

use serde_json::{Map, Value};

use super::entry::Piece;

const BLOT: &str = "[redacted]";

/// Names of fields whose value is a key, in lower case and without `-` and `_`.
const FIELDS: [&str; 9] = [
    "authorization",
    "proxyauthorization",
    "apikey",
    "xapikey",
    "xgoogapikey",
    "accesstoken",
    "cookie",
    "password",
    "secret",
];

/// How the keys of well-known services begin.
const PREFIXES: [&str; 7] = ["sk-", "sk_", "gsk_", "xai-", "AIza", "ghp_", "hf_"];

/// Shorter words are no keys.
const SHORTEST: usize = 20;

/// Blots out the values of fields that are named like keys.
pub(super) fn fields(map: &mut Map<String, Value>) {
    for (name, value) in map {
        let name = name.to_ascii_lowercase().replace(['-', '_'], "");
        match value {
            Value::String(text) if FIELDS.contains(&name.as_str()) => *text = BLOT.into(),
            Value::Object(inner) => fields(inner),
            Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(fields),
            _ => {}
        }
    }
}

/// Blots out what looks like a key in every string.
pub(super) fn strings(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(clean) = clean(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strings),
        Value::Object(map) => map.values_mut().for_each(strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Blots out what looks like a key, also where it is spread over several pieces.
pub(super) fn pieces(pieces: &[Piece]) -> Vec<Piece> {
    let mut out = Vec::new();
    for run in pieces.chunk_by(Piece::is_like) {
        let whole = run.iter().map(Piece::text).collect::<String>();
        match clean(&whole) {
            None => out.extend_from_slice(run),
            Some(clean) => out.push(run[0].with_text(clean)),
        }
    }
    out
}

/// The text without keys, if there are any in it.
fn clean(text: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut out = String::new();
    let (mut rest, mut after_bearer, mut found) = (text, false, false);
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        let long = word.len() >= SHORTEST;
        let is_key = long && (after_bearer || PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
        out.push_str(if is_key { BLOT } else { word });
        found |= is_key;
        let gap = more.find(is_word).unwrap_or(more.len());
        after_bearer = word.eq_ignore_ascii_case("bearer");
        out.push_str(&more[..gap]);
        rest = &more[gap..];
    }
    found.then_some(out)
}
