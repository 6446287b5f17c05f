//! Fields of a request.

use serde_json::{Map, Value};

pub(crate) trait Fields {
    /// Sets a field, if there is a value.
    fn put(&mut self, key: &str, value: Option<impl Into<Value>>);
}

impl Fields for Map<String, Value> {
    fn put(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.insert(key.into(), value.into());
        }
    }
}

/// Puts the caller's `extra` into a request: objects are merged, whatever else is there is replaced.
pub(crate) fn merge(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (Some(Value::Object(there)), Value::Object(more)) => merge(there, more),
            (_, value) => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn objects_are_merged_and_all_else_is_replaced() {
        let mut body = json!({ "options": { "seed": 1, "stop": ["a"] }, "think": true });
        let extra = json!({ "options": { "num_ctx": 8192, "stop": ["b"] }, "think": false, "keep_alive": "1h" });
        super::merge(body.as_object_mut().unwrap(), extra.as_object().unwrap());
        let merged = json!({
            "options": { "seed": 1, "stop": ["b"], "num_ctx": 8192 }, "think": false, "keep_alive": "1h",
        });
        assert_eq!(body, merged);
    }
}
