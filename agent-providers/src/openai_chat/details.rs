//! OpenRouter's `reasoning_details`: thoughts that are to be sent back as they came.
//!
//! Source: <https://openrouter.ai/docs/use-cases/reasoning-tokens>.

use serde_json::Value;

/// Adds a piece to the details so far: what continues the last one (same type, same index) is joined to it.
pub(super) fn add(details: &mut Vec<Value>, mut piece: Value) {
    const STREAMED: [&str; 3] = ["text", "summary", "data"];
    let continues = |last: &&mut Value| last["type"] == piece["type"] && last["index"] == piece["index"];
    let Some(last) = details.last_mut().filter(continues) else {
        details.push(piece);
        return;
    };
    let (Value::Object(last), Value::Object(piece)) = (last, &mut piece) else { return };
    for (key, value) in std::mem::take(piece) {
        match (last.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if STREAMED.contains(&key.as_str()) => {
                text.push_str(&more);
            }
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}
