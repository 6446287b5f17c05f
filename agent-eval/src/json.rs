//! JSON values that are compared and read.

use serde_json::Value;

/// Whether two values are equal; numbers are compared as numbers, in nested values too: 1 is 1.0.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // Integers are compared as such: beyond 2^53 different ones are the same float.
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Whether all of `part` is in `whole`: fields in nested objects, and each element of a list at its place.
pub(crate) fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => equal(whole, part),
    }
}

/// Reads a text as JSON, a Markdown code fence around it apart.
pub(crate) fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(unfenced(text))
}

/// The text inside a Markdown code fence, if the whole text is one: models without a schema mode wrap JSON so.
pub(crate) fn unfenced(text: &str) -> &str {
    let inner = || text.trim().strip_prefix("```")?.strip_suffix("```")?.split_once('\n').map(|(_, body)| body);
    inner().unwrap_or(text)
}

/// Whether a text has the form of a JSON pointer (RFC 6901).
pub(crate) fn is_pointer(text: &str) -> bool {
    text.is_empty() || text.starts_with('/')
}

/// The keys of a JSON pointer, unescaped.
pub(crate) fn keys(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~"))
}
