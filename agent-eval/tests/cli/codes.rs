//! Every exit code, from end to end; and that it is what every report says.

use std::time::Duration;

use crate::support::*;

/// Runs, and looks whether text, JSON, JUnit and code agree.
fn verdict(workspace: &Workspace, arguments: &[&str]) -> (Option<i32>, String) {
    let ran = workspace.eval(&[&["--name", "it"], arguments].concat());
    agree(workspace, &ran)
}

fn agree(workspace: &Workspace, ran: &Ran) -> (Option<i32>, String) {
    let report: serde_json::Value =
        serde_json::from_str(&workspace.read("target/evals/it/report.json")).expect("a report");
    assert_eq!(report["exit_code"].as_i64(), ran.code.map(Into::into), "{ran:?}");
    let last = ran.out.lines().rfind(|line| line.contains("(exit code")).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(last.ends_with(&format!("(exit code {})", ran.code.unwrap())), "{last}");
    let junit = workspace.read("target/evals/it/junit.xml");
    let is_red = junit.contains("<failure") || junit.contains("<error");
    assert_eq!(is_red, ran.code != Some(0), "{junit}");
    assert!(workspace.read("target/evals/it/report.html").to_lowercase().starts_with("<!doctype html>"));
    let word = last.split_whitespace().next().unwrap().to_owned();
    (ran.code, word)
}

/// A verdict's code, and its word.
fn expected(code: i32, word: &str) -> (Option<i32>, String) {
    (Some(code), word.to_owned())
}

#[test]
fn failed_trials_without_a_gate_are_no_failure() {
    let workspace = Workspace::with(&["good", "bad"]);
    assert_eq!(verdict(&workspace, &[]), expected(0, "PASS"));
}

#[test]
fn nothing_selected_is_4() {
    let workspace = Workspace::with(&["good"]);
    let ran = workspace.eval(&["smal::case-0"]);
    insta::assert_snapshot!(ran.told(), @r#"
    error: select `smal::case-0`: no case has it in its name; did you mean `small::case-0`?
    -> 4
    "#);
    let ran = workspace.eval(&["-E", "tag(slow)"]);
    insta::assert_snapshot!(ran.told(), @r#"
    error: select `tag(slow)`: no case is so; `list` shows their names and tags
    -> 4
    "#);
    let ran = workspace.eval(&["-E", "case(/0/)", "-E", "!case(/0/)"]);
    insta::assert_snapshot!(ran.told(), @r#"
    error: select `!case(/0/)`: no case is so; `list` shows their names and tags
    -> 4
    "#);
    assert!(!workspace.path().join("target").exists(), "nothing is written");
}

#[test]
fn a_part_of_the_baselines_cases_is_5() {
    let workspace = Workspace::with(&["good", "good"]);
    assert_eq!(workspace.eval(&[]).code, Some(0));
    assert_eq!(workspace.eval(&["bless", "latest"]).code, Some(0));
    assert_eq!(verdict(&workspace, &["case-1"]), expected(5, "PARTIAL"));
}

#[test]
fn a_filter_that_cannot_be_read_is_94() {
    let workspace = Workspace::with(&["good"]);
    insta::assert_snapshot!(workspace.eval(&["-E", "tga(good)"]).told(), @r#"
    error: read the filter: unknown function `tga`; did you mean `tag`? known are `all`, `case`, `group`, `none`, `set`, `split`, `tag`
      tga(good)
      ^
    -> 94
    "#);
    insta::assert_snapshot!(workspace.eval(&["--partition", "hash:3/2"]).told(), @r#"
    error: read the filter: expected a partition `hash:m/n` with m from 1 to n, such as `hash:1/4`
      hash:3/2
      ^
    -> 94
    "#);
}

#[test]
fn an_answer_that_was_not_recorded_is_96_and_no_failure_of_the_agent() {
    let workspace = Workspace::with(&["good", "unrecorded"]);
    assert_eq!(verdict(&workspace, &["--retries", "2"]), expected(96, "ERROR"));
    let report: serde_json::Value =
        serde_json::from_str(&workspace.read("target/evals/it/report.json")).expect("a report");
    assert_eq!((&report["setup_errors"], &report["infrastructure_errors"]), (&1.into(), &0.into()));
    assert_eq!(workspace.eval(&["bless", "it"]).code, Some(96));
}

#[test]
fn a_gate_that_fails_is_100() {
    let workspace = Workspace::with(&["good", "bad"]);
    assert_eq!(verdict(&workspace, &["--gate", "pass_rate>=0.9"]), expected(100, "FAIL"));
    assert_eq!(workspace.eval(&["gate", "it", "--gate", "hard(bad)"]).code, Some(100));
    assert_eq!(workspace.eval(&["gate", "it", "--gate", "hard(good)"]).code, Some(0));
}

#[test]
fn a_case_that_always_fails_does_not_hide_in_a_high_rate() {
    let workspace = Workspace::with(&["bad", "good", "good", "good", "good", "good", "good", "good", "good", "good"]);
    assert_eq!(verdict(&workspace, &["--gate", "pass_rate>=0.9"]), expected(0, "PASS"));
    assert_eq!(workspace.eval(&["gate", "it", "--gate", "case_rate>=0.5"]).code, Some(100));
}

#[test]
fn too_many_infrastructure_errors_are_101() {
    let workspace = Workspace::with(&["good", "down"]);
    assert_eq!(verdict(&workspace, &["--gate", "pass_rate>=0.9"]), expected(101, "ERROR"));
    let allowed = ["gate", "it", "--max-infrastructure-errors", "0.5"];
    assert_eq!(workspace.eval(&allowed).code, Some(0));
}

#[test]
fn trials_that_were_not_run_are_106() {
    let workspace = Workspace::with(&["bad", "bad", "good"]);
    assert_eq!(verdict(&workspace, &["--fail-fast", "-j", "1"]), expected(106, "INCOMPLETE"));
    let resumed = workspace.eval(&["--resume", "it"]);
    assert_eq!(agree(&workspace, &resumed), expected(106, "INCOMPLETE"), "it goes on as it began");
    let resumed = workspace.eval(&["--resume", "it", "--fail-fast=false"]);
    assert_eq!(agree(&workspace, &resumed), expected(0, "PASS"));
}

#[cfg(unix)]
#[test]
fn a_run_that_is_broken_off_is_106_and_can_be_gone_on_with() {
    let workspace = Workspace::with(&["good", "hangs", "good", "hangs"]);
    let gates = ["--name", "it", "--gate", "pass_rate>=0.9", "-j", "4"];
    let mut child = workspace.command(&gates).spawn().unwrap();
    // The two that end are in the log, under the manifest.
    wait_for("two trials", || workspace.lines("it") >= 3);
    let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    wait_for("its end", || child.try_wait().unwrap().is_some());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(agree(&workspace, &ran), expected(106, "INCOMPLETE"));
    assert!(ran.out.contains("`--resume it` goes on with it"), "{}", ran.out);
    assert!(!ran.out.contains("gates"), "no gate is judged of a part: {}", ran.out);
}

#[test]
fn a_gate_that_may_hold_by_luck_is_107_where_evidence_is_required() {
    let workspace = Workspace::with(&["good", "good"]);
    assert_eq!(verdict(&workspace, &["--gate", "pass_rate>=0.9", "--require-evidence"]), expected(107, "INCONCLUSIVE"));
    assert_eq!(workspace.eval(&["gate", "it", "--gate", "pass_rate>=0.9"]).code, Some(0));
}

#[test]
fn an_unknown_flag_is_2() {
    assert_eq!(Workspace::with(&["good"]).eval(&["--no-such-flag"]).code, Some(2));
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain for {what}");
}
