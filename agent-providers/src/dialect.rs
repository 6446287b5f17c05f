//! JSON Schema for services that know a part of it.

use agent_core::{Error, Result};
use serde_json::{Map, Value, json};

use crate::unsupported::unsupported;

#[cfg(test)]
mod tests;

/// The part of JSON Schema that a service knows. Restrictions of values that it lacks move into the description, where
/// the model reads them; words that only comment are left out; what would change the meaning is an error that names
/// feature and place.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The service's name.
    pub(crate) provider: &'static str,
    /// The restrictions of values that it knows.
    pub(crate) restrictions: &'static [&'static str],
    /// The formats of strings that it knows.
    pub(crate) formats: &'static [&'static str],
    /// The features that it knows.
    pub(crate) features: &'static [Feature],
}

/// What not every service knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Objects that are not closed: maps among them.
    OpenObjects,
    /// `allOf`.
    AllOf,
    /// `prefixItems`.
    Tuples,
    /// `const`, and in `enum` more than strings and numbers.
    AnyConstant,
    /// A schema that refers to itself.
    Recursion,
}

/// Words that restrict values, and can be said in prose as well.
const RESTRICTIONS: [&str; 15] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
    "contentMediaType",
];

/// Words that only comment.
const COMMENTS: [&str; 9] =
    ["$schema", "$id", "$comment", "$anchor", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// The longest chain of references that is no circle.
const DEEPEST: usize = 64;

impl Dialect {
    /// The schema as the service takes it.
    pub(crate) fn schema(&self, schema: &Value) -> Result<Value> {
        if !self.has(Feature::Recursion) && is_circular(schema, schema, &mut Vec::new()) {
            return Err(self.lacks("a reference to itself", "#"));
        }
        self.rewrite(schema, "#")
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    fn rewrite(&self, schema: &Value, at: &str) -> Result<Value> {
        let Value::Object(schema) = schema else { return Err(self.lacks("a schema that allows anything", at)) };
        let mut out = Map::new();
        let mut prose = Map::new();
        let is_reference = schema.contains_key("$ref");
        for (key, value) in schema {
            let below = || format!("{at}/{key}");
            let value = match key.as_str() {
                "$defs" | "definitions" => self.each_named(value, &below())?,
                "$ref" => value.clone(),
                // Services take nothing else beside a reference.
                _ if is_reference => continue,
                "type" | "title" | "description" | "required" => value.clone(),
                "properties" => self.each_named(value, &below())?,
                "items" => self.rewrite(value, &below())?,
                "anyOf" | "oneOf" => {
                    out.insert("anyOf".into(), self.each(value, &below())?);
                    continue;
                }
                "allOf" if self.has(Feature::AllOf) => self.each(value, &below())?,
                "prefixItems" if self.has(Feature::Tuples) => self.each(value, &below())?,
                "const" if self.has(Feature::AnyConstant) => value.clone(),
                "const" => {
                    out.insert("enum".into(), json!([self.constant(value, &below())?]));
                    continue;
                }
                "enum" => self.constants(value, &below())?,
                "additionalProperties" => match value {
                    Value::Bool(_) if !self.has(Feature::OpenObjects) => continue,
                    Value::Bool(_) => value.clone(),
                    _ if !self.has(Feature::OpenObjects) => {
                        return Err(self.lacks("`additionalProperties` (a map; use a list of pairs)", at));
                    }
                    of => self.rewrite(of, &below())?,
                },
                "format" if value.as_str().is_some_and(|format| self.formats.contains(&format)) => value.clone(),
                "format" => {
                    // A number's format is its width, which the model need not know.
                    if schema.get("type").is_none_or(|kind| is_of(kind, "string")) {
                        prose.insert(key.clone(), value.clone());
                    }
                    continue;
                }
                "minItems"
                    if self.restrictions.contains(&"minItems 0 or 1") && matches!(value.as_u64(), Some(0 | 1)) =>
                {
                    value.clone()
                }
                word if self.restrictions.contains(&word) => value.clone(),
                word if RESTRICTIONS.contains(&word) => {
                    prose.insert(key.clone(), value.clone());
                    continue;
                }
                word if COMMENTS.contains(&word) || word.starts_with("x-") => continue,
                word => return Err(self.lacks(&format!("`{word}`"), at)),
            };
            out.insert(key.clone(), value);
        }
        if !self.has(Feature::OpenObjects) && is_object(schema) && !is_reference {
            out.entry("properties").or_insert_with(|| json!({}));
            out.insert("additionalProperties".into(), false.into());
        }
        if out.keys().all(|key| matches!(key.as_str(), "description" | "title")) {
            return Err(self.lacks("a schema that allows anything", at));
        }
        describe(&mut out, &prose);
        split_null(&mut out);
        Ok(Value::Object(out))
    }

    fn each(&self, schemas: &Value, at: &str) -> Result<Value> {
        let schemas = schemas.as_array().into_iter().flatten().enumerate();
        schemas.map(|(n, schema)| self.rewrite(schema, &format!("{at}/{n}"))).collect()
    }

    fn each_named(&self, schemas: &Value, at: &str) -> Result<Value> {
        let schemas = schemas.as_object().into_iter().flatten();
        let schemas = schemas.map(|(name, schema)| Ok((name.clone(), self.rewrite(schema, &format!("{at}/{name}"))?)));
        schemas.collect::<Result<Map<_, _>>>().map(Value::Object)
    }

    fn constants(&self, values: &Value, at: &str) -> Result<Value> {
        if self.has(Feature::AnyConstant) {
            return Ok(values.clone());
        }
        let values = values.as_array().into_iter().flatten();
        values.map(|value| if value.is_null() { Ok(Value::Null) } else { self.constant(value, at) }).collect()
    }

    fn constant(&self, value: &Value, at: &str) -> Result<Value> {
        match value {
            Value::String(_) | Value::Number(_) => Ok(value.clone()),
            _ => Err(self.lacks("a constant that is neither string nor number", at)),
        }
    }

    fn lacks(&self, feature: &str, at: &str) -> Error {
        unsupported(self.provider, &format!("a JSON Schema with {feature}, at {at}"))
    }
}

/// Says in the description what the dialect cannot.
fn describe(schema: &mut Map<String, Value>, restrictions: &Map<String, Value>) {
    if restrictions.is_empty() {
        return;
    }
    let restrictions =
        restrictions.iter().map(|(word, value)| format!("{word}: {value}")).collect::<Vec<_>>().join(", ");
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} ({restrictions})"),
        None => format!("({restrictions})"),
    };
    schema.insert("description".into(), text.into());
}

/// An `enum` with `null` among others becomes a choice, which every dialect knows.
fn split_null(schema: &mut Map<String, Value>) {
    let Some(Value::Array(values)) = schema.get("enum") else { return };
    if schema.contains_key("anyOf") || !values.contains(&Value::Null) || values.len() < 2 {
        return;
    }
    let others = values.iter().filter(|value| !value.is_null()).cloned().collect::<Vec<_>>();
    let mut one = Map::from_iter([("enum".to_owned(), Value::Array(others))]);
    let kinds = schema.remove("type");
    let kind = kinds.as_ref().and_then(Value::as_array).into_iter().flatten().find(|kind| *kind != "null");
    one.extend(kind.map(|kind| ("type".to_owned(), kind.clone())));
    schema.remove("enum");
    schema.insert("anyOf".into(), json!([one, { "type": "null" }]));
}

/// Whether following references from here comes back to one that is being followed.
fn is_circular(schema: &Value, root: &Value, path: &mut Vec<String>) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(|item| is_circular(item, root, path)),
        Value::Object(words) => words.iter().any(|(word, value)| match (word.as_str(), value) {
            ("$defs" | "definitions", _) => false,
            ("$ref", Value::String(target)) => {
                if path.contains(target) || path.len() >= DEEPEST {
                    return true;
                }
                let Some(schema) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else {
                    return false;
                };
                path.push(target.clone());
                let circular = is_circular(schema, root, path);
                path.pop();
                circular
            }
            (_, value) => is_circular(value, root, path),
        }),
        _ => false,
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(kind) => is_of(kind, "object"),
        None => schema.contains_key("properties"),
    }
}

/// Whether a schema's `type`, one or a list, has this one.
fn is_of(kind: &Value, name: &str) -> bool {
    kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}
