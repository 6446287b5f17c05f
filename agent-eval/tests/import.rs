//! Sets of other tools: what is said here, and what is noted as not said. The fixtures are written for these tests.

use std::fs;

use agent_eval::{
    EvalSet, SetFormat,
    import::{ImportFormat, Imported, adk, bfcl, deepeval, humaneval, inspect, promptfoo, pydantic},
};
use serde_json::{Value, json};

/// The cases as JSON lines, then the notes. What is imported can be written and read back.
fn shown(imported: agent_core::Result<Imported>) -> String {
    let Imported { set, notes } = imported.unwrap();
    let written = set.write(SetFormat::Json).unwrap();
    assert_eq!(serde_json::from_str::<EvalSet>(&written).unwrap(), set);
    let cases = set.cases.iter().map(|case| serde_json::to_string(case).unwrap());
    let lines =
        [format!("# {}", set.name)].into_iter().chain(cases).chain(notes.iter().map(|note| format!("! {note}")));
    lines.collect::<Vec<_>>().join("\n")
}

fn loads(imported: agent_core::Result<Imported>) {
    let set = imported.unwrap().set;
    let text = set.write(SetFormat::Yaml).unwrap();
    assert_eq!(EvalSet::parse(&text, SetFormat::Yaml, "imported.yaml").unwrap(), set);
}

const EVALSET: &str = r#"{
  "eval_set_id": "lights.v1", "description": "A lamp.",
  "eval_cases": [
    { "eval_id": "on", "conversation": [
        { "invocation_id": "1",
          "user_content": { "role": "user", "parts": [{ "text": "Lamp on, " }, { "text": "please." }, { "inline_data": { "data": "eA==" } }] },
          "final_response": { "role": "model", "parts": [{ "text": "The lamp is on." }] },
          "intermediate_data": { "tool_uses": [{ "id": "c", "name": "switch", "args": { "on": true } }], "intermediate_responses": [["a", []]] } },
        { "user_content": { "parts": [{ "text": "Thanks." }] }, "final_response": { "parts": [{ "text": "You are welcome." }] } }
      ], "session_input": { "app_name": "home", "user_id": "u", "state": { "lamp": "off" } } }
  ]
}"#;

#[test]
fn adk_sets_are_read_with_the_default_criteria() {
    insta::assert_snapshot!(shown(adk("x.evalset.json", EVALSET, None)), @r#"
# lights-v1
{"id":"on","input":{"turns":[{"say":"Lamp on, please.","expected_calls":{"mode":"exact","arguments":"exact","calls":[{"name":"switch","arguments":{"on":true}}]},"checks":[{"rouge1":{"expected":"The lamp is on.","at_least":0.8}}]},{"say":"Thanks.","expected_calls":{"mode":"exact","arguments":"exact","calls":[]},"checks":[{"rouge1":{"expected":"You are welcome.","at_least":0.8}}]}]},"state":{"lamp":"off"}}
! case `on`: parts that are no text are left out
! case `on`: `intermediate_responses` are left out
! case `on`: `response_match_score` is an average over turns; every answer must reach it here
"#);
    loads(adk("x.evalset.json", EVALSET, None));
}

#[test]
fn adk_sets_in_camel_case_are_the_same() {
    let camel = [
        ("eval_set_id", "evalSetId"),
        ("eval_cases", "evalCases"),
        ("eval_id", "evalId"),
        ("user_content", "userContent"),
        ("final_response", "finalResponse"),
        ("intermediate_data", "intermediateData"),
        ("tool_uses", "toolUses"),
        ("intermediate_responses", "intermediateResponses"),
        ("session_input", "sessionInput"),
        ("inline_data", "inlineData"),
    ];
    let text = camel.iter().fold(EVALSET.to_owned(), |text, (snake, camel)| text.replace(snake, camel));
    assert_ne!(text, EVALSET);
    assert_eq!(adk("x.evalset.json", &text, None).unwrap(), adk("x.evalset.json", EVALSET, None).unwrap());
}

#[test]
fn adk_criteria_say_what_is_compared() {
    let events = json!({ "evalSetId": "s", "evalCases": [{ "evalId": "a", "conversation": [{
        "userContent": { "parts": [{ "text": "q" }] },
        "finalResponse": { "parts": [{ "text": "r" }] },
        "intermediateData": { "invocationEvents": [
            { "author": "agent", "content": { "parts": [{ "functionCall": { "name": "t", "args": { "n": 1 } } }, { "text": "hm" }] } },
        ] },
    }] }] });
    let with = |criteria: Value| {
        shown(adk("s.evalset.json", &events.to_string(), Some(&json!({ "criteria": criteria }).to_string())))
    };
    insta::assert_snapshot!(with(json!({ "tool_trajectory_avg_score": { "threshold": 0.5, "match_type": "ANY_ORDER" }, "safety_v1": 0.8 })), @r#"
# s
{"id":"a","input":{"turns":[{"say":"q","expected_calls":{"mode":"superset","arguments":"exact","calls":[{"name":"t","arguments":{"n":1}}]}}]}}
! the criterion `safety_v1` has no counterpart; write a `judge` check
! `tool_trajectory_avg_score` below 1 is an average over turns; every turn's calls must match here
"#);
    insta::assert_snapshot!(with(json!({ "response_match_score": 0.6 })), @r#"
# s
{"id":"a","input":{"turns":[{"say":"q","checks":[{"rouge1":{"expected":"r","at_least":0.6}}]}]}}
"#);
    insta::assert_snapshot!(with(json!({ "response_match_score": 0.0 })), @r#"
# s
{"id":"a","input":{"turns":[{"say":"q"}]}}
! `response_match_score` without a threshold above 0 checks nothing
! case `a`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`
"#);
}

#[test]
fn older_adk_tests_are_read() {
    let queries = json!([
        { "query": "q1", "expected_tool_use": [{ "tool_name": "t", "tool_input": { "n": 1 } }], "reference": "r1" },
        { "query": "q2", "expected_tool_use": [], "reference": "", "expected_intermediate_agent_responses": [{ "text": "x" }] },
    ]);
    insta::assert_snapshot!(shown(adk("dice.test.json", &queries.to_string(), None)), @r#"
# dice
{"id":"case-1","input":{"turns":[{"say":"q1","expected_calls":{"mode":"exact","arguments":"exact","calls":[{"name":"t","arguments":{"n":1}}]},"checks":[{"rouge1":{"expected":"r1","at_least":0.8}}]},{"say":"q2","expected_calls":{"mode":"exact","arguments":"exact","calls":[]}}]}}
! case `case-1`: `expected_intermediate_agent_responses` are left out
! case `case-1`: `response_match_score` is an average over turns; every answer must reach it here
"#);
    let sessions = json!([{ "name": "one", "data": queries, "initial_session": { "state": { "k": 1 } } }]);
    insta::assert_snapshot!(shown(adk("dice.test.json", &sessions.to_string(), None)), @r#"
# dice
{"id":"one","input":{"turns":[{"say":"q1","expected_calls":{"mode":"exact","arguments":"exact","calls":[{"name":"t","arguments":{"n":1}}]},"checks":[{"rouge1":{"expected":"r1","at_least":0.8}}]},{"say":"q2","expected_calls":{"mode":"exact","arguments":"exact","calls":[]}}]},"state":{"k":1}}
! case `one`: `expected_intermediate_agent_responses` are left out
! case `one`: `response_match_score` is an average over turns; every answer must reach it here
"#);
}

#[test]
fn inspect_samples_are_read() {
    let lines = r#"{"id": 7, "input": "2 + 2?", "target": "4", "metadata": {"level": 1}}
{"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "target": ["Hi", "Hello"], "sandbox": "docker"}
{"input": "Pick.", "choices": ["red", "blue"], "target": "B"}
{"input": [{"role": "user", "content": [{"type": "image", "image": "x.png"}]}], "target": "x"}
"#;
    insta::assert_snapshot!(shown(inspect("sums.jsonl", lines)), @r#"
# sums
{"id":"7","input":{"text":"2 + 2?"},"expected":["4"],"metadata":{"level":1}}
{"id":"case-1","input":{"messages":[{"role":"system","contents":[{"text":"Be brief."}]},{"role":"user","contents":[{"text":"Hi"}]}]},"expected":["Hi","Hello"]}
{"id":"case-2","input":{"text":"Pick.\n\nA) red\nB) blue"},"expected":["B"]}
! case `case-1`: `sandbox` is left out
! case `case-2`: the choices are written below the question, and the letter is expected
! case `case-3`: its `input` is neither a text nor messages of text, and it is left out
! Inspect's scorers are code: a `target` is compared with the whole answer here
"#);
    loads(inspect("sums.jsonl", lines));
    let table = "id,input,target,metadata\na,\"1, 2?\",3,\"{\"\"n\"\": 1}\"\n,4?,4,\n";
    insta::assert_snapshot!(shown(inspect("sums.csv", table)), @r#"
# sums
{"id":"a","input":{"text":"1, 2?"},"expected":["3"],"metadata":{"n":1}}
{"id":"case-1","input":{"text":"4?"},"expected":["4"]}
! Inspect's scorers are code: a `target` is compared with the whole answer here
"#);
    let from_json = inspect("sums.json", r#"[{"id": "a", "input": "1?", "target": "1"}]"#).unwrap();
    assert_eq!(from_json.set.cases[0].expected, ["1"]);
}

const PROMPTFOO: &str = r#"
description: Greetings
prompts:
  - "Greet {{name}} in {{ language }}. {{unknown}}"
  - file://other.txt
providers: [some:model]
defaultTest:
  vars: {language: Danish}
  assert:
    - {type: not-contains, value: "as an AI"}
tests:
  - description: plain
    vars: {name: Ada}
    assert:
      - {type: icontains-all, value: "hej, {{name}}"}
      - {type: contains-any, value: [Hej, Goddag]}
      - {type: regex, value: "^H"}
      - {type: llm-rubric, value: It is friendly.}
      - {type: latency, threshold: 1500}
      - {type: assert-set, assert: [{type: starts-with, value: H}, {type: equals, value: Hej Ada}]}
      - {type: finish-reason, value: stop}
      - {type: rouge-n, value: Hej Ada}
    threshold: 0.5
  - description: strange
    vars: {name: [Bo, Li]}
    assert:
      - {type: javascript, value: output.length}
      - {type: similar, value: Hej, threshold: 0.8}
      - {type: not-cost, threshold: 0.1}
      - {type: is-json}
      - {type: is-json, value: {type: object}}
      - {type: equals, value: {a: 1}}
      - {type: contains, value: x, weight: 0}
      - {type: contains, value: "file://x"}
      - {type: contains, value: x, transform: output.trim()}
      - {type: assert-set, threshold: 0.5, assert: [{type: is-json}]}
  - file://tests.csv
"#;

#[test]
fn promptfoo_assertions_are_read_or_listed() {
    insta::assert_snapshot!(shown(promptfoo("promptfooconfig.yaml", PROMPTFOO)), @r#"
    # promptfooconfig
    {"id":"plain (prompt 1)","input":{"text":"Greet Ada in Danish. {{unknown}}"},"checks":[{"not":{"contains":{"all":["as an AI"]}}},{"contains":{"all":["hej","Ada"],"ignore_case":true}},{"contains":{"any":["Hej","Goddag"]}},{"regex":"^H"},{"judge":{"rubric":"It is friendly."}},{"budget":{"wall_ms":1500}},{"all_of":[{"starts_with":"H"},{"equals":"Hej Ada"}]},{"stop":["completed"]},{"rouge1":{"expected":"Hej Ada","at_least":0.75}}]}
    {"id":"strange (prompt 1)","input":{"text":"Greet [\"Bo\",\"Li\"] in Danish. {{unknown}}"},"checks":[{"not":{"contains":{"all":["as an AI"]}}},"json",{"json_schema":{"type":"object"}},{"json_pointer":{"pointer":"","value":{"a":1}}}]}
    ! case `plain (prompt 1)`: its prompt has template code that is left as it is written
    ! case `plain (prompt 1)`: `threshold` of the test is left out
    ! case `strange (prompt 1)`: the variable `name` is a list or a file, and is put in as it is written
    ! case `strange (prompt 1)`: its prompt has template code that is left as it is written
    ! case `strange (prompt 1)`: the assertion `javascript` has no counterpart, and is left out
    ! case `strange (prompt 1)`: the assertion `similar` has no counterpart, and is left out
    ! case `strange (prompt 1)`: the assertion `not-cost` has no counterpart, and is left out
    ! case `strange (prompt 1)`: the assertion `contains` has weight 0, and is left out
    ! case `strange (prompt 1)`: the assertion `contains` is in another file, and is left out
    ! case `strange (prompt 1)`: the assertion `contains` transforms the answer, and is left out
    ! case `strange (prompt 1)`: the assertion `assert-set` needs only some of its parts, and is left out
    ! the test file://tests.csv is in another file, and is left out
    ! prompt 2 is in another file, and is left out
    "#);
    loads(promptfoo("promptfooconfig.yaml", PROMPTFOO));
}

#[test]
fn pydantic_cases_are_read() {
    let text = r"
name: my tests
cases:
  - name: upper
    inputs: hello
    expected_output: HELLO
    metadata: {level: 1}
    evaluators:
      - Contains: {value: hell, case_sensitive: false}
      - Contains: HE
      - MaxDuration: {seconds: 1.5}
      - LLMJudge: {rubric: It shouts., include_input: true}
      - IsInstance: str
  - inputs: {a: 1}
    expected_output: {b: [2]}
    metadata: note
    evaluators: [{Equals: {value: {b: [2]}}}, MyOwn]
evaluators: [EqualsExpected]
";
    insta::assert_snapshot!(shown(pydantic("x.yaml", text)), @r#"
    # my-tests
    {"id":"upper","input":{"text":"hello"},"expected":["HELLO"],"checks":[{"contains":{"all":["hell"],"ignore_case":true}},{"contains":{"all":["HE"]}},{"budget":{"wall_ms":1500}},{"judge":{"rubric":"It shouts."}}],"metadata":{"level":1}}
    {"id":"case-1","input":{"text":"{\"a\":1}"},"checks":[{"json_pointer":{"pointer":"","value":{"b":[2]}}},{"json_pointer":{"pointer":"","value":{"b":[2]}}}],"metadata":{"metadata":"note"}}
    ! case `upper`: of the evaluator `LLMJudge` are left out: `include_input`
    ! case `upper`: the evaluator `IsInstance` has no counterpart, and is left out
    ! case `case-1`: the evaluator `MyOwn` has no counterpart, and is left out
    "#);
    loads(pydantic("x.yaml", text));
    let unused = pydantic("x.json", r#"{"cases": [{"name": "a", "inputs": "x", "expected_output": "y"}]}"#);
    insta::assert_snapshot!(shown(unused), @r#"
# x
{"id":"a","input":{"text":"x"},"metadata":{"expected_output":"y"}}
! case `a`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`
"#);
}

#[test]
fn deepeval_goldens_are_read() {
    let text = json!({ "goldens": [
        { "input": "q", "expected_output": "a", "context": ["c"], "additional_metadata": { "k": 1 }, "actual_output": "old",
          "tools_called": [], "expected_tools": [{ "name": "t" }, { "name": "u", "input_parameters": { "n": 1 } }] },
        { "scenario": "talk" },
    ], "conversational_goldens": [{ "scenario": "x" }] });
    insta::assert_snapshot!(shown(deepeval("g.json", &text.to_string())), @r#"
# g
{"id":"case-1","input":{"text":"q"},"expected_calls":{"mode":"superset","arguments":"exact","calls":[{"name":"t","arguments":{},"mode":"ignore"},{"name":"u","arguments":{"n":1},"mode":"exact"}]},"checks":[{"judge":{"rubric":"The answer says in substance what this one says:\na"}}],"metadata":{"context":["c"],"k":1}}
! case `case-1`: `actual_output` is of an earlier run, and is left out
! case `case-2`: it has no `input` (a conversation?), and is left out
! `conversational_goldens` need a simulated user, and are left out
! deepeval's metrics are code: expected outputs are judged by a model here
"#);
    let camel = r#"[{"name": "a", "input": "q", "expectedOutput": "a", "retrievalContext": ["r"]}]"#;
    insta::assert_snapshot!(shown(deepeval("g.json", camel)), @r#"
# g
{"id":"a","input":{"text":"q"},"checks":[{"judge":{"rubric":"The answer says in substance what this one says:\na"}}],"metadata":{"retrieval_context":["r"]}}
! deepeval's metrics are code: expected outputs are judged by a model here
"#);
}

const QUESTIONS: &str = r#"{"id": "simple_0", "question": [[{"role": "user", "content": "Area of 3 by 4?"}]], "function": [{"name": "geo.area"}]}
{"id": "parallel_0", "question": [[{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Two?"}]]}
{"id": "irrelevance_0", "question": [[{"role": "user", "content": "Hello?"}]]}
{"id": "multi_turn_0", "question": [[{"role": "user", "content": "One."}], [{"role": "user", "content": "Two."}]]}
{"id": "simple_1", "question": "?"}
{"id": "simple_2", "question": {}}
"#;
const ANSWERS: &str = r#"{"id": "simple_0", "ground_truth": [{"geo.area": {"w": [3, 3.0], "h": [4], "unit": ["", "m"], "opts": [{"a/b": ["x", "y"]}]}}]}
{"id": "parallel_0", "ground_truth": [{"f": {"n": [1]}}, {"f": {"n": [2]}}]}
{"id": "multi_turn_0", "ground_truth": [["f(n=1)"], []]}
"#;

#[test]
fn bfcl_answers_become_matchers() {
    insta::assert_snapshot!(shown(bfcl("BFCL_v3_simple.json", QUESTIONS, Some(ANSWERS))), @r#"
# BFCL_v3_simple
{"id":"simple_0","input":{"text":"Area of 3 by 4?"},"expected_calls":{"mode":"exact","arguments":"exact","calls":[{"name":"geo.area","arguments":{},"mode":"subset","fields":{"/h":{"one_of":[4]},"/opts/a~1b":{"one_of":["x","y"]},"/w":{"one_of":[3,3.0]}}}]},"metadata":{"functions":[{"name":"geo.area"}]}}
{"id":"parallel_0","input":{"messages":[{"role":"system","contents":[{"text":"Be exact."}]},{"role":"user","contents":[{"text":"Two?"}]}]},"expected_calls":{"mode":"any_order","arguments":"exact","calls":[{"name":"f","arguments":{},"mode":"exact","fields":{"/n":{"one_of":[1]}}},{"name":"f","arguments":{},"mode":"exact","fields":{"/n":{"one_of":[2]}}}]}}
{"id":"irrelevance_0","input":{"text":"Hello?"},"allowed_tools":[]}
{"id":"multi_turn_0","input":{"turns":[{"say":"One."},{"say":"Two."}]}}
{"id":"simple_1","input":{"text":"?"}}
! case `simple_0`: arguments of `geo.area` that may be left out are not compared, and others are accepted: /unit
! case `multi_turn_0`: the answer ["f(n=1)"] is code, and is left out
! case `simple_1`: it has no answer
! case `simple_2`: its question is of no known form, and it is left out
! BFCL compares texts without case, spaces and punctuation; here they are compared as they are
! case `multi_turn_0`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`
! case `simple_1`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`
"#);
}

const HUMANEVAL: &str = r#"{"task_id": "T/0", "prompt": "def one():\n    \"\"\"Returns 1.\"\"\"\n", "entry_point": "one", "canonical_solution": "    return 1\n", "test": "def check(f):\n    assert f() == 1\n"}
"#;

#[test]
fn coding_tasks_need_a_permission() {
    let imported = humaneval("tasks.jsonl", HUMANEVAL).unwrap();
    assert_eq!(imported.set.cases[0].metadata["solution"], json!("    return 1\n"));
    let refused = EvalSet::parse(&imported.set.write(SetFormat::Json).unwrap(), SetFormat::Json, "t.json").unwrap_err();
    assert!(refused.to_string().ends_with("write `allow_exec: true` in it"), "{refused}");
    insta::assert_snapshot!(imported.notes[0], @"its checks run code that a model wrote; write `allow_exec: true` if that may be");
    let allowed = EvalSet { allow_exec: true, ..imported.set };
    assert_eq!(EvalSet::parse(&allowed.write(SetFormat::Json).unwrap(), SetFormat::Json, "t.json").unwrap(), allowed);
}

/// Runs where there is a Python; elsewhere the check says that it could not be started.
#[tokio::test]
async fn coding_tasks_are_judged_by_their_test() {
    use agent_core::{Session, Usage};
    use agent_eval::{BuildContext, CheckContext, Verdict, case_checks};
    let mut set = humaneval("tasks.jsonl", HUMANEVAL).unwrap().set;
    set.allow_exec = true;
    let checks = case_checks(&set.cases[0], &set, &BuildContext::default()).unwrap();
    let session = Session::new();
    let judged = async |answer: &str| {
        let cx = CheckContext {
            case: None,
            session: &session,
            events: &[],
            answer,
            stop: None,
            usage: Usage::default(),
            wall: None,
            iterations: &[],
        };
        checks.whole[0].outcome(&cx).await.verdict
    };
    let verdicts = [
        judged("    return 1\n").await,
        judged("So:\n```python\ndef one():\n    return 1\n```\n").await,
        judged("```\ndef one():\n    return 2\n```").await,
        judged("I cannot.").await,
    ];
    let without_python = std::process::Command::new("python3").arg("--version").output().is_err();
    let expected = [Verdict::Pass, Verdict::Pass, Verdict::Fail, Verdict::Fail];
    assert_eq!(verdicts, if without_python { [Verdict::Error; 4] } else { expected });
}

#[test]
fn a_file_brings_what_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    write("test_config.json", r#"{"criteria": {"tool_trajectory_avg_score": 1.0}}"#);
    let with_config = ImportFormat::Adk.import(write("x.evalset.json", EVALSET)).unwrap();
    assert_eq!(
        with_config.set,
        adk("x", EVALSET, Some(r#"{"criteria": {"tool_trajectory_avg_score": 1.0}}"#)).unwrap().set
    );
    write("possible_answer/q.json", ANSWERS);
    let format: ImportFormat = "bfcl".parse().unwrap();
    assert_eq!(
        format.import(write("q.json", QUESTIONS)).unwrap().set,
        bfcl("q.json", QUESTIONS, Some(ANSWERS)).unwrap().set
    );
    insta::assert_snapshot!("other".parse::<ImportFormat>().unwrap_err(), @"import from `other`; known are `adk`, `inspect`, `promptfoo`, `pydantic`, `deepeval`, `bfcl`, `humaneval`");
}

#[test]
fn a_file_of_another_format_is_refused() {
    insta::assert_snapshot!(adk("a.json", "{}", None).unwrap_err(), @"import a.json: it has neither `eval_cases` nor a list of queries");
    insta::assert_snapshot!(adk("a.json", "[]", None).unwrap_err(), @"import a.json: it has no cases");
    insta::assert_snapshot!(promptfoo("a.yaml", "a: 1").unwrap_err(), @"import a.yaml: it has no `prompts`");
    insta::assert_snapshot!(pydantic("a.yaml", "a: 1").unwrap_err(), @"import a.yaml: it has no list of `cases`");
    insta::assert_snapshot!(inspect("a.jsonl", "{}\n{").unwrap_err(), @"a.jsonl:2:1: no JSON: EOF while parsing an object");
}
