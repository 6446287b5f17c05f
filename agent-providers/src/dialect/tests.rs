use serde_json::json;

use super::*;

const POOR: Dialect =
    Dialect { provider: "poor", restrictions: &["minItems 0 or 1"], formats: &["date"], features: &[] };

const RICH: Dialect = Dialect {
    provider: "rich",
    restrictions: &["minimum"],
    formats: &[],
    features: &[Feature::OpenObjects, Feature::AllOf, Feature::Tuples, Feature::AnyConstant, Feature::Recursion],
};

#[test]
fn optional_fields_stay_optional_and_what_is_lacking_moves_into_the_description() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "A name.", "minLength": 1, "pattern": "^a" },
            "day": { "type": ["string", "null"], "format": "date" },
            "site": { "type": ["string", "null"], "format": "uri", "default": null },
            "age": { "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255 },
            "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            "pairs": { "type": "array", "items": { "type": "string" }, "minItems": 2 },
            "color": { "type": ["string", "null"], "enum": ["red", "blue", null] },
            "kind": { "const": "a" },
            "next": { "$ref": "#/$defs/Next", "description": "The next." },
            "either": { "oneOf": [{ "type": "object", "additionalProperties": true }, { "type": "null" }] },
        },
        "required": ["name"],
        "$defs": { "Next": { "type": "object", "properties": { "n": { "type": "number" } } } },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "A name. (minLength: 1, pattern: \"^a\")" },
            "day": { "type": ["string", "null"], "format": "date" },
            "site": { "type": ["string", "null"], "description": "(format: \"uri\")" },
            "age": { "type": "integer", "description": "(maximum: 255, minimum: 0)" },
            "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            "pairs": { "type": "array", "items": { "type": "string" }, "description": "(minItems: 2)" },
            "color": { "anyOf": [{ "type": "string", "enum": ["red", "blue"] }, { "type": "null" }] },
            "kind": { "enum": ["a"] },
            "next": { "$ref": "#/$defs/Next" },
            "either": {
                "anyOf": [{ "type": "object", "properties": {}, "additionalProperties": false }, { "type": "null" }],
            },
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {
            "Next": { "type": "object", "properties": { "n": { "type": "number" } }, "additionalProperties": false },
        },
    });
    assert_eq!(POOR.schema(&schema).unwrap(), expected);
}

#[test]
fn what_a_dialect_knows_stays_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {
            "map": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "const": true }] },
            "both": { "allOf": [{ "$ref": "#/$defs/Node" }] },
        },
        "$defs": { "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } } },
    });
    assert_eq!(RICH.schema(&schema).unwrap(), schema);
}

#[test]
fn what_would_change_the_meaning_is_an_error_that_names_feature_and_place() {
    let node = json!({ "type": "object", "properties": { "next": { "anyOf": [{ "$ref": "#/$defs/Node" }] } } });
    let errors = [
        json!(true),
        json!({ "description": "anything" }),
        json!({ "properties": { "a": { "type": "array", "items": {} } } }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "allOf": [{ "type": "string" }] }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }] }),
        json!({ "const": true }),
        json!({ "if": { "type": "string" } }),
        json!({ "type": "object", "patternProperties": {} }),
        json!({ "$ref": "#/$defs/Node", "$defs": { "Node": node } }),
    ]
    .map(|schema| POOR.schema(&schema).unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"));
}
