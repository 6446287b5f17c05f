//! promptfoo.

use agent_core::{Result, StopReason};
use serde_json::{Map, Value, json};

use super::{Export, Exported, yaml};
use crate::{Budget, CheckSpec, EvalCase, EvalSet, Input, OneOrMany};

/// Exports a set as a promptfoo configuration: one prompt, and a test a case. Checks that have no counterpart there
/// are noted, one by one; providers are yours to add.
///
/// # Errors
/// If the text cannot be written.
pub fn promptfoo(set: &EvalSet) -> Result<Exported> {
    let mut export = Export::default();
    let says = ["tags", "expected", "budget", "checks", "metadata"];
    let mut tests = Vec::new();
    for mut case in export.cases(set, &says) {
        let Input::Text(said) = &case.input else { continue }; // noted already
        if said.contains("{{") || said.contains("{%") {
            export.note(&case, "its text has what promptfoo takes for template code");
        }
        if !case.tags.is_empty() {
            case.metadata.insert("tags".to_owned(), json!(case.tags));
        }
        let assertions = assertions(&mut export, &case);
        if assertions.is_empty() {
            export.note(&case, "nothing that promptfoo can check is left of it: it passes there whatever is answered");
        }
        let mut test = Map::from_iter([
            ("description".to_owned(), json!(case.id)),
            ("vars".to_owned(), json!({ "input": said })),
            ("assert".to_owned(), json!(assertions)),
        ]);
        if !case.metadata.is_empty() {
            test.insert("metadata".to_owned(), json!(case.metadata));
        }
        tests.push(Value::Object(test));
    }
    export.note_all("promptfoo compares whole answers with the white space at their ends; `providers` are to be added");
    let document = json!({ "description": set.description, "prompts": ["{{input}}"], "tests": tests });
    Ok(export.finish(yaml(&document)?))
}

fn assertions(export: &mut Export, case: &EvalCase) -> Vec<Value> {
    let expected = match case.expected.as_slice() {
        [] => None,
        [one] => Some(CheckSpec::Equals(OneOrMany::One(one.clone()))),
        several => Some(CheckSpec::Equals(OneOrMany::Many(several.to_vec()))),
    };
    let budget = case.budget.map(CheckSpec::Budget);
    let mut assertions = Vec::new();
    for check in expected.iter().chain(&budget).chain(&case.checks) {
        match assertion(check) {
            Some(assertion) => assertions.extend(assertion),
            None => export.note(case, format!("the check `{}` has no counterpart, and is left out", check.name())),
        }
    }
    assertions
}

/// One check as assertions that must all hold; none if promptfoo cannot say it, or not all of it.
fn assertion(check: &CheckSpec) -> Option<Vec<Value>> {
    let one = |kind: &str, value: Value| Some(vec![json!({ "type": kind, "value": value })]);
    match check {
        CheckSpec::Equals(OneOrMany::One(text)) => one("equals", json!(text)),
        CheckSpec::Equals(OneOrMany::Many(texts)) => {
            any_of(&texts.iter().map(|text| json!({ "type": "equals", "value": text })).collect::<Vec<_>>())
        }
        CheckSpec::Contains { all, any, none, ignore_case } => {
            let i = if *ignore_case { "i" } else { "" };
            let mut parts = Vec::new();
            match all.as_slice() {
                [] => (),
                [text] => parts.push(json!({ "type": format!("{i}contains"), "value": text })),
                texts => parts.push(json!({ "type": format!("{i}contains-all"), "value": texts })),
            }
            if !any.is_empty() {
                parts.push(json!({ "type": format!("{i}contains-any"), "value": any }));
            }
            parts.extend(none.iter().map(|text| json!({ "type": format!("not-{i}contains"), "value": text })));
            Some(parts)
        }
        CheckSpec::StartsWith(text) => one("starts-with", json!(text)),
        CheckSpec::Regex(regex) => one("regex", json!(regex)),
        CheckSpec::Json => Some(vec![json!({ "type": "is-json" })]),
        CheckSpec::JsonSchema(schema) => one("is-json", schema.clone()),
        CheckSpec::JsonPointer { pointer, value } if pointer.is_empty() && (value.is_object() || value.is_array()) => {
            one("equals", value.clone())
        }
        CheckSpec::Rouge1 { expected, at_least } => {
            Some(vec![json!({ "type": "rouge-n", "value": expected, "threshold": at_least })])
        }
        CheckSpec::Judge { rubric, repeats: None | Some(1) } => one("llm-rubric", json!(rubric)),
        CheckSpec::Budget(Budget { turns: None, tool_calls: None, tokens: None, wall_ms: Some(most) }) => {
            Some(vec![json!({ "type": "latency", "threshold": most })])
        }
        CheckSpec::Stop(stops) => match stops.as_slice() {
            [StopReason::Completed] => one("finish-reason", json!("stop")),
            [StopReason::Length] => one("finish-reason", json!("length")),
            [StopReason::Filtered] => one("finish-reason", json!("content_filter")),
            _ => None,
        },
        CheckSpec::Not(part) => match assertion(part)?.as_slice() {
            [part] => negated(part).map(|part| vec![part]),
            _ => None,
        },
        CheckSpec::AllOf(parts) => {
            let parts = parts.iter().map(assertion).collect::<Option<Vec<_>>>()?.concat();
            Some(vec![json!({ "type": "assert-set", "assert": parts })])
        }
        CheckSpec::AnyOf(parts) => {
            let parts = parts.iter().map(assertion).collect::<Option<Vec<_>>>()?;
            // Several assertions of one part must all hold: only single ones are counted right.
            if parts.iter().all(|part| part.len() == 1) { any_of(&parts.concat()) } else { None }
        }
        CheckSpec::EndsWith(_)
        | CheckSpec::JsonPointer { .. }
        | CheckSpec::Number { .. }
        | CheckSpec::EditSimilarity { .. }
        | CheckSpec::Calls(_)
        | CheckSpec::ForbiddenTools(_)
        | CheckSpec::AllowedTools(_)
        | CheckSpec::Budget(_)
        | CheckSpec::NoDuplicateCalls
        | CheckSpec::StateEquals(_)
        | CheckSpec::MaxIterations(_)
        | CheckSpec::Command { .. }
        | CheckSpec::Judge { .. }
        | CheckSpec::Custom { .. } => None,
    }
}

/// At least one holds: a set passes if the mean of its parts reaches its threshold.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn any_of(parts: &[Value]) -> Option<Vec<Value>> {
    if parts.is_empty() {
        return None;
    }
    let threshold = (1.0 / parts.len() as f64 * 1000.0).floor() / 1000.0;
    Some(vec![json!({ "type": "assert-set", "threshold": threshold, "assert": parts })])
}

fn negated(part: &Value) -> Option<Value> {
    let kind = part["type"].as_str()?;
    let kind = match kind.strip_prefix("not-") {
        Some(positive) => positive.to_owned(),
        None if kind == "assert-set" => return None,
        None => format!("not-{kind}"),
    };
    let mut part = part.clone();
    part["type"] = json!(kind);
    Some(part)
}
