//! Checks of an answer that is JSON, and of numbers in it.

use std::sync::LazyLock;

use agent_core::{Result, json_equal};
use regex::Regex;
use serde_json::Value;

use super::{BuiltCheck, build::invalid, text::quote};
use crate::{CheckContext, Outcome, json, text::cut};

/// How many violations of a schema are listed, and how many characters of each.
const LISTED: usize = 20;
const VIOLATION: usize = 300;

fn with_answer(cx: &CheckContext<'_>, judge: impl FnOnce(Value) -> Outcome) -> Outcome {
    match json::read(cx.answer) {
        Ok(answer) => judge(answer),
        Err(error) => Outcome::fail(format!("the answer is not JSON: {error}: {}", quote(cx.answer))),
    }
}

pub(super) fn is_json() -> BuiltCheck {
    BuiltCheck::of("json", |cx| with_answer(cx, |_| Outcome::pass()))
}

pub(super) fn schema(schema: &Value) -> Result<BuiltCheck> {
    if !schema.is_object() {
        return Err(invalid("a JSON Schema is an object"));
    }
    let validator = jsonschema::validator_for(schema).map_err(|error| invalid(format!("no JSON Schema: {error}")))?;
    Ok(BuiltCheck::of("json_schema", move |cx| {
        with_answer(cx, |answer| {
            let violations = validator.iter_errors(&answer).map(|error| {
                let pointer = error.instance_path().to_string();
                let place = if pointer.is_empty() { String::new() } else { format!("`{pointer}`: ") };
                cut(&format!("{place}{error}"), VIOLATION)
            });
            let violations: Vec<String> = violations.take(LISTED).collect();
            Outcome::of(violations.is_empty(), || {
                format!("the answer does not match its schema: {}", violations.join("; "))
            })
        })
    }))
}

pub(super) fn pointer(pointer: &str, value: &Value) -> Result<BuiltCheck> {
    let (pointer, value) = (checked(pointer)?, value.clone());
    Ok(BuiltCheck::of("json_pointer", move |cx| {
        with_answer(cx, |answer| match answer.pointer(&pointer) {
            Some(found) => {
                Outcome::of(json_equal(found, &value), || format!("`{pointer}` is {found}; expected is {value}"))
            }
            None => Outcome::fail(format!("the answer has nothing at `{pointer}`; expected is {value}")),
        })
    }))
}

fn checked(pointer: &str) -> Result<String> {
    if json::is_pointer(pointer) {
        Ok(pointer.to_owned())
    } else {
        Err(invalid(format!("`{pointer}` is no JSON pointer (RFC 6901); write `/{pointer}`")))
    }
}

pub(super) fn number(value: f64, tolerance: f64, pointer: Option<&str>) -> Result<BuiltCheck> {
    if !(tolerance >= 0.0 && value.is_finite()) {
        return Err(invalid(format!("{value} ± {tolerance} is no range; the tolerance must not be negative")));
    }
    let pointer = pointer.map(checked).transpose()?;
    let near = move |found: f64| {
        Outcome::of((found - value).abs() <= tolerance, || {
            format!("the number is {found}; expected is {value} ± {tolerance}")
        })
    };
    Ok(BuiltCheck::of("number", move |cx| match &pointer {
        Some(pointer) => with_answer(cx, |answer| match answer.pointer(pointer).and_then(Value::as_f64) {
            Some(found) => near(found),
            None => Outcome::fail(format!("the answer has no number at `{pointer}`")),
        }),
        None => match last_number(cx.answer) {
            Some(found) => near(found),
            None => Outcome::fail(format!("the answer has no number: {}", quote(cx.answer))),
        },
    }))
}

/// The last number of a text; commas between groups of three digits are part of it.
fn last_number(text: &str) -> Option<f64> {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?").expect("a regular expression")
    });
    NUMBER.find_iter(text).last()?.as_str().replace(',', "").parse().ok()
}
