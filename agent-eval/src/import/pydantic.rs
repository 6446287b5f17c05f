//! pydantic-evals.

use agent_core::Result;
use serde_json::Value;

use super::{Import, Imported, case, field, list, not_of_the_format, promptfoo::whole, shown, text_field, yaml};
use crate::{Budget, CheckSpec, EvalCase, Input, OneOrMany, text::listed};

/// Imports a pydantic-evals data set. Inputs that are no text are said as JSON.
///
/// # Errors
/// A text that is no YAML (or JSON, if the file is named so), or no such data set.
pub fn pydantic(file: &str, text: &str) -> Result<Imported> {
    let mut import = Import::new(file);
    let root = yaml(file, text)?;
    if let Some(name) = text_field(&root, "name") {
        import.name(name);
    }
    let Some(cases) = field(&root, "cases").and_then(Value::as_array) else {
        return Err(not_of_the_format(file, "it has no list of `cases`"));
    };
    for item in cases {
        let id = import.id(text_field(item, "name"));
        let inputs = field(item, "inputs").map(shown).unwrap_or_default();
        let mut new = case(&id, Input::Text(inputs));
        match field(item, "metadata") {
            Some(Value::Object(metadata)) => new.metadata.clone_from(metadata),
            Some(metadata) => drop(new.metadata.insert("metadata".to_owned(), metadata.clone())),
            None => (),
        }
        let expected = field(item, "expected_output");
        let mut compared = false;
        for evaluator in list(&root, "evaluators").iter().chain(list(item, "evaluators")) {
            compared |= add(&mut import, &mut new, evaluator, expected);
        }
        if let (Some(expected), false) = (expected, compared) {
            // Nobody compares it: it is material for custom evaluators.
            new.metadata.insert("expected_output".to_owned(), expected.clone());
        }
        import.add(new);
    }
    import.finish(file)
}

/// Adds an evaluator: `Name`, `Name: argument` or `Name: {arguments}`. True if it compares with the expected output.
fn add(import: &mut Import, case: &mut EvalCase, evaluator: &Value, expected: Option<&Value>) -> bool {
    let nothing = Value::Null;
    let (name, arguments) = match evaluator {
        Value::Object(one) => match one.iter().next() {
            Some((name, arguments)) => (name.as_str(), arguments),
            None => return false,
        },
        other => (other.as_str().unwrap_or_default(), &nothing),
    };
    let argument = |key: &str| if arguments.is_object() { field(arguments, key) } else { Some(arguments) };
    let check = match name {
        "EqualsExpected" => match expected {
            Some(Value::String(text)) => {
                case.expected = vec![text.clone()];
                return true;
            }
            Some(value) => Some(equal(value)),
            None => return false,
        },
        "Equals" => argument("value").map(equal),
        "Contains" => argument("value").filter(|value| value.is_string()).map(|value| {
            let ignore_case = field(arguments, "case_sensitive").and_then(Value::as_bool) == Some(false);
            CheckSpec::Contains { all: vec![shown(value)], any: Vec::new(), none: Vec::new(), ignore_case }
        }),
        "MaxDuration" => argument("seconds")
            .and_then(Value::as_f64)
            .and_then(|seconds| whole(seconds * 1000.0))
            .map(|wall| CheckSpec::Budget(Budget { wall_ms: Some(wall), ..Budget::default() })),
        "LLMJudge" => argument("rubric")
            .and_then(Value::as_str)
            .map(|rubric| CheckSpec::Judge { rubric: rubric.to_owned(), repeats: None }),
        _ => None,
    };
    let known = ["value", "case_sensitive", "seconds", "rubric", "evaluation_name"];
    let other =
        arguments.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| !known.contains(&key.as_str()));
    let other: Vec<&String> = other.collect();
    if check.is_some() && !other.is_empty() {
        import.note(Some(&case.id), format!("of the evaluator `{name}` are left out: {}", listed(other)));
    }
    match check {
        Some(check) => case.checks.push(check),
        None => import.note(Some(&case.id), format!("the evaluator `{name}` has no counterpart, and is left out")),
    }
    name == "EqualsExpected"
}

fn equal(value: &Value) -> CheckSpec {
    match value {
        Value::String(text) => CheckSpec::Equals(OneOrMany::One(text.clone())),
        value => CheckSpec::JsonPointer { pointer: String::new(), value: value.clone() },
    }
}
