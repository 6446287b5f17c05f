//! Sets from files and to files; what is wrong is said with its place and a remedy.

use std::fs;

use agent_eval::{
    EvalSet, Input, SetFormat, baseline_schema, case_schema, label_schema, log_schema, report_schema, set_schema,
};
use proptest::prelude::*;
use serde_json::json;

const WHOLE: &str = "\
schema: agent-eval/1
name: sums
description: Small sums.
defaults:
  repeats: 3
  tags: [math]
cases:
  - id: two
    input: {text: 1 + 1?}
    expected: ['2', two]
    tags: [easy]
  - id: talk
    input:
      turns:
        - say: 2 + 3?
          expected: ['5']
        - say: And now times 2?
          expected_calls:
            mode: !f1 0.5
            calls:
              - {name: times, arguments: {by: 2}, fields: {/by: {near: {value: 2, tolerance: 0.1}}}}
    checks:
      - json
      - not: {contains: {any: [maybe]}}
      - json_schema: {type: object}
      - number: {value: 10, tolerance: 0.5}
      - any_of: [{equals: '10'}, {equals: [ten, Ten]}, {stop: [completed]}]
      - state_equals: {total: 10}
    quarantine: {reason: The model is new., until: 2028-02-29}
    metadata: {source: {page: 3}}
";

fn whole() -> EvalSet {
    EvalSet::parse(&WHOLE.replace("!f1 0.5", "{f1: 0.5}"), SetFormat::Yaml, "sums.yaml").unwrap()
}

/// What is wrong with a set of these cases in YAML.
fn wrong(cases: &str) -> String {
    let text = format!("schema: agent-eval/1\nname: sums\ncases:\n{cases}");
    EvalSet::parse(&text, SetFormat::Yaml, "sums.yaml").unwrap_err().to_string()
}

#[test]
fn a_set_is_read() {
    let set = whole();
    assert_eq!((set.name.as_str(), set.defaults.repeats.unwrap().get()), ("sums", 3));
    assert_eq!(set.cases[0].expected, ["2", "two"]);
    assert!(matches!(&set.cases[1].input, Input::Turns(turns) if turns.len() == 2));
    assert_eq!(set.cases[1].checks.len(), 6);
    assert_eq!(set.cases[1].metadata["source"], json!({ "page": 3 }));
}

#[test]
fn every_format_that_is_written_is_read_back() {
    let set = whole();
    let folder = tempfile::tempdir().unwrap();
    for (format, name) in [(SetFormat::Yaml, "a.yaml"), (SetFormat::Json, "a.json"), (SetFormat::Jsonl, "a.jsonl")] {
        let text = set.write(format).unwrap();
        assert_eq!(EvalSet::parse(&text, format, name).unwrap(), set, "{text}");
        set.save(folder.path().join(name)).unwrap();
        assert_eq!(EvalSet::load(folder.path().join(name)).unwrap(), set);
    }
    insta::assert_snapshot!(set.write(SetFormat::Csv).unwrap_err(), @"write the set `sums` as CSV; use JSONL");
    insta::assert_snapshot!(set.save(folder.path().join("a")).unwrap_err().to_string().replace(&folder.path().display().to_string(), "FOLDER"), @"tell the format of FOLDER/a; its name must end with one of `.yaml`, `.yml`, `.json`, `.jsonl`, `.csv`");
}

#[test]
fn a_folder_holds_a_case_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("one.yaml", "id: one\ninput: {text: 1?}\nexpected: ['1']\n");
    write("more.jsonl", "{\"id\": \"two\", \"input\": {\"text\": \"2?\"}, \"expected\": [\"2\"]}\n\n");
    write("table.csv", "id,input,expected,expected,tags,state.n,contains\nthree,3?,3,three,\"a, b\",3,3\n");
    write("notes.md", "not a case");
    write("bom.json", "\u{feff}{\"id\": \"zero\", \"input\": {\"text\": \"0?\"}, \"expected\": [\"0\"]}");
    let no_header = EvalSet::load(folder.path()).unwrap_err().to_string();
    assert!(no_header.ends_with("it has no `set.yaml` or `set.json`"), "{no_header}");
    write("set.yaml", "schema: agent-eval/1\nname: numbers\n");
    let set = EvalSet::load(folder.path()).unwrap();
    assert_eq!(set.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["zero", "two", "one", "three"]);
    assert_eq!(
        serde_json::to_value(&set.cases[3]).unwrap(),
        json!({
            "id": "three", "input": { "text": "3?" }, "expected": ["3", "three"], "tags": ["a", "b"],
            "state": { "n": 3 }, "checks": [{ "contains": { "all": ["3"] } }],
        })
    );
}

#[test]
fn the_version_comes_first() {
    let read = |text: &str| EvalSet::parse(text, SetFormat::Yaml, "a.yaml").unwrap_err().to_string();
    insta::assert_snapshot!(read("name: a\nstrange: 1\ncases: []\n"), @"a.yaml:1:1: the set has no `schema`; add `schema: agent-eval/1`");
    insta::assert_snapshot!(read("name: a\nschema: agent-eval/2\nstrange: 1\ncases: []\n"), @r#"a.yaml:2:9: this version reads `agent-eval/1`, and the set is "agent-eval/2"; convert it, or use the version that it was written for"#);
    insta::assert_snapshot!(read("schema: agent-eval/1\nname: a b\ncases: []\n"), @r#"a.yaml:2:7: "a b" is no name of a set; use letters, digits, `_` and `-`"#);
    insta::assert_snapshot!(read("schema: agent-eval/1\nname: a\ncases: []\n"), @"a.yaml:1:1: the set has no cases; an empty set would always pass");
    insta::assert_snapshot!(read("schema: agent-eval/1\nname: a\n"), @"a.yaml:1:1: the set has no `cases`; list at least one");
    insta::assert_snapshot!(read("- a\n"), @"a.yaml:1:1: a set is a mapping with `schema`, `name` and `cases`");
    insta::assert_snapshot!(read("schema: agent-eval/1\nname: a\ndescripton: x\ncases: []\n"), @"a.yaml:3:1: unknown field `descripton`; did you mean `description`?");
}

#[test]
fn a_broken_case_is_shown_with_its_place() {
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    expcted: ['1']\n"), @"sums.yaml:6:5: case `a`: unknown field `expcted`; did you mean `expected`?");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    expected: 1\n"), @"sums.yaml:6:5: case `a`: `expected`: invalid type: integer `1`, expected a list");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    expected: [1]\n"), @"sums.yaml:6:16: case `a`: `expected`: invalid type: integer `1`, expected a string; put it in quotes");
    insta::assert_snapshot!(wrong("  - input: {text: x}\n    expected: ['1']\n"), @"sums.yaml:4:5: the field `id` is missing; add it");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    repeats: 0\n"), @"sums.yaml:6:5: case `a`: `repeats` is 0: nothing would be run; write at least 1");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {txt: x}\n"), @"sums.yaml:5:13: case `a`: unknown value `txt`; did you mean `text`?");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    checks:\n      - json\n      - contans: {all: [b]}\n"), @"sums.yaml:8:9: case `a`: unknown check `contans`; did you mean `contains`?");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    checks:\n      - contains: {al: [b]}\n"), @"sums.yaml:7:20: case `a`: unknown field `al`; did you mean `all`?");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    checks:\n      - {json: , regex: b}\n"), @"sums.yaml:7:9: case `a`: `checks`: expected one key; write each check as an item of its own");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    checks:\n      - equals: {a: b}\n"), @"sums.yaml:7:9: case `a`: `equals`: expected a text or a list of texts");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    checks: [{regex: '('}]\n"), @r#"
sums.yaml:6:14: case `a`: build the check `regex`: regex parse error:
    (
    ^
error: unclosed group
"#);
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n"), @"sums.yaml:4:5: case `a`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {turns: [{say: ''}]}\n    expected: [a]\n"), @"sums.yaml:5:12: case `a`: nothing is said to the agent; fill `input`");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {messages: [{role: assistant, contents: [{text: Hi}]}]}\n    expected: [a]\n"), @"sums.yaml:5:12: case `a`: its last message is not the caller's; end with one whose role is `user`");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: ' '}\n    expected: [a]\n"), @"sums.yaml:5:12: case `a`: nothing is said to the agent; fill `input`");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    expected: [a]\n    quarantine: {reason: r, until: 2027-02-29}\n"), @"sums.yaml:7:36: case `a`: `2027-02-29` is no date; write YYYY-MM-DD");
    insta::assert_snapshot!(wrong("  - id: a\n    input: {text: x}\n    expected: [a]\n  - id: b\n    input: {text: x}\n    expected: [a]\n  - input: {text: x}\n    expected: [a]\n    id: a\n"), @"sums.yaml:12:9: the id `a` is taken by the case at sums.yaml:4:9; give each case its own");
    insta::assert_snapshot!(wrong("  - id: a\n    id: b\n"), @"sums.yaml:5:5: no YAML: `id` is given twice; take one out");
    insta::assert_snapshot!(wrong("  - id: [a\n"), @"sums.yaml:4:9: no YAML: unclosed bracket '['");
}

#[test]
fn a_broken_line_of_json_is_shown_with_its_place() {
    let header = "{\"schema\": \"agent-eval/1\", \"name\": \"a\"}\n";
    let read = |text: &str| EvalSet::parse(text, SetFormat::Jsonl, "a.jsonl").unwrap_err().to_string();
    insta::assert_snapshot!(read(""), @"a.jsonl:1:1: the file is empty");
    insta::assert_snapshot!(read(header), @"a.jsonl:1:1: the set has no cases; an empty set would always pass");
    insta::assert_snapshot!(read("{\"id\": \"a\"}\n"), @r#"a.jsonl:1:1: the first line must be the set itself; write `{"schema": "agent-eval/1", "name": …}` above it"#);
    insta::assert_snapshot!(read(&format!("{header}\n{{\"id\": \"a\", \"input\": ?}}\n")), @"a.jsonl:3:22: no JSON: expected value");
    insta::assert_snapshot!(read(&format!("{header}{{\"id\": \"ä😀\", \"input\": {{\"text\": \"x\"}}, \"expeced\": [\"a\"]}}\n")), @"a.jsonl:2:38: case `ä😀`: unknown field `expeced`; did you mean `expected`?");
    insta::assert_snapshot!(read(&format!("{header}{{\"id\": \"a\", \"id\": \"b\"}}\n")), @"a.jsonl:2:13: `id` is given twice; take one out");
    let json = "{\n  \"schema\": \"agent-eval/1\", \"name\": \"a\",\n  \"cases\": [\n    {\"id\": \"a\", \"input\": {\"text\": 1}}\n  ]\n}";
    insta::assert_snapshot!(EvalSet::parse(json, SetFormat::Json, "a.json").unwrap_err(), @"a.json:4:27: case `a`: `text`: invalid type: integer `1`, expected a string; put it in quotes");
}

#[test]
fn what_nests_too_deep_is_refused() {
    let metadata = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let not = |depth: usize| {
        format!("{}{{\"contains\":{{\"all\":[\"y\"]}}}}{}", "{\"not\":".repeat(depth), "}".repeat(depth))
    };
    let read = |metadata: String, check: String| {
        let case = format!(r#"{{"id":"a","input":{{"text":"x"}},"metadata":{{"m":{metadata}}},"checks":[{check}]}}"#);
        let set = format!(r#"{{"schema":"agent-eval/1","name":"deep","cases":[{case}]}}"#);
        EvalSet::parse(&set, SetFormat::Json, "deep.json").map_err(|error| format!("{error:#}"))
    };
    assert!(read(metadata(50), not(50)).is_ok());
    for (metadata, check) in [(metadata(100_000), not(1)), (metadata(1), not(100_000))] {
        let error = read(metadata, check).unwrap_err();
        assert!(error.ends_with(": more than 100 lists and objects in one another"), "{error}");
    }
}

#[test]
fn a_broken_table_is_shown_with_its_record() {
    let read = |text: &str| EvalSet::parse(text, SetFormat::Csv, "my cases.csv").map_err(|error| error.to_string());
    insta::assert_snapshot!(read("id,input,expectd\na,x,1\n").unwrap_err(), @"my cases.csv:1:3: unknown column `expectd`; did you mean `expected`? known are `id`, `input`, `expected`, `tags`, `split`, `group`, `repeats`, `contains`, `regex`, `state.KEY`, `metadata.KEY`");
    insta::assert_snapshot!(read("id,input,expected\na,\"x\ny\",1\nb,x\n").unwrap_err(), @"my cases.csv:4:1: no CSV: CSV error: record 2 (line: 4, byte: 28): found record with 2 fields, but the previous record has 3 fields");
    insta::assert_snapshot!(read("id,input,expected,repeats\na,x,1,many\n").unwrap_err(), @r#"my cases.csv:2:4: case `a`: `repeats`: invalid type: string "many", expected a whole number from 1"#);
    insta::assert_snapshot!(read("id,input,expected\na,x,1\na,y,1\n").unwrap_err(), @"my cases.csv:3:1: the id `a` is taken by the case at my cases.csv:2:1; give each case its own");
    assert_eq!(read("id,input,expected\na,x,1\n").unwrap().name, "my-cases");
}

#[test]
fn what_is_not_there_is_named() {
    let missing = EvalSet::load("nowhere.yaml").unwrap_err().to_string();
    assert!(missing.starts_with("read nowhere.yaml: "), "{missing}");
}

/// `UPDATE_SCHEMAS=1 cargo test -p agent-eval --test load` writes them anew.
#[test]
fn the_committed_schemas_are_current() {
    let schemas = [
        ("eval-set", set_schema()),
        ("eval-case", case_schema()),
        ("run-line", log_schema()),
        ("report", report_schema()),
        ("baseline", baseline_schema()),
        ("label", label_schema()),
    ];
    for (name, schema) in schemas {
        let path = format!("{}/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let current = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&path, &current).unwrap();
        }
        assert!(
            fs::read_to_string(&path).is_ok_and(|text| text == current),
            "{path} is old: see this test's first line"
        );
    }
}

#[test]
fn the_schema_accepts_what_is_written() {
    let validator = jsonschema::validator_for(&set_schema()).unwrap();
    let set = serde_json::to_value(whole()).unwrap();
    assert_eq!(validator.iter_errors(&set).map(|error| error.to_string()).collect::<Vec<_>>(), [""; 0]);
    assert!(!validator.is_valid(&json!({ "schema": "agent-eval/1", "name": "a", "cases": [], "strange": 1 })));
}

/// Texts that look like something else in YAML, and any other.
fn texts() -> impl Strategy<Value = String> {
    const ODD: &[&str] = &[
        "",
        "yes",
        "null",
        "~",
        "1",
        "1e3",
        "0x1f",
        "- a",
        "a: b",
        "# a",
        "'",
        "\"",
        "\\",
        "a\n",
        "\n a\n\n",
        "{",
        "!x",
        "&a",
        "*a",
        "<<",
        "\t",
        "---",
        "2020-01-01",
        "a #b",
        " a ",
    ];
    prop_oneof![prop::sample::select(ODD).prop_map(str::to_owned), "\\PC{0,20}", "[ \n:#a-]{0,20}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_text_survives_every_format(texts in prop::collection::vec(texts(), 1..4), key in texts()) {
        let mut set = whole();
        set.cases[0].expected = texts.clone();
        set.cases[0].metadata.insert(key, json!({ "texts": texts, "number": 1.5, "big": u64::MAX, "none": null }));
        for format in [SetFormat::Yaml, SetFormat::Json, SetFormat::Jsonl] {
            let text = set.write(format).unwrap();
            prop_assert_eq!(&EvalSet::parse(&text, format, "a").map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?, &set, "{}", text);
        }
    }

    #[test]
    fn no_text_panics(text in "[a-z{}:,\\[\\]\"\n -]{0,40}") {
        for format in [SetFormat::Yaml, SetFormat::Json, SetFormat::Jsonl, SetFormat::Csv] {
            prop_assert!(EvalSet::parse(&text, format, "a").is_err());
        }
    }
}
