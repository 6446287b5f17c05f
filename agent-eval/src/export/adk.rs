//! Google's Agent Development Kit.

use agent_core::Result;
use serde_json::{Value, json};

use super::{Export, Exported};
use crate::{ArgumentMode, CallMode, EvalCase, EvalSet, ExpectedCalls, Input, Turn};

/// Exports a set as an ADK `.evalset.json`, in snake case. How answers and calls are compared is not in that file, but
/// in ADK's criteria; what they cannot do is noted.
///
/// # Errors
/// None so far.
pub fn adk(set: &EvalSet) -> Result<Exported> {
    let mut export = Export::default();
    let says = ["state", "expected", "expected_calls", "turns"];
    let mut cases = Vec::new();
    for case in export.cases(set, &says) {
        let turns = match &case.input {
            Input::Text(said) => {
                vec![Turn { say: said.clone(), expected: Vec::new(), expected_calls: None, checks: Vec::new() }]
            }
            Input::Turns(turns) => turns.clone(),
            Input::Messages(_) => continue, // noted already
        };
        let last = turns.len().saturating_sub(1);
        let invocations = turns.into_iter().enumerate().map(|(number, mut turn)| {
            if number == last {
                turn.expected.extend(case.expected.iter().cloned());
            }
            let calls = [turn.expected_calls.take(), case.expected_calls.clone().filter(|_| number == last)];
            let calls: Vec<ExpectedCalls> = calls.into_iter().flatten().collect();
            invocation(&mut export, &case, number, &turn, &calls)
        });
        let conversation: Vec<Value> = invocations.collect();
        let session = json!({ "app_name": set.name, "user_id": "user", "state": case.state });
        cases.push(json!({ "eval_id": case.id, "conversation": conversation, "session_input": session }));
    }
    export.note_all(
        "ADK compares answers by ROUGE-1 and calls exactly, also where none are expected, unless a `test_config.json` beside \
         the file says otherwise",
    );
    let document = json!({
        "eval_set_id": set.name, "name": set.name, "description": set.description, "eval_cases": cases,
    });
    Ok(export.finish(format!("{document:#}\n")))
}

fn invocation(export: &mut Export, case: &EvalCase, number: usize, turn: &Turn, calls: &[ExpectedCalls]) -> Value {
    if turn.expected.len() > 1 {
        export.note(case, format!("turn {number}: of the expected answers only the first is kept"));
    }
    if !turn.checks.is_empty() {
        export.note(case, format!("turn {number}: left out are `checks`"));
    }
    let is_plain = |calls: &ExpectedCalls| {
        let is_exact = |mode: &ArgumentMode| *mode == ArgumentMode::Exact;
        let plain = |call: &crate::ExpectedCall| {
            is_exact(call.mode.as_ref().unwrap_or(&calls.arguments)) && call.fields.is_empty()
        };
        calls.mode == CallMode::Exact && calls.calls.iter().all(plain)
    };
    if !calls.iter().all(is_plain) {
        export.note(case, format!("turn {number}: calls and their arguments are compared exactly, in their order"));
    }
    if calls.len() > 1 {
        export.note(case, format!("turn {number}: the calls of the whole case are put behind those of its last turn"));
    }
    let calls = calls.iter().flat_map(|calls| &calls.calls);
    let calls: Vec<Value> = calls.map(|call| json!({ "name": call.name, "args": call.arguments })).collect();
    let mut invocation = json!({
        "invocation_id": format!("{}-{number}", case.id),
        "user_content": { "role": "user", "parts": [{ "text": turn.say }] },
        "intermediate_data": { "tool_uses": calls, "intermediate_responses": [] },
    });
    if let Some(answer) = turn.expected.first() {
        invocation["final_response"] = json!({ "role": "model", "parts": [{ "text": answer }] });
    }
    invocation
}
