//! An answer that is to be JSON of a known form.

use agent_core::{Error, ErrorKind, Result, unfenced};
use async_trait::async_trait;
use jsonschema::{ValidationError, Validator};
use schemars::JsonSchema;
use serde_json::Value;

use crate::{LoopContext, LoopEvaluation, LoopEvaluator, text::cut};

/// How many violations a feedback lists.
const LISTED: usize = 20;
/// How many characters of each.
const VIOLATION: usize = 300;
/// How many characters of the schema are shown to a model that did not answer in JSON.
const SCHEMA: usize = 4_000;

/// `matches_schema`: satisfied when the last answer's text is JSON that matches a JSON Schema, a Markdown code fence
/// around it apart. The feedback lists what is wrong and where, by JSON pointers (RFC 6901), at most 20 violations.
///
/// A schema is of the draft that its `$schema` names, 2020-12 without one. Nothing is loaded over a network or from
/// files: a `$ref` leads into the schema itself. A schema that is none is an error when the evaluator is asked.
///
/// ```
/// use agent_loop::{LoopEvaluator, MatchesSchema};
/// use schemars::JsonSchema;
/// use serde_json::json;
///
/// #[derive(JsonSchema)]
/// struct Person {
///     name: String,
///     age: u8,
/// }
///
/// let by_type = MatchesSchema::of::<Person>();
/// let by_hand = MatchesSchema::new(json!({ "type": "array", "minItems": 3 }));
/// # assert_eq!(by_type.name(), by_hand.name());
/// ```
#[derive(Debug, Clone)]
pub struct MatchesSchema {
    schema: Value,
    validator: Result<Validator, String>,
}

impl MatchesSchema {
    /// Wants JSON that matches this schema.
    pub fn new(schema: impl Into<Value>) -> Self {
        let schema = schema.into();
        let validator = jsonschema::validator_for(&schema).map_err(|error| violation(&error, "the schema"));
        Self { schema, validator }
    }

    /// Wants JSON that is a `T`.
    pub fn of<T: JsonSchema>() -> Self {
        Self::new(schemars::schema_for!(T).to_value())
    }

    fn not_json(&self, error: &serde_json::Error) -> String {
        format!(
            "The answer is not JSON: {error}. Answer with JSON that matches this schema, and nothing else:\n\n{}",
            cut(&self.schema.to_string(), SCHEMA)
        )
    }
}

#[async_trait]
impl LoopEvaluator for MatchesSchema {
    fn name(&self) -> &'static str {
        "matches_schema"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let validator = self.validator.as_ref().map_err(|why| {
            let context = format!("match an answer to a schema that is no JSON Schema: {why}");
            Error::new(ErrorKind::Evaluator, context)
        })?;
        let text = cx.last.text();
        let answer: Value = match serde_json::from_str(unfenced(&text)) {
            Ok(answer) => answer,
            Err(error) => return Ok(LoopEvaluation::feedback(self.not_json(&error))),
        };
        let mut violations =
            validator.iter_errors(&answer).map(|error| format!("\n- {}", violation(&error, "the answer")));
        let listed: String = violations.by_ref().take(LISTED).collect();
        if listed.is_empty() {
            return Ok(LoopEvaluation::Satisfied);
        }
        let more = match violations.count() {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        Ok(LoopEvaluation::feedback(format!(
            "The answer does not match its JSON Schema:\n{listed}{more}\n\nAnswer with the corrected JSON and nothing \
             else."
        )))
    }
}

/// Where something is wrong, and what was expected; `whole` is what an empty pointer means.
fn violation(error: &ValidationError<'_>, whole: &str) -> String {
    let place = match error.instance_path().as_str() {
        "" => whole.to_owned(),
        pointer => format!("`{pointer}`"),
    };
    cut(&format!("{place}: {error}"), VIOLATION)
}
