//! Sets for other tools: what they can say is read back the same, and what they cannot is listed.

use agent_eval::{
    EvalSet,
    export::{ExportFormat, Exported, adk, inspect, promptfoo},
    import,
};
use serde_json::{Value, json};

fn set(cases: &Value) -> EvalSet {
    serde_json::from_value(json!({
        "schema": "agent-eval/1", "name": "sums", "description": "Small sums.", "cases": cases,
    }))
    .unwrap()
}

fn notes(exported: &Exported) -> String {
    exported.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A case with something of everything.
fn full() -> EvalSet {
    let mut set = set(&json!([{
        "id": "full", "tags": ["math"], "split": "dev", "group": "g", "input": { "text": "1 + {{1}}?" },
        "state": { "n": 1 }, "expected": ["2", "two"], "expected_state": { "n": 2 },
        "expected_calls": { "mode": "any_order", "calls": [{ "name": "add", "arguments": { "a": 1 } }] },
        "forbidden_tools": ["rm"], "allowed_tools": ["add"], "budget": { "tokens": 5 },
        "checks": ["json", { "number": { "value": 2 } }, { "any_of": [{ "regex": "2" }, { "starts_with": "t" }] }],
        "repeats": 3, "metadata": { "k": 1 }, "quarantine": { "reason": "r", "until": "2027-01-01" },
    }, {
        "id": "talk", "input": { "turns": [
            { "say": "a", "expected": ["x", "y"], "checks": ["json"] },
            { "say": "b", "expected_calls": { "calls": [{ "name": "f", "mode": "ignore" }] } },
        ] },
    }, {
        "id": "history", "expected": ["x"], "input": { "messages": [
            { "role": "system", "contents": [{ "text": "Be brief." }] }, { "role": "user", "contents": [{ "text": "Hi" }] },
        ] },
    }]));
    set.defaults = serde_json::from_value(json!({ "tags": ["all"], "checks": ["no_duplicate_calls"] })).unwrap();
    set
}

#[test]
fn inspect_reads_back_what_it_can_say() {
    let plain = set(&json!([
        { "id": "a", "input": { "text": "1 + 1?" }, "expected": ["2"], "metadata": { "level": 1 } },
        { "id": "b", "input": { "text": "2?" }, "expected": ["2", "two"] },
        { "id": "c", "expected": ["x"], "input": { "messages": [
            { "role": "system", "contents": [{ "text": "Be brief." }] }, { "role": "user", "contents": [{ "text": "Hi" }] },
        ] } },
    ]));
    let exported = inspect(&plain).unwrap();
    assert_eq!(import::inspect("sums.jsonl", &exported.text).unwrap().set.cases, plain.cases);
    insta::assert_snapshot!(notes(&exported), @"Inspect's scorers are code: choose one that compares with the target, such as `exact`");
    let full = inspect(&full()).unwrap();
    insta::assert_snapshot!(full.text, @r#"
    {"id":"full","input":"1 + {{1}}?","metadata":{"k":1,"tags":["all","math"]},"target":["2","two"]}
    {"id":"history","input":[{"content":"Be brief.","role":"system"},{"content":"Hi","role":"user"}],"metadata":{"tags":["all"]},"target":"x"}
    "#);
    insta::assert_snapshot!(notes(&full), @"
    case `full`: left out are `split`, `group`, `state`, `expected_state`, `expected_calls`, `forbidden_tools`, `allowed_tools`, `budget`, `checks`, `repeats`, `quarantine`
    case `talk`: it is a conversation of several turns, and is left out
    case `history`: left out are `checks`
    Inspect's scorers are code: choose one that compares with the target, such as `exact`
    ");
}

#[test]
fn promptfoo_reads_back_what_it_can_say() {
    let plain = set(&json!([{
        "id": "a", "input": { "text": "1 + 1?" }, "metadata": { "level": 1 },
        "checks": [
            { "equals": "2" }, { "contains": { "all": ["a", "b"] } }, { "contains": { "any": ["A"], "ignore_case": true } },
            { "not": { "contains": { "all": ["c"] } } }, { "starts_with": "x" }, { "not": { "regex": "^y" } }, "json",
            { "json_schema": { "type": "object" } }, { "json_pointer": { "pointer": "", "value": { "a": 1 } } },
            { "rouge1": { "expected": "x y", "at_least": 0.5 } }, { "judge": { "rubric": "It is polite." } },
            { "budget": { "wall_ms": 1500 } }, { "stop": ["completed"] }, { "all_of": [{ "regex": "a" }, { "equals": "b" }] },
        ],
    }]));
    let exported = promptfoo(&plain).unwrap();
    let read = import::promptfoo("promptfooconfig.yaml", &exported.text).unwrap();
    assert_eq!((&read.set.cases, read.notes), (&plain.cases, vec![]), "{}", exported.text);
    let unsaid = promptfoo(&set(&json!([{ "id": "a", "input": { "text": "x" }, "forbidden_tools": ["rm"] }]))).unwrap();
    assert!(notes(&unsaid).contains("it passes there whatever is answered"), "{unsaid:?}");
    let full = promptfoo(&full()).unwrap();
    insta::assert_snapshot!(full.text, @r#"
    description: Small sums.
    prompts:
    - "{{input}}"
    tests:
    - assert:
      - assert:
        - type: equals
          value: "2"
        - type: equals
          value: two
        threshold: 0.5
        type: assert-set
      - type: is-json
      - assert:
        - type: regex
          value: "2"
        - type: starts-with
          value: t
        threshold: 0.5
        type: assert-set
      description: full
      metadata:
        k: 1
        tags:
        - all
        - math
      vars:
        input: 1 + {{1}}?
    "#);
    insta::assert_snapshot!(notes(&full), @"
    case `full`: left out are `split`, `group`, `state`, `expected_state`, `expected_calls`, `forbidden_tools`, `allowed_tools`, `repeats`, `quarantine`
    case `talk`: it is a conversation of several turns, and is left out
    case `history`: it is a conversation with a history, and is left out
    case `full`: its text has what promptfoo takes for template code
    case `full`: the check `budget` has no counterpart, and is left out
    case `full`: the check `number` has no counterpart, and is left out
    case `full`: the check `no_duplicate_calls` has no counterpart, and is left out
    promptfoo compares whole answers with the white space at their ends; `providers` are to be added
    ");
}

#[test]
fn adk_reads_back_what_it_can_say() {
    let plain = set(&json!([{
        "id": "a", "state": { "lamp": "off" }, "input": { "turns": [
            { "say": "On.", "expected_calls": { "calls": [{ "name": "switch", "arguments": { "on": true } }] } },
            { "say": "Thanks.", "expected_calls": { "calls": [] } },
        ] },
    }]));
    let exported = adk(&plain).unwrap();
    let read = import::adk("sums.evalset.json", &exported.text, None).unwrap();
    assert_eq!((&read.set.cases, read.set.name, read.notes), (&plain.cases, plain.name, vec![]));
    let full = adk(&full()).unwrap();
    insta::assert_snapshot!(serde_json::from_str::<Value>(&full.text).unwrap(), @r#"{"description":"Small sums.","eval_cases":[{"conversation":[{"final_response":{"parts":[{"text":"2"}],"role":"model"},"intermediate_data":{"intermediate_responses":[],"tool_uses":[{"args":{"a":1},"name":"add"}]},"invocation_id":"full-0","user_content":{"parts":[{"text":"1 + {{1}}?"}],"role":"user"}}],"eval_id":"full","session_input":{"app_name":"sums","state":{"n":1},"user_id":"user"}},{"conversation":[{"final_response":{"parts":[{"text":"x"}],"role":"model"},"intermediate_data":{"intermediate_responses":[],"tool_uses":[]},"invocation_id":"talk-0","user_content":{"parts":[{"text":"a"}],"role":"user"}},{"intermediate_data":{"intermediate_responses":[],"tool_uses":[{"args":{},"name":"f"}]},"invocation_id":"talk-1","user_content":{"parts":[{"text":"b"}],"role":"user"}}],"eval_id":"talk","session_input":{"app_name":"sums","state":{},"user_id":"user"}}],"eval_set_id":"sums","name":"sums"}"#);
    insta::assert_snapshot!(notes(&full), @"
    case `full`: left out are `tags`, `split`, `group`, `expected_state`, `forbidden_tools`, `allowed_tools`, `budget`, `checks`, `repeats`, `metadata`, `quarantine`
    case `talk`: left out are `tags`, `checks`
    case `history`: it is a conversation with a history, and is left out
    case `full`: turn 0: of the expected answers only the first is kept
    case `full`: turn 0: calls and their arguments are compared exactly, in their order
    case `talk`: turn 0: of the expected answers only the first is kept
    case `talk`: turn 0: left out are `checks`
    case `talk`: turn 1: calls and their arguments are compared exactly, in their order
    ADK compares answers by ROUGE-1 and calls exactly, also where none are expected, unless a `test_config.json` beside the file says otherwise
    ");
}

#[test]
fn formats_have_names() {
    for name in ["adk", "inspect", "promptfoo"] {
        let format: ExportFormat = name.parse().unwrap();
        assert_eq!(format.to_string(), name);
        assert!(!format.export(&full()).unwrap().text.is_empty());
    }
    insta::assert_snapshot!("bfcl".parse::<ExportFormat>().unwrap_err(), @"export to `bfcl`; known are `adk`, `inspect`, `promptfoo`");
}
