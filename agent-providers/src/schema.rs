//! JSON Schema in the services' dialects.

use agent_core::Result;
use serde_json::Value;

/// A schema's name as services take it: letters, digits, `_` and `-`, 64 at most.
pub(crate) fn name(name: &str) -> String {
    let ok = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    name.chars().map(ok).take(64).collect()
}

pub(crate) fn strict(_provider: &str, schema: &Value) -> Result<Value> {
    Ok(schema.clone())
}
