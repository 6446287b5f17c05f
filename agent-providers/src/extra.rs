//! Fields of a service's own.

use serde_json::{Map, Value};

/// Puts `extra` into a request: objects are merged, whatever else is there is replaced.
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
