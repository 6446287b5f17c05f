//! JSON Schema in the services' dialects.

use agent_core::Result;
use serde_json::{Map, Value};

use crate::unsupported::unsupported;

/// A schema's name as services take it: letters, digits, `_` and `-`, 64 at most.
pub(crate) fn name(name: &str) -> String {
    let ok = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    if name.is_empty() { "answer".into() } else { name.chars().map(ok).take(64).collect() }
}

/// A schema in OpenAI's strict dialect: what is valid by it is valid by the original.
///
/// Every property becomes required and every object closed; a property that may be absent is asked for all the same
/// (an `Option` is `null` then). `oneOf` becomes `anyOf`. Words that only comment are left out where the service
/// refuses them; features that it lacks are an error that names feature and place.
///
/// Source: <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
pub(crate) fn strict(provider: &str, schema: &Value) -> Result<Value> {
    let schema = Strict { provider }.schema(schema, "#")?;
    if schema["type"] == "object" {
        return Ok(schema);
    }
    Err(unsupported(provider, "a JSON Schema whose root is no object; put it into a field of a struct"))
}

struct Strict<'a> {
    provider: &'a str,
}

/// The features that the dialect lacks.
const LACKING: [&str; 20] = [
    "allOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "maxLength",
    "maxProperties",
    "minContains",
    "minLength",
    "minProperties",
    "not",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// The formats of strings that the dialect has; others only comment.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

impl Strict<'_> {
    fn schema(&self, schema: &Value, at: &str) -> Result<Value> {
        let Value::Object(schema) = schema else { return Err(self.lacks("a schema that allows anything", at)) };
        if let Some(target) = schema.get("$ref") {
            // The service takes nothing beside a reference; what schemars puts there are descriptions and defaults.
            return Ok(Value::Object(Map::from_iter([("$ref".to_owned(), target.clone())])));
        }
        if let Some(feature) = LACKING.iter().find(|feature| schema.contains_key(**feature)) {
            return Err(self.lacks(&format!("`{feature}`"), at));
        }
        let mut out = Map::new();
        for (key, value) in schema {
            match key.as_str() {
                "$schema" | "default" | "examples" | "required" | "additionalProperties" => {}
                "format" if !value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {}
                "properties" | "$defs" | "definitions" => {
                    out.insert(key.clone(), self.each_named(value, &format!("{at}/{key}"))?);
                }
                "anyOf" | "oneOf" => {
                    out.insert("anyOf".into(), self.each(value, &format!("{at}/{key}"))?);
                }
                "items" => {
                    out.insert(key.clone(), self.schema(value, &format!("{at}/items"))?);
                }
                _ => {
                    out.insert(key.clone(), value.clone());
                }
            }
        }
        if is_object(schema) {
            self.close(schema, &mut out, at)?;
        } else if out.keys().all(|key| matches!(key.as_str(), "description" | "title")) {
            return Err(self.lacks("a schema that allows anything", at));
        }
        Ok(Value::Object(out))
    }

    /// Makes an object of known properties, all of which are there.
    fn close(&self, schema: &Map<String, Value>, out: &mut Map<String, Value>, at: &str) -> Result<()> {
        match schema.get("additionalProperties") {
            None | Some(Value::Bool(_)) => {}
            Some(_) => return Err(self.lacks("`additionalProperties` (a map; use a list of pairs)", at)),
        }
        let properties = out.entry("properties").or_insert_with(|| Map::new().into());
        let names = properties.as_object().map(|properties| properties.keys().cloned().map(Value::from).collect());
        out.insert("required".into(), Value::Array(names.unwrap_or_default()));
        out.insert("additionalProperties".into(), false.into());
        Ok(())
    }

    fn each(&self, schemas: &Value, at: &str) -> Result<Value> {
        let schemas = schemas.as_array().into_iter().flatten().enumerate();
        schemas.map(|(n, schema)| self.schema(schema, &format!("{at}/{n}"))).collect()
    }

    fn each_named(&self, schemas: &Value, at: &str) -> Result<Value> {
        let mut out = Map::new();
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            out.insert(name.clone(), self.schema(schema, &format!("{at}/{name}"))?);
        }
        Ok(Value::Object(out))
    }

    fn lacks(&self, feature: &str, at: &str) -> agent_core::Error {
        unsupported(self.provider, &format!("a JSON Schema with {feature}, at {at}"))
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => schema.contains_key("properties"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agent_core::Format;
    use schemars::JsonSchema;

    use super::*;

    fn strict_of<T: JsonSchema>() -> Result<Value> {
        let Format::JsonSchema { schema, .. } = Format::of::<T>() else { panic!("a type has a schema") };
        strict("openai", &schema)
    }

    /// A report.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Report {
        title: String,
        /// How sure, in percent.
        confidence: Option<u8>,
        #[schemars(default)]
        draft: bool,
        findings: Vec<Finding>,
        next: Option<Box<Finding>>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Finding {
        severity: Severity,
        place: Place,
        because_of: Vec<Finding>,
        at: (),
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    enum Severity {
        Low,
        High,
    }

    #[derive(JsonSchema)]
    #[serde(tag = "kind")]
    #[expect(dead_code, reason = "only the schema is of interest")]
    enum Place {
        /// In a file.
        File {
            path: String,
            line: Option<u32>,
        },
        Unknown,
    }

    #[test]
    fn optional_fields_nested_objects_enums_and_arrays_are_in_the_dialect() {
        insta::assert_json_snapshot!(strict_of::<Report>().unwrap());
    }

    #[test]
    fn a_feature_that_the_dialect_lacks_is_named_with_its_place() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is of interest")]
        struct WithMap {
            counts: BTreeMap<String, u32>,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is of interest")]
        struct WithPair {
            pairs: Vec<(u32, String)>,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is of interest")]
        struct WithAnything {
            value: Value,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is of interest")]
        struct WithLength {
            #[schemars(length(max = 3))]
            code: String,
        }
        let all = [
            strict_of::<WithMap>(),
            strict_of::<WithPair>(),
            strict_of::<WithAnything>(),
            strict_of::<WithLength>(),
            strict_of::<Vec<u32>>(),
        ];
        let errors = all.map(|schema| schema.unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn a_name_is_of_letters_that_services_take() {
        assert_eq!(name("Vec<Müsli>"), "Vec_M_sli_");
        assert_eq!(name(&"x".repeat(70)).len(), 64);
        assert_eq!(name(""), "answer");
    }
}
