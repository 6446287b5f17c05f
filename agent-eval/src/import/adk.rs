//! Google's Agent Development Kit.

use std::collections::BTreeMap;

use agent_core::Result;
use serde_json::{Map, Value};

use super::{Import, Imported, case, field, json, list, not_of_the_format, shown, text_field};
use crate::{ArgumentMode, CallMode, CheckSpec, ExpectedCall, ExpectedCalls, Input, Turn};

/// What is looked at: by default the calls exactly, and ROUGE-1 of the answer from 0.8 on.
struct Criteria {
    calls: Option<CallMode>,
    response: Option<f64>,
}

/// Imports an ADK set: an `.evalset.json`, or an older `.test.json`, in camel case or snake case. `config` is the text
/// of the `test_config.json` that belongs to it.
///
/// # Errors
/// A text that is no JSON, or no such set.
pub fn adk(file: &str, text: &str, config: Option<&str>) -> Result<Imported> {
    let mut import = Import::new(file);
    let root = json(file, text)?;
    let criteria = match config {
        Some(config) => read_criteria(&mut import, &json("test_config.json", config)?),
        None => Criteria { calls: Some(CallMode::Exact), response: Some(0.8) },
    };
    if let Some(cases) = field(&root, "eval_cases").and_then(Value::as_array) {
        if let Some(name) = text_field(&root, "eval_set_id") {
            import.name(name);
        }
        text_field(&root, "description").unwrap_or_default().clone_into(&mut import.set.description);
        for case in cases {
            add(&mut import, case, &criteria);
        }
    } else if let Some(list) = root.as_array() {
        if list.iter().any(|item| item.get("query").is_some()) {
            add_old(&mut import, None, list, None, &criteria);
        } else {
            for item in list {
                let turns = super::list(item, "data");
                add_old(&mut import, text_field(item, "name"), turns, field(item, "initial_session"), &criteria);
            }
        }
    } else {
        return Err(not_of_the_format(file, "it has neither `eval_cases` nor a list of queries"));
    }
    import.finish(file)
}

fn read_criteria(import: &mut Import, config: &Value) -> Criteria {
    let mut criteria = Criteria { calls: None, response: None };
    for (name, value) in field(config, "criteria").and_then(Value::as_object).into_iter().flatten() {
        let threshold = value.as_f64().or_else(|| field(value, "threshold")?.as_f64());
        match name.as_str() {
            "tool_trajectory_avg_score" => {
                let kind = field(value, "match_type").map(shown).unwrap_or_default();
                criteria.calls = Some(match kind.to_uppercase().as_str() {
                    "IN_ORDER" | "1" => CallMode::InOrder,
                    // Others may be made too.
                    "ANY_ORDER" | "2" => CallMode::Superset,
                    _ => CallMode::Exact,
                });
                if threshold.is_some_and(|threshold| threshold < 1.0) {
                    let what = "`tool_trajectory_avg_score` below 1 is an average over turns; every turn's calls must match here";
                    import.note(None, what);
                }
            }
            "response_match_score" => match threshold {
                Some(threshold) if threshold > 0.0 => criteria.response = Some(threshold),
                Some(_) | None => {
                    import.note(None, "`response_match_score` without a threshold above 0 checks nothing");
                }
            },
            other => import.note(None, format!("the criterion `{other}` has no counterpart; write a `judge` check")),
        }
    }
    criteria
}

fn add(import: &mut Import, item: &Value, criteria: &Criteria) {
    let id = import.id(text_field(item, "eval_id"));
    let mut turns = Vec::new();
    for invocation in list(item, "conversation") {
        let said = parts_text(import, &id, field(invocation, "user_content"));
        let answer = parts_text(import, &id, field(invocation, "final_response"));
        let calls = field(invocation, "intermediate_data").map(|data| calls(import, &id, data)).unwrap_or_default();
        turns.push(turn(criteria, said, &answer, calls));
    }
    for name in ["conversation_scenario", "rubrics", "final_session_state"] {
        let of_a_turn = list(item, "conversation").iter().any(|invocation| field(invocation, name).is_some());
        if of_a_turn || field(item, name).is_some() {
            import.note(Some(&id), format!("`{name}` is left out"));
        }
    }
    let state = field(item, "session_input").and_then(|session| field(session, "state"));
    finish(import, id, turns, state);
}

fn add_old(import: &mut Import, name: Option<&str>, data: &[Value], session: Option<&Value>, criteria: &Criteria) {
    let id = import.id(name);
    let mut turns = Vec::new();
    for item in data {
        let calls = list(item, "expected_tool_use").iter().map(|call| {
            let arguments = field(call, "tool_input").and_then(Value::as_object).cloned().unwrap_or_default();
            (text_field(call, "tool_name").unwrap_or_default().to_owned(), arguments)
        });
        let said = text_field(item, "query").unwrap_or_default().to_owned();
        turns.push(turn(criteria, said, text_field(item, "reference").unwrap_or_default(), calls.collect()));
        if !list(item, "expected_intermediate_agent_responses").is_empty() {
            import.note(Some(&id), "`expected_intermediate_agent_responses` are left out");
        }
    }
    finish(import, id, turns, session.and_then(|session| field(session, "state")));
}

fn finish(import: &mut Import, id: String, turns: Vec<Turn>, state: Option<&Value>) {
    if turns.is_empty() {
        import.note(Some(&id), "it says nothing to the agent, and is left out");
        return;
    }
    if turns.len() > 1 && turns.iter().any(|turn| !turn.checks.is_empty()) {
        import.note(Some(&id), "`response_match_score` is an average over turns; every answer must reach it here");
    }
    let mut case = case(id, Input::Turns(turns));
    case.state = state.and_then(Value::as_object).cloned().unwrap_or_default();
    import.add(case);
}

fn turn(criteria: &Criteria, say: String, answer: &str, calls: Vec<(String, Map<String, Value>)>) -> Turn {
    let calls = calls.into_iter().map(|(name, arguments)| ExpectedCall {
        name,
        arguments,
        mode: None,
        fields: BTreeMap::new(),
    });
    let calls: Vec<ExpectedCall> = calls.collect();
    // Where others may be made, to expect none says nothing.
    let says_something = |mode: &CallMode| !calls.is_empty() || *mode == CallMode::Exact;
    let mode = criteria.calls.filter(says_something);
    let expected_calls = mode.map(|mode| ExpectedCalls { mode, arguments: ArgumentMode::Exact, calls });
    let response = criteria.response.filter(|_| !answer.trim().is_empty());
    let checks = response.map(|at_least| CheckSpec::Rouge1 { expected: answer.to_owned(), at_least });
    Turn { say, expected: Vec::new(), expected_calls, checks: checks.into_iter().collect() }
}

/// The tool calls of a turn: as a list, or in the events that they came in.
fn calls(import: &mut Import, id: &str, data: &Value) -> Vec<(String, Map<String, Value>)> {
    let uses = list(data, "tool_uses").iter();
    let events = list(data, "invocation_events").iter().filter_map(|event| field(event, "content"));
    let parts = events.flat_map(|content| list(content, "parts"));
    let uses = uses.chain(parts.filter_map(|part| field(part, "function_call")));
    let calls = uses.map(|call| {
        let arguments = field(call, "args").and_then(Value::as_object).cloned().unwrap_or_default();
        (text_field(call, "name").unwrap_or_default().to_owned(), arguments)
    });
    let calls = calls.collect();
    if !list(data, "intermediate_responses").is_empty() {
        import.note(Some(id), "`intermediate_responses` are left out");
    }
    calls
}

fn parts_text(import: &mut Import, id: &str, content: Option<&Value>) -> String {
    let parts = content.map_or(&[][..], |content| list(content, "parts"));
    if parts.iter().any(|part| field(part, "text").is_none()) {
        import.note(Some(id), "parts that are no text are left out");
    }
    parts.iter().filter_map(|part| text_field(part, "text")).collect()
}
