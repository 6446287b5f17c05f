//! A tool runs once, whatever happens to the processes around it.

mod support;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use support::{example, transcript};
use tempfile::{TempDir, tempdir};

fn approval(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_approval"));
    command.args(arguments).arg("--dir").arg(directory.path());
    command
}

fn say(directory: &TempDir, arguments: &[&str]) -> String {
    transcript(&mut approval(directory, arguments)).replace(&directory.path().display().to_string(), "DIR")
}

fn ledger(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("ledger")).unwrap_or_default()
}

const PAID: &str = "turn 0 call_1_1: 149 crowns for booking 17\n";

#[test]
fn an_approved_call_runs_in_the_process_that_answers() {
    let directory = tempdir().unwrap();
    let asked = say(&directory, &[]);
    assert_eq!(ledger(directory.path()), "");
    let answered = say(&directory, &["answer", "--approve"]);
    assert_eq!(ledger(directory.path()), PAID);
    insta::assert_snapshot!(format!("{asked}\n{answered}"));
}

#[test]
fn a_rejected_call_does_not_run_and_the_reason_is_heard() {
    let directory = tempdir().unwrap();
    say(&directory, &["start"]);
    insta::assert_snapshot!(say(&directory, &["answer", "--reject", "the ferry did sail"]));
    assert_eq!(ledger(directory.path()), "");
}

#[test]
fn an_answer_counts_once() {
    let directory = tempdir().unwrap();
    let early = say(&directory, &["answer", "--approve"]);
    say(&directory, &["start"]);
    say(&directory, &["answer", "--approve"]);
    let again = say(&directory, &["answer", "--approve"]);
    assert_eq!((ledger(directory.path()).as_str(), &early), (PAID, &again));
    insta::assert_snapshot!(again);
}

#[test]
fn resuming_asks_again_while_nobody_answered_and_does_nothing_once_all_is_done() {
    let directory = tempdir().unwrap();
    let nothing = say(&directory, &["resume"]);
    say(&directory, &["start"]);
    let open = say(&directory, &["resume"]);
    say(&directory, &["answer", "--approve"]);
    let done = say(&directory, &["resume"]);
    assert_eq!((ledger(directory.path()).as_str(), &nothing), (PAID, &done));
    insta::assert_snapshot!(format!("{open}\n{done}"));
}

#[test]
fn a_second_request_is_another_call() {
    let directory = tempdir().unwrap();
    for _ in 0..2 {
        say(&directory, &["start"]);
        say(&directory, &["answer", "--approve"]);
    }
    assert_eq!(ledger(directory.path()), format!("{PAID}{}", PAID.replace("turn 0", "turn 1")));
}

#[test]
fn the_question_survives_the_process_that_asked_it() {
    let directory = tempdir().unwrap();
    let mut asking = approval(&directory, &["start"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(asking.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("stop: awaiting approval")));
    asking.kill().unwrap(); // SIGKILL
    asking.wait().unwrap();

    say(&directory, &["answer", "--approve"]);
    assert_eq!(ledger(directory.path()), PAID);
}

/// The moment that matters most cannot be hit by a kill: it is made by cutting the record of a whole run.
#[test]
fn a_crash_between_the_payment_and_its_record_pays_once() {
    let directory = tempdir().unwrap();
    say(&directory, &["start"]);
    say(&directory, &["answer", "--approve"]);
    let sessions = std::fs::read_dir(directory.path().join("sessions")).unwrap();
    let file = sessions.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some()).unwrap();
    let record = std::fs::read_to_string(&file).unwrap();
    let result = record.lines().position(|line| line.contains("tool_result")).unwrap();
    std::fs::write(&file, record.split_inclusive('\n').take(result).collect::<String>()).unwrap();

    let resumed = say(&directory, &["resume"]);
    assert!(
        resumed.starts_with("model: hand-written script, offline\n<- paid 149 crowns back"),
        "it ran again: {resumed}"
    );
    assert_eq!(ledger(directory.path()), PAID);
}

/// Kills each process a little later than the one before, so that some die before the answer is stored, some around
/// the tool's run, some after it.
#[test]
fn a_process_that_is_killed_at_any_moment_pays_once() {
    for delay in (0..40).map(Duration::from_millis) {
        let directory = tempdir().unwrap();
        say(&directory, &["start"]);
        let mut answering = approval(&directory, &["answer", "--approve"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        sleep(delay);
        answering.kill().unwrap();
        answering.wait().unwrap();

        let resumed = say(&directory, &["resume"]);
        if resumed.contains("stop: awaiting approval") {
            assert_eq!(ledger(directory.path()), "", "paid before the answer was stored; killed after {delay:?}");
            say(&directory, &["answer", "--approve"]);
        }
        assert_eq!(ledger(directory.path()), PAID, "killed after {delay:?}: {resumed}");
    }
}
