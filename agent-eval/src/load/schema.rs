//! The files' JSON Schemas, for editors.

use schemars::schema_for;
use serde_json::Value;

use crate::{EvalCase, EvalSet};

/// The JSON Schema of a set's file; `schemas/eval-set.json` of this crate has it for editors.
pub fn set_schema() -> Value {
    schema_for!(EvalSet).to_value()
}

/// The JSON Schema of a case: a file in a set's folder, or a line of a JSONL file; `schemas/eval-case.json`.
pub fn case_schema() -> Value {
    schema_for!(EvalCase).to_value()
}
