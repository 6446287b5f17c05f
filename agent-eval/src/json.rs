//! JSON values that are compared and read.

use agent_core::{json_equal, unfenced};
use serde_json::Value;

/// Whether all of `part` is in `whole`: fields in nested objects, and each element of a list at its place.
pub(crate) fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => json_equal(whole, part),
    }
}

/// Reads a text as JSON, a Markdown code fence around it apart.
pub(crate) fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(unfenced(text))
}

/// Whether a text has the form of a JSON pointer (RFC 6901).
pub(crate) fn is_pointer(text: &str) -> bool {
    text.is_empty() || text.starts_with('/')
}

/// The keys of a JSON pointer, unescaped.
pub(crate) fn keys(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~"))
}
