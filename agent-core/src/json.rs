//! JSON that models write, and how its values compare.

use serde_json::Value;

/// The text inside a Markdown code fence, if the whole text is one, else the text, both without white space around it:
/// models without a schema mode wrap their JSON so.
///
/// ```
/// assert_eq!(agent_core::unfenced("```json\n{}\n```\n"), "{}");
/// assert_eq!(agent_core::unfenced("see ```{}```"), "see ```{}```");
/// ```
pub fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = || text.strip_prefix("```")?.strip_suffix("```")?.split_once('\n').map(|(_, body)| body.trim());
    inner().unwrap_or(text)
}

/// Whether two values are equal where numbers are numbers, in nested values too: `1` is `1.0`, which it is not for
/// [`Value`]'s own comparison. Models and programs write either.
///
/// ```
/// use serde_json::json;
///
/// assert!(agent_core::json_equal(&json!({ "a": [1] }), &json!({ "a": [1.0] })));
/// assert!(!agent_core::json_equal(&json!(9007199254740993_u64), &json!(9007199254740992_u64)));
/// ```
pub fn json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // Integers are compared as such: beyond 2^53 different ones are the same float.
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| json_equal(a, b)))
        }
        (a, b) => a == b,
    }
}
