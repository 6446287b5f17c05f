//! Bad input: where it is, what to do, and nothing half-written.

use std::fmt::Write as _;

use crate::support::*;

/// What is said, and that nothing was written.
fn refused(workspace: &Workspace, arguments: &[&str]) -> String {
    let ran = workspace.eval(arguments);
    assert!(!workspace.path().join("target").exists(), "nothing is written");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran.told()
}

const CASE: &str = "{ id: a, input: { text: x }, expected: [z] }";

/// A project whose only set has this text.
fn of_set(text: &str) -> Workspace {
    Workspace::with(&[]).file("evals/small.yaml", text)
}

#[test]
fn bad_sets_say_where_they_are_bad() {
    let header = "schema: agent-eval/1\nname: small\nsubject: acts\n";
    let sets = [
        format!("{header}cases:\n  - {{ id: a, inputs: x }}\n"),
        format!("{header}cases:\n  - {CASE}\n  - {CASE}\n"),
        format!("{header}cases:\n  - {{ id: a, input: {{ text: 5 }}, expected: [z] }}\n"),
        format!("{header}cases:\n  - {{ id: a, input: {{ text: x }}, checks: [{{ similar: y }}] }}\n"),
        format!("{header}cases: []\n"),
        format!("{header}cases:\n  - {{ id: a, input: {{ text: x }} }}\n"),
        format!("{header}defaults: {{ repeats: 0 }}\ncases:\n  - {CASE}\n"),
        format!("schema: agent-eval/1\nname: small\nsubject: actz\ncases:\n  - {CASE}\n"),
        format!("schema: agent-eval/1\nname: small\nsubject: no-cassette\ncases:\n  - {CASE}\n"),
    ];
    let texts: Vec<String> = sets.iter().map(|set| refused(&of_set(set), &[])).collect();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    error: evals/small.yaml:5:14: case `a`: unknown field `inputs`; did you mean `input`?
    -> 96

    error: evals/small.yaml:6:11: the id `a` is taken by the case at evals/small.yaml:5:11; give each case its own
    -> 96

    error: evals/small.yaml:5:23: case `a`: `text`: invalid type: integer `5`, expected a string; put it in quotes
    -> 96

    error: evals/small.yaml:5:45: case `a`: unknown check `similar`; known are `equals`, `contains`, `starts_with`, `ends_with`, `regex`, `not`, `all_of`, `any_of`, `json`, `json_schema`, `json_pointer`, `number`, `edit_similarity`, `rouge1`, `calls`, `forbidden_tools`, `allowed_tools`, `budget`, `no_duplicate_calls`, `state_equals`, `stop`, `max_iterations`, `command`, `judge`, `custom`
    -> 96

    error: evals/small.yaml:1:1: the set has no cases; an empty set would always pass
    -> 96

    error: evals/small.yaml:5:5: case `a`: nothing is checked, so it would pass whatever is answered; add `expected` or `checks`
    -> 96

    error: evals/small.yaml:4:13: `repeats` is 0: nothing would be run; write at least 1
    -> 96

    error: evals/small.yaml: the set's subject `actz` is unknown; did you mean `acts`?
    -> 96

    error: make the subject of set `small`: read the cassette answers.jsonl
    -> 96
    "#);
}

#[test]
fn bad_options_say_what_to_give() {
    let workspace = Workspace::with(&["good"]);
    let lines: [&[&str]; 13] = [
        &["--repeats", "0"],
        &["-j", "0"],
        &["--timeout", "soon"],
        &["--gate", "pas_rate>=0.9"],
        &["--gate", "smal: pass_rate>=0.9"],
        &["--max-infrastructure-errors", "5"],
        &["--judge", "openai:gpt"],
        &["--name", "latest"],
        &["--resume"],
        &["--baseline", "yesterday"],
        &["import", "evals/small.yaml", "--from", "promptfo"],
        &["export", "small", "--to", "promptfo"],
        &["export", "smal", "--to", "promptfoo"],
    ];
    let texts: Vec<String> = lines.iter().map(|line| refused(&workspace, line)).collect();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    error: run each case 0 times: nothing would be run; give at least 1
    -> 96

    error: run 0 trials at once: nothing would be run; give at least 1
    -> 96

    error: read the time limit `soon`: expected number at 0; write `90s` or `5m`
    -> 96

    error: read gate `pas_rate>=0.9`: use one of pass_rate>=X, pass_at_K>=X, pass_hat_K>=X, case_rate>=X, error_rate<=X, cap_hit_rate<=X, tokens_per_solved<=X, regression<=X, hard(TAG), coverage; X is a share from 0 to 1, and a number of tokens
    -> 96

    error: read gate `smal: pass_rate>=0.9`: there is no set `smal`; did you mean `small`?
    -> 96

    error: allow a share of 5 infrastructure errors: give one from 0 to 1
    -> 96

    error: find the model `openai:gpt`; known are none
    -> 96

    error: name a run `latest`: use letters, digits, `-`, `_` and `.`, and no name that has a meaning
    -> 96

    error: find the latest run: target/evals has none; run the sets first
    -> 96

    error: compare with `yesterday`: no file and no folder is there; find the run `yesterday` in target/evals: there is none yet; run the sets first
    -> 96

    error: import from `promptfo`; known are `adk`, `inspect`, `promptfoo`, `pydantic`, `deepeval`, `bfcl`, `humaneval`
    -> 96

    error: export to `promptfo`; known are `adk`, `inspect`, `promptfoo`
    -> 96

    error: export set `smal`: there is none of this name; did you mean `small`?
    -> 96
    "#);
}

#[test]
fn two_sets_of_one_name_are_refused() {
    let workspace = Workspace::with(&["good"]);
    let text = workspace.read("evals/small.yaml");
    insta::assert_snapshot!(refused(&workspace.file("evals/other.yaml", &text), &[]), @r#"
    error: evals/small.yaml: the name `small` is that of evals/other.yaml, too; rename one
    -> 96
    "#);
}

#[test]
fn a_place_without_sets_is_refused() {
    let nowhere = Workspace::empty();
    let told = refused(&nowhere, &[]).replace(&nowhere.path().display().to_string(), "HERE");
    insta::assert_snapshot!(told, @r#"
    error: find eval sets: neither HERE nor a folder above it has `evals`; make it, with a set in it
    -> 96
    "#);
    let empty = Workspace::empty().file("evals/README.md", "sets");
    insta::assert_snapshot!(refused(&empty, &[]), @r#"
    error: load the sets of evals: it has no set; write `NAME/set.yaml` or `NAME.yaml` into it, or `import` one
    -> 96
    "#);
}

#[test]
fn unknown_runs_and_cases_are_named_with_what_was_meant() {
    let workspace = Workspace::with(&["good"]);
    assert_eq!(workspace.eval(&["--name", "monday"]).code, Some(0));
    let lines: [&[&str]; 8] = [
        &["gate", "munday"],
        &["show", "monday", "cas-0"],
        &["show", "monday", "case-0#7"],
        &["diff", "monday", "case-0", "small::case-1"],
        &["bless", "monday", "--set", "smal"],
        &["cap", "monday"],
        &["cap", "monday", "--min-gain", "5"],
        &["cap", "monday", "--min-gain", "nan"],
    ];
    let texts: Vec<String> = lines.iter().map(|line| workspace.eval(line).told()).collect();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    error: find the run `munday` in target/evals: did you mean `monday`?
    -> 96

    error: find case `cas-0`: the run `monday` has none of this name; did you mean `case-0`?
    -> 96

    error: find trial `case-0#7`: the run `monday` has no such trial; without `#N` all of a case are meant, and `--resume` runs what is missing
    -> 96

    error: find case `small::case-1`: the run `monday` has none of this name; did you mean `small::case-0`?
    -> 96

    error: bless set `smal`: the run `monday` has no such set; did you mean `small`?
    -> 96

    error: advise a cap for run `monday`: it has no loop; name a run of a set whose subject is one
    -> 96

    error: advise a cap for a gain of 5: give a share from 0 to 1
    -> 96

    error: advise a cap for a gain of NaN: give a share from 0 to 1
    -> 96
    "#);
}

#[test]
fn a_run_of_the_same_name_is_kept() {
    let workspace = Workspace::with(&["good"]);
    assert_eq!(workspace.eval(&["--name", "monday"]).code, Some(0));
    let before = workspace.read("target/evals/monday/trials.jsonl");
    insta::assert_snapshot!(workspace.eval(&["--name", "monday"]).told(), @r#"
    error: begin run `monday`: there is one of this name; `--resume` it, or take another name
    -> 96
    "#);
    assert_eq!(workspace.read("target/evals/monday/trials.jsonl"), before);
}

#[test]
fn a_log_that_cannot_be_read_is_kept_too() {
    let workspace = Workspace::with(&["good"])
        .file("target/evals/monday/trials.jsonl", "{}\n")
        .file("target/evals/monday/command.json", "{}");
    insta::assert_snapshot!(workspace.eval(&["--name", "monday"]).told(), @r#"
    error: begin run `monday`: there is one of this name; `--resume` it, or take another name
    -> 96
    "#);
    assert_eq!(workspace.read("target/evals/monday/command.json"), "{}");
}

#[test]
fn a_run_of_unknown_settings_does_not_go_on() {
    let workspace = Workspace::with(&["good"]).file("target/evals/monday/trials.jsonl", "{}\n");
    insta::assert_snapshot!(workspace.eval(&["--resume", "monday"]).told(), @r#"
    error: go on with run `monday`: read target/evals/monday/command.json: No such file or directory (os error 2); begin a new run
    -> 96
    "#);
}

#[test]
fn the_folder_of_runs_is_no_project() {
    let workspace = Workspace::with(&["good"]);
    assert_eq!(workspace.eval(&["--name", "monday"]).code, Some(0));
    for dir in ["target", "target/evals", "target/evals/monday"] {
        let output = workspace.command(&["list"]).current_dir(workspace.path().join(dir)).output().unwrap();
        let ran = ran(output);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("small::case-0"), "{ran:?}");
    }
}

#[test]
fn what_an_import_cannot_say_is_listed_and_nothing_is_written() {
    let config = "prompts: [Greet]\nproviders: [x]\ntests:\n  - assert:\n      - { type: contains, value: hej }\n      \
                  - { type: javascript, value: 'true' }\n";
    let workspace = Workspace::with(&["good"]).file("config.yaml", config);
    let import = ["import", "config.yaml", "--from", "promptfoo"];
    insta::assert_snapshot!(workspace.eval(&import).told(), @r#"
    note: case `case-1`: the assertion `javascript` has no counterpart, and is left out
    config.yaml: 1 thing cannot be said; nothing is written (`--lossy` writes it all the same)
    -> 96
    "#);
    assert!(!workspace.path().join("evals/config.yaml").exists());
    let lossy = [import.as_slice(), &["--lossy"]].concat();
    insta::assert_snapshot!(workspace.eval(&lossy).told(), @r#"
    note: case `case-1`: the assertion `javascript` has no counterpart, and is left out
    evals/config.yaml: 1 case, 1 thing left out
    -> 0
    "#);
    insta::assert_snapshot!(workspace.read("evals/config.yaml"), @r#"
    schema: agent-eval/1
    name: config
    cases:
    - id: case-1
      input:
        text: Greet
      checks:
      - contains:
          all:
          - hej
    "#);
    insta::assert_snapshot!(workspace.eval(&lossy).told(), @r#"
    error: write evals/config.yaml: it is there; take another file with `-o`, or `--overwrite`
    -> 96
    "#);
}

#[test]
fn what_an_export_cannot_say_is_listed_and_nothing_is_written() {
    let workspace = Workspace::with(&["good"]);
    let export = ["export", "small", "--to", "inspect", "-o", "small.jsonl"];
    insta::assert_snapshot!(workspace.eval(&export).told(), @r#"
    note: Inspect's scorers are code: choose one that compares with the target, such as `exact`
    small: 1 thing cannot be said; nothing is written (`--lossy` writes it all the same)
    -> 96
    "#);
    assert!(!workspace.path().join("small.jsonl").exists());
    let lossy = [export.as_slice(), &["--lossy"]].concat();
    insta::assert_snapshot!(workspace.eval(&lossy).told(), @r#"
    note: Inspect's scorers are code: choose one that compares with the target, such as `exact`
    small.jsonl: 1 thing left out
    -> 0
    "#);
    let written = workspace.read("small.jsonl");
    insta::assert_snapshot!(written, @r#"{"id":"case-0","input":"go","metadata":{"act":"good","tags":["good"]},"target":"good"}"#);
    insta::assert_snapshot!(workspace.eval(&lossy).told(), @r#"
    error: write small.jsonl: it is there; take another file with `-o`, or `--overwrite`
    -> 96
    "#);
    let printed = workspace.eval(&["export", "small", "--to", "inspect", "--lossy"]);
    assert_eq!((printed.code, printed.out), (Some(0), written));
}

#[test]
fn a_run_that_was_garbled_says_where_and_what_to_do() {
    let begun = |file: &str, change: fn(&str) -> String| {
        let workspace = Workspace::with(&["good", "bad", "good"]);
        assert_eq!(workspace.eval(&["--name", "monday", "-j", "1"]).code, Some(0));
        let file = format!("target/evals/monday/{file}");
        let text = workspace.read(&file);
        workspace.file(&file, &change(&text))
    };
    let garbled = [
        begun("trials.jsonl", |text| text.replacen("schema", "sch\n", 1)),
        begun("trials.jsonl", |text| text.replacen("case-1", "case\n", 1)),
        begun("trials.jsonl", |_| String::new()),
        begun("sets.json", |text| text[..text.len() / 2].to_owned()),
        begun("command.json", |_| "{}".to_owned()),
        Workspace::with(&["good"]).file("target/evals/monday/command.json", "{}"),
    ];
    let mut told = String::new();
    for workspace in &garbled {
        for arguments in [["cap", "monday"], ["--resume", "monday"]] {
            let log = workspace.run_dir("monday").join("trials.jsonl");
            let before = std::fs::read(&log).ok();
            let ran = workspace.eval(&arguments);
            assert!(ran.code == Some(0) || std::fs::read(&log).ok() == before, "nothing is written");
            let error = ran.err.lines().find(|line| line.starts_with("error")).unwrap_or_default();
            let _ = writeln!(told, "{}: {error} -> {:?}", arguments[0], ran.code);
        }
    }
    insta::assert_snapshot!(told, @r"
    cap: error: parse line 1 of `target/evals/monday/trials.jsonl`; begin a new run: control character (\u0000-\u001F) found while parsing a string at line 2 column 0 -> Some(96)
    --resume: error: parse line 1 of `target/evals/monday/trials.jsonl`; begin a new run: control character (\u0000-\u001F) found while parsing a string at line 2 column 0 -> Some(96)
    cap: error: parse line 3 of `target/evals/monday/trials.jsonl`; without that line, the run can be gone on with: control character (\u0000-\u001F) found while parsing a string at line 2 column 0 -> Some(96)
    --resume: error: parse line 3 of `target/evals/monday/trials.jsonl`; without that line, the run can be gone on with: control character (\u0000-\u001F) found while parsing a string at line 2 column 0 -> Some(96)
    cap: error: read run `target/evals/monday`: its log is empty; go on with it, and it begins -> Some(96)
    --resume:  -> Some(0)
    cap: error: parse `target/evals/monday/sets.json`; begin a new run: EOF while parsing a string at line 28 column 13 -> Some(96)
    --resume: error: parse `target/evals/monday/sets.json`; begin a new run: EOF while parsing a string at line 28 column 13 -> Some(96)
    cap: error: advise a cap for run `monday`: it has no loop; name a run of a set whose subject is one -> Some(96)
    --resume: error: go on with run `monday`: read target/evals/monday/command.json: missing field `substrings` at line 1 column 2; begin a new run -> Some(96)
    cap: error: open `target/evals/monday/trials.jsonl`; the run has not begun; go on with it, and it begins: No such file or directory (os error 2) -> Some(96)
    --resume: error: go on with run `monday`: read target/evals/monday/command.json: missing field `substrings` at line 1 column 2; begin a new run -> Some(96)
    ");
}
