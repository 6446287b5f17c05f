//! Runs that are killed, and gone on with.

use std::{fs, time::Duration};

use crate::support::*;

/// A report without what differs between equal runs: the run's id, and times.
fn timeless(workspace: &Workspace, run: &str) -> String {
    fn erase(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                for time in ["wall_ms", "began", "run"] {
                    fields.remove(time);
                }
                fields.values_mut().for_each(erase);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(erase),
            _ => (),
        }
    }
    let mut report = serde_json::from_str(&workspace.read(&format!("target/evals/{run}/report.json"))).unwrap();
    erase(&mut report);
    serde_json::to_string_pretty(&report).unwrap()
}

/// How many kills; `AGENT_EVAL_TEST_KILLS` sets another number.
fn kills() -> u32 {
    std::env::var("AGENT_EVAL_TEST_KILLS").map_or(4, |number| number.parse().unwrap())
}

#[test]
fn a_run_that_is_killed_at_any_moment_ends_as_an_undisturbed_one() {
    let acts: Vec<&str> = ["slow", "flaky", "bad", "slow", "good", "down"].repeat(4);
    let workspace = Workspace::with(&acts).set("loops", "loops", &["good", "good", "good"]);
    let settings = ["--repeats", "3", "-j", "2", "--seed", "7", "--gate", "pass_rate>=0.1"];
    let whole = workspace.eval(&[&["--name", "whole"], settings.as_slice()].concat());
    let trials = workspace.lines("whole");
    assert_eq!(trials, 1 + 3 * 27);
    let mut killed = Vec::new();
    let mut random = u64::from(std::process::id());
    let mut below = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % most
    };
    for number in 0..kills().div_ceil(2) {
        let run = format!("killed-{number}");
        let command = || {
            let is_begun = workspace.run_dir(&run).join("command.json").exists();
            if is_begun {
                return workspace.command(&["--resume", &run]);
            }
            workspace.command(&[&["--name", &run], settings.as_slice()].concat())
        };
        // Twice: once so many lines are in the log (none yet, or all, while the report is made), and a little later.
        for _ in 0..2 {
            let (lines, later) = (below(trials + 2), Duration::from_millis(below(20) as u64));
            let mut child = command().spawn().unwrap();
            while workspace.lines(&run) < lines.min(trials) && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(later);
            let _ = child.kill();
            child.wait_with_output().unwrap();
            killed.push(workspace.lines(&run));
        }
        let output = command().output().unwrap();
        assert_eq!(output.status.code(), whole.code, "{:?}", ran(output));
        assert_eq!(timeless(&workspace, &run), timeless(&workspace, "whole"), "{killed:?}");
        assert_eq!(workspace.lines(&run), trials);
    }
    println!("lines in the log at each kill: {killed:?}");
}

#[test]
fn a_torn_line_and_errors_are_run_again() {
    let workspace = Workspace::with(&["good", "down", "bad"]);
    let lenient = ["--max-infrastructure-errors", "1"];
    assert_eq!(workspace.eval(&[&["--name", "it", "-j", "1"], lenient.as_slice()].concat()).code, Some(0));
    let log = workspace.run_dir("it").join("trials.jsonl");
    let text = fs::read(&log).unwrap();
    fs::write(&log, &text[..text.len() - 10]).unwrap();
    assert_eq!(workspace.eval(&["--resume", "it"]).code, Some(0));
    assert_eq!(workspace.lines("it"), 4);
    assert_eq!(workspace.eval(&["--resume", "it", "--rerun", "error"]).code, Some(0));
    assert_eq!(workspace.lines("it"), 5, "the error is run again");
    assert_eq!(workspace.eval(&["--rerun", "failed"]).code, Some(0));
    assert_eq!(workspace.lines("it"), 7, "the error and the failure are run again");
}

#[test]
fn a_secret_address_is_not_kept_and_no_other_one_is_asked_instead() {
    let workspace = Workspace::with(&["bad", "good"]);
    for (name, url) in [("a", "http://me:secret@127.0.0.1:9"), ("b", "http://127.0.0.1:9/v1?key=secret")] {
        for option in ["--base-url", "--judge-base-url"] {
            let run = format!("{name}{option}");
            let begin = workspace.eval(&["--name", &run, "--fail-fast", "-j", "1", "--live", option, url]);
            assert_eq!(begin.code, Some(106), "{begin:?}");
            assert!(!workspace.read(&format!("target/evals/{run}/command.json")).contains("secret"));
            let told = workspace.eval(&["--resume", &run, "--fail-fast=false"]).told();
            let expected = format!(
                "error: go on with run `{run}`: its `{option}` may have a secret in it, and was not kept; give it again\n\
                 -> 96\n"
            );
            assert_eq!(told, expected);
            assert_eq!(workspace.eval(&["--resume", &run, "--fail-fast=false", option, url]).code, Some(0));
        }
    }
}

#[test]
fn runs_that_begin_at_once_have_a_folder_each() {
    let workspace = Workspace::with(&["slow"]);
    let children: Vec<_> = (0..4).map(|_| workspace.command(&[]).spawn().unwrap()).collect();
    for child in children {
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let runs = fs::read_dir(workspace.path().join("target/evals")).unwrap();
    let lines: Vec<usize> = runs.map(|run| workspace.lines(run.unwrap().file_name().to_str().unwrap())).collect();
    assert_eq!(lines, [2; 4]);
}

#[test]
fn of_two_runs_that_begin_at_once_with_one_name_the_one_that_runs_can_be_gone_on_with() {
    for round in 0..10 {
        let workspace = Workspace::with(&["good", "bad"]);
        let begin = |case: &'static str| workspace.command(&["--name", "it", case]).spawn().unwrap();
        let codes = [begin("case-0"), begin("case-1")].map(|child| ran(child.wait_with_output().unwrap()).code);
        assert!(codes.contains(&Some(0)), "{codes:?}");
        let resumed = workspace.eval(&["--resume", "it"]);
        assert_eq!(resumed.code, Some(0), "round {round}: {resumed:?}");
    }
}

#[test]
fn two_processes_do_not_write_one_run() {
    let workspace = Workspace::with(&["hangs"]);
    let mut child = workspace.command(&["--name", "it"]).spawn().unwrap();
    while workspace.lines("it") < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let told = workspace.eval(&["--resume", "it"]).told();
    child.kill().unwrap();
    child.wait().unwrap();
    insta::assert_snapshot!(told, @r#"
    error: write run `target/evals/it`: another process writes it; wait for its end
    -> 96
    "#);
}
