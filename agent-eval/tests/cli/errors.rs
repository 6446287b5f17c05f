//! Bad input: where it is, what to do, and nothing half-written.

use crate::support::*;

/// What is said, and that nothing was written.
fn refused(workspace: &Workspace, arguments: &[&str]) -> String {
    let ran = workspace.eval(arguments);
    assert!(!workspace.path().join("target").exists(), "nothing is written");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran.told()
}

const CASE: &str = "{ id: a, input: { text: x }, expected: [y] }";

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
        format!("{header}cases:\n  - {{ id: a, input: {{ text: 5 }}, expected: [y] }}\n"),
        format!("{header}cases:\n  - {{ id: a, input: {{ text: x }}, checks: [{{ similar: y }}] }}\n"),
        format!("{header}cases: []\n"),
        format!("{header}cases:\n  - {{ id: a, input: {{ text: x }} }}\n"),
        format!("{header}defaults: {{ repeats: 0 }}\ncases:\n  - {CASE}\n"),
        format!("schema: agent-eval/1\nname: small\nsubject: actz\ncases:\n  - {CASE}\n"),
        format!("schema: agent-eval/1\nname: small\nsubject: no-cassette\ncases:\n  - {CASE}\n"),
    ];
    let texts: Vec<String> = sets.iter().map(|set| refused(&of_set(set), &[])).collect();
    insta::assert_snapshot!(texts.join("\n"), @"");
}

#[test]
fn bad_options_say_what_to_give() {
    let workspace = Workspace::with(&["good"]);
    let lines: [&[&str]; 11] = [
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
    ];
    let texts: Vec<String> = lines.iter().map(|line| refused(&workspace, line)).collect();
    insta::assert_snapshot!(texts.join("\n"), @"");
}

#[test]
fn two_sets_of_one_name_are_refused() {
    let workspace = Workspace::with(&["good"]);
    let text = workspace.read("evals/small.yaml");
    insta::assert_snapshot!(refused(&workspace.file("evals/other.yaml", &text), &[]), @"");
}

#[test]
fn a_place_without_sets_is_refused() {
    let nowhere = Workspace::empty();
    let told = refused(&nowhere, &[]).replace(&nowhere.path().display().to_string(), "HERE");
    insta::assert_snapshot!(told, @"");
    let empty = Workspace::empty().file("evals/README.md", "sets");
    insta::assert_snapshot!(refused(&empty, &[]), @"");
}

#[test]
fn unknown_runs_and_cases_are_named_with_what_was_meant() {
    let workspace = Workspace::with(&["good"]);
    assert_eq!(workspace.eval(&["--name", "monday"]).code, Some(0));
    let lines: [&[&str]; 6] = [
        &["gate", "munday"],
        &["show", "monday", "cas-0"],
        &["show", "monday", "case-0#7"],
        &["diff", "monday", "case-0", "small::case-1"],
        &["bless", "monday", "--set", "smal"],
        &["cap", "monday"],
    ];
    let texts: Vec<String> = lines.iter().map(|line| workspace.eval(line).told()).collect();
    insta::assert_snapshot!(texts.join("\n"), @"");
}

#[test]
fn a_run_of_the_same_name_is_kept() {
    let workspace = Workspace::with(&["good"]);
    assert_eq!(workspace.eval(&["--name", "monday"]).code, Some(0));
    let before = workspace.read("target/evals/monday/trials.jsonl");
    insta::assert_snapshot!(workspace.eval(&["--name", "monday"]).told(), @"");
    assert_eq!(workspace.read("target/evals/monday/trials.jsonl"), before);
}

#[test]
fn what_an_import_cannot_say_is_listed_and_nothing_is_written() {
    let config = "prompts: [Greet]\nproviders: [x]\ntests:\n  - assert:\n      - { type: contains, value: hej }\n      \
                  - { type: javascript, value: 'true' }\n";
    let workspace = Workspace::with(&["good"]).file("config.yaml", config);
    let import = ["import", "config.yaml", "--from", "promptfoo"];
    insta::assert_snapshot!(workspace.eval(&import).told(), @"");
    assert!(!workspace.path().join("evals/config.yaml").exists());
    let lossy = [import.as_slice(), &["--lossy"]].concat();
    insta::assert_snapshot!(workspace.eval(&lossy).told(), @"");
    insta::assert_snapshot!(workspace.read("evals/config.yaml"), @"");
    insta::assert_snapshot!(workspace.eval(&lossy).told(), @"");
}
