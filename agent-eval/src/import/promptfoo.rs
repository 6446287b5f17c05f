//! promptfoo.

use agent_core::{Result, StopReason};
use serde_json::{Map, Value};

use super::{Import, Imported, case, field, list, not_of_the_format, shown, text_field, yaml};
use crate::{Budget, CheckSpec, Input, OneOrMany};

/// Imports a promptfoo configuration: each prompt with each test is a case. Assertions that have no counterpart here
/// are noted, one by one.
///
/// # Errors
/// A text that is no YAML (or JSON, if the file is named so), or no such configuration.
pub fn promptfoo(file: &str, text: &str) -> Result<Imported> {
    let mut import = Import::new(file);
    let root = yaml(file, text)?;
    text_field(&root, "description").unwrap_or_default().clone_into(&mut import.set.description);
    let prompts = match field(&root, "prompts") {
        Some(Value::Array(prompts)) => prompts.clone(),
        Some(prompt) => vec![prompt.clone()],
        None => return Err(not_of_the_format(file, "it has no `prompts`")),
    };
    let Some(tests) = field(&root, "tests").and_then(Value::as_array) else {
        return Err(not_of_the_format(file, "it has no list of `tests`"));
    };
    if field(&root, "scenarios").is_some() {
        import.note(None, "`scenarios` are left out");
    }
    let nothing = Value::Null;
    let defaults = field(&root, "default_test").unwrap_or(&nothing);
    for (number, prompt) in (1..).zip(&prompts) {
        let template = prompt.as_str().or_else(|| text_field(prompt, "raw"));
        let Some(template) = template.filter(|text| !text.starts_with("file://")) else {
            import.note(None, format!("prompt {number} is in another file, and is left out"));
            continue;
        };
        for test in tests {
            add(&mut import, template, (prompts.len() > 1).then_some(number), test, defaults);
        }
    }
    import.finish(file)
}

fn add(import: &mut Import, template: &str, prompt: Option<usize>, test: &Value, defaults: &Value) {
    if !test.is_object() {
        import.note(None, format!("the test {} is in another file, and is left out", shown(test)));
        return;
    }
    let own = text_field(test, "description").unwrap_or_default();
    let wanted = match prompt {
        Some(number) if !own.is_empty() => format!("{own} (prompt {number})"),
        Some(_) | None => own.to_owned(),
    };
    let id = import.id(Some(&wanted));
    let mut vars: Map<String, Value> = Map::new();
    for source in [defaults, test] {
        vars.extend(field(source, "vars").and_then(Value::as_object).cloned().unwrap_or_default());
    }
    for (name, value) in &vars {
        if value.is_array() || value.as_str().is_some_and(|text| text.starts_with("file://")) {
            import
                .note(Some(&id), format!("the variable `{name}` is a list or a file, and is put in as it is written"));
        }
    }
    let said = render(template, &vars);
    if said.contains("{{") || said.contains("{%") {
        import.note(Some(&id), "its prompt has template code that is left as it is written");
    }
    let mut new = case(&id, Input::Text(said));
    let specs = list(defaults, "assert").iter().chain(list(test, "assert"));
    new.checks = specs.filter_map(|spec| assertion(import, &id, spec, &vars)).collect();
    for name in ["threshold", "options", "provider"] {
        if field(test, name).or_else(|| field(defaults, name)).is_some() {
            import.note(Some(&id), format!("`{name}` of the test is left out"));
        }
    }
    new.metadata = field(test, "metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    import.add(new);
}

/// Puts the variables in for `{{name}}`.
fn render(template: &str, vars: &Map<String, Value>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, (name, after))) = rest.split_once("{{").and_then(|(a, b)| Some((a, b.split_once("}}")?))) {
        text += before;
        match vars.get(name.trim()) {
            Some(value) => text += &shown(value),
            None => text.extend(["{{", name, "}}"]),
        }
        rest = after;
    }
    text + rest
}

fn assertion(import: &mut Import, id: &str, spec: &Value, vars: &Map<String, Value>) -> Option<CheckSpec> {
    let kind = text_field(spec, "type").unwrap_or_default();
    let mut leave_out = |why: &str| import.note(Some(id), format!("the assertion `{kind}` {why}, and is left out"));
    if field(spec, "weight").and_then(Value::as_f64) == Some(0.0) {
        leave_out("has weight 0");
        return None;
    }
    if field(spec, "transform").is_some() {
        leave_out("transforms the answer");
        return None;
    }
    let value = field(spec, "value").map(|value| rendered(value, vars)).unwrap_or_default();
    if value.as_str().is_some_and(|text| text.starts_with("file://")) {
        leave_out("is in another file");
        return None;
    }
    let (positive, negated) = match kind.strip_prefix("not-") {
        Some(positive) => (positive, true),
        None => (kind, false),
    };
    if positive == "assert-set" {
        if field(spec, "threshold").is_some() {
            leave_out("needs only some of its parts");
            return None;
        }
        let parts: Vec<_> = list(spec, "assert").iter().filter_map(|part| assertion(import, id, part, vars)).collect();
        return (!parts.is_empty()).then_some(CheckSpec::AllOf(parts));
    }
    let threshold = field(spec, "threshold").and_then(Value::as_f64);
    let Some(check) = check(positive, &value, threshold) else {
        leave_out("has no counterpart");
        return None;
    };
    Some(if negated { CheckSpec::Not(Box::new(check)) } else { check })
}

fn rendered(value: &Value, vars: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => Value::String(render(text, vars)),
        Value::Array(items) => items.iter().map(|item| rendered(item, vars)).collect(),
        other => other.clone(),
    }
}

fn check(kind: &str, value: &Value, threshold: Option<f64>) -> Option<CheckSpec> {
    let text = || (!value.is_null()).then(|| shown(value));
    let texts = || match value {
        Value::Array(items) => Some(items.iter().map(shown).collect::<Vec<_>>()),
        Value::String(text) => Some(text.split(',').map(|text| text.trim().to_owned()).collect()),
        _ => None,
    };
    let (plain, ignore_case) = match kind.strip_prefix('i') {
        Some(plain) if plain.starts_with("contains") => (plain, true),
        Some(_) | None => (kind, false),
    };
    let contains = |all: Vec<String>, any: Vec<String>| CheckSpec::Contains { all, any, none: Vec::new(), ignore_case };
    Some(match plain {
        "equals" if value.is_object() || value.is_array() => {
            CheckSpec::JsonPointer { pointer: String::new(), value: value.clone() }
        }
        "equals" => CheckSpec::Equals(OneOrMany::One(text()?)),
        "contains" => contains(vec![text()?], Vec::new()),
        "contains-all" => contains(texts()?, Vec::new()),
        "contains-any" => contains(Vec::new(), texts()?),
        "starts-with" => CheckSpec::StartsWith(text()?),
        "regex" => CheckSpec::Regex(text()?),
        "is-json" if value.is_object() => CheckSpec::JsonSchema(value.clone()),
        "is-json" if value.is_null() => CheckSpec::Json,
        "llm-rubric" => CheckSpec::Judge { rubric: text()?, repeats: None },
        "rouge-n" => CheckSpec::Rouge1 { expected: text()?, at_least: threshold.unwrap_or(0.75) },
        "latency" => CheckSpec::Budget(Budget { wall_ms: Some(whole(threshold?)?), ..Budget::default() }),
        "finish-reason" => CheckSpec::Stop(vec![match value.as_str()? {
            "stop" => StopReason::Completed,
            "length" => StopReason::Length,
            "content_filter" => StopReason::Filtered,
            _ => return None,
        }]),
        _ => return None,
    })
}

/// Milliseconds without their fraction.
pub(super) fn whole(number: f64) -> Option<u64> {
    format!("{number:.0}").parse().ok()
}
