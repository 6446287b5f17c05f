//! The form of an answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Free text.
    #[default]
    Text,
    /// JSON that a schema describes.
    JsonSchema {
        /// The schema's name, as services ask for one.
        name: String,
        /// The JSON Schema (draft 2020-12).
        schema: Value,
    },
}

impl Format {
    /// The JSON Schema of a type. Its properties are sorted by name, unless `serde_json` has its feature `preserve_order`:
    /// then they are in the order of the fields. Models mostly write them as they are ordered.
    pub fn of<T: JsonSchema>() -> Self {
        Self::JsonSchema { name: T::schema_name().into_owned(), schema: schemars::schema_for!(T).to_value() }
    }
}
