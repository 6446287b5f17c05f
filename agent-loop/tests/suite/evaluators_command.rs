//! F5: `CommandSucceeds`. These tests run on the real clock: programs do.

use std::{process::Command, time::Duration};

use agent_core::{AgentExt, Error, ErrorKind, RunContext, StopReason};
use agent_loop::{CommandSucceeds, LoopAgent, LoopEvaluation, LoopEvaluator};
use tempfile::TempDir;

use crate::support::{Passes, asked, cap, outcome, says};

fn shell(script: &str) -> CommandSucceeds {
    CommandSucceeds::new("sh").arg("-c").arg(script)
}

async fn run(command: &CommandSucceeds) -> Result<LoopEvaluation, Error> {
    let passes = Passes::of(&["x"]).await;
    tokio::time::timeout(Duration::from_mins(1), passes.ask(command)).await.expect("the evaluator hangs")
}

async fn feedback(command: &CommandSucceeds) -> String {
    match run(command).await.unwrap() {
        LoopEvaluation::Continue(Some(text)) => text,
        other => panic!("no feedback, but {other:?}"),
    }
}

/// A script that writes the id of a background process to `pid`, and what it does then.
fn with_background(dir: &TempDir, then: &str) -> CommandSucceeds {
    shell(&format!("sleep 300 & echo $! > pid.tmp; mv pid.tmp pid; {then}")).dir(dir.path())
}

/// The same, with a process that leaves the group.
#[cfg(target_os = "linux")]
fn with_daemon(dir: &TempDir, then: &str) -> CommandSucceeds {
    let daemon = "setsid sh -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 300' &";
    shell(&format!("{daemon} while [ ! -e pid ]; do sleep 0.01; done; {then}")).dir(dir.path())
}

async fn started(dir: &TempDir) {
    while !dir.path().join("pid").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A process, killed with the test if it is still there.
struct Process(String);

impl Process {
    /// The one that [`with_background`] started.
    fn of(dir: &TempDir) -> Self {
        Self(std::fs::read_to_string(dir.path().join("pid")).unwrap().trim().to_owned())
    }

    /// Whether it runs; a process that nobody has waited for does not.
    fn runs(&self) -> bool {
        let output = Command::new("ps").args(["-o", "stat=", "-p", &self.0]).output().unwrap();
        let state = String::from_utf8(output.stdout).unwrap();
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }

    async fn ends(&self) {
        let ended = async {
            while self.runs() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the process goes on");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.runs() {
            let _ = Command::new("kill").args(["-9", &self.0]).status();
        }
    }
}

#[tokio::test]
async fn exit_code_zero_satisfies() {
    assert_eq!(run(&shell("echo noise; echo noise >&2; exit 0")).await.unwrap(), LoopEvaluation::Satisfied);
    assert_eq!(shell("").name(), "command_succeeds");
}

#[tokio::test]
async fn another_exit_code_feeds_the_output_back() {
    insta::assert_snapshot!(feedback(&shell("echo out; echo err >&2; exit 3")).await, @r"
    `sh -c echo out; echo err >&2; exit 3` failed with exit code 3.

    out

    err
    ");
    insta::assert_snapshot!(feedback(&shell("echo '  '; exit 1")).await, @r"
    `sh -c echo '  '; exit 1` failed with exit code 1.

    It printed nothing.
    ");
}

#[tokio::test]
async fn a_program_that_a_signal_ended_has_failed() {
    insta::assert_snapshot!(feedback(&shell("echo out; kill -9 $$")).await, @r"
    `sh -c echo out; kill -9 $$` failed: signal: 9 (SIGKILL).

    out
    ");
}

#[tokio::test]
async fn of_a_long_output_both_ends_are_kept() {
    let text = feedback(&shell("i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done; exit 1")).await;
    let body = text.split_once("\n\n").unwrap().1;
    assert!(body.starts_with("line 0\nline 1\n") && body.ends_with("line 8998\nline 8999"), "{body}");
    let cut = body.lines().find(|line| line.starts_with('[')).unwrap();
    insta::assert_snapshot!(cut, @"[… 80698 bytes left out …]");
    assert_eq!(body.len() + 1, 2 * 4096 + cut.len() + 2, "4 KiB of each end, the last line's end trimmed");
}

/// Cut where a character is, the text is still one.
#[tokio::test]
async fn a_cut_in_a_character_is_no_error() {
    let text = feedback(&shell("printf x; i=0; while [ $i -lt 9000 ]; do printf ü; i=$((i+1)); done; exit 1")).await;
    assert!(text.contains("bytes left out") && text.ends_with('ü'), "{text}");
}

#[tokio::test]
async fn output_that_just_fits_is_whole() {
    let text = feedback(&shell("i=0; while [ $i -lt 1024 ]; do printf 12345678; i=$((i+1)); done; exit 1")).await;
    assert_eq!(text.split_once("\n\n").unwrap().1, "12345678".repeat(1024));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let error = run(&CommandSucceeds::new("no-such-program").arg("-v")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Evaluator);
    insta::assert_snapshot!(error, @"start `no-such-program -v` as an evaluator");
    let error = run(&CommandSucceeds::new("sh").dir("/no/such/dir")).await.unwrap_err();
    insta::assert_snapshot!(error, @"start `sh` in /no/such/dir as an evaluator");
}

#[tokio::test]
async fn arguments_are_not_expanded() {
    let command = CommandSucceeds::new("test").arg("$HOME *").arg("=").arg("$HOME *");
    assert_eq!(run(&command).await.unwrap(), LoopEvaluation::Satisfied);
}

#[tokio::test]
async fn it_reads_no_input() {
    assert_eq!(
        run(&CommandSucceeds::new("cat").timeout(Duration::from_secs(30))).await.unwrap(),
        LoopEvaluation::Satisfied
    );
}

#[tokio::test]
async fn it_runs_in_its_directory() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("here"), "").unwrap();
    assert_eq!(
        run(&CommandSucceeds::new("test").arg("-f").arg("here").dir(dir.path())).await.unwrap(),
        LoopEvaluation::Satisfied
    );
}

#[tokio::test]
async fn time_out_kills_it_and_all_that_it_started() {
    let dir = TempDir::new().unwrap();
    let command = with_background(&dir, "echo waiting; wait").timeout(Duration::from_secs(1));
    let text = feedback(&command).await;
    insta::assert_snapshot!(text, @r"
    `sh -c sleep 300 & echo $! > pid.tmp; mv pid.tmp pid; echo waiting; wait` was killed after 1s: it took too long.

    waiting
    ");
    Process::of(&dir).ends().await;
}

#[tokio::test]
async fn a_cancelled_run_kills_it_and_all_that_it_started() {
    let dir = TempDir::new().unwrap();
    let agent = LoopAgent::new("loop", says("w").0, cap(3)).evaluator(with_background(&dir, "wait"));
    let (mut session, cx) = (asked("go"), RunContext::default());
    let cancel = async {
        started(&dir).await;
        cx.cancel().cancel();
    };
    let (response, ()) = tokio::join!(agent.complete(&mut session, &cx), cancel);
    assert_eq!(response.unwrap().stop, StopReason::Cancelled);
    Process::of(&dir).ends().await;
    assert_eq!(outcome(&session).iterations, []);
}

#[tokio::test]
async fn a_dropped_run_kills_it() {
    let dir = TempDir::new().unwrap();
    let (passes, command) = (Passes::of(&["x"]).await, with_background(&dir, "wait"));
    tokio::select! {
        evaluation = passes.ask(&command) => panic!("{evaluation:?}"),
        () = started(&dir) => (),
    }
    Process::of(&dir).ends().await;
}

#[tokio::test]
async fn what_it_leaves_behind_ends_with_it() {
    for (code, satisfied) in [(0, true), (1, false)] {
        let dir = TempDir::new().unwrap();
        let evaluation = run(&with_background(&dir, &format!("exit {code}"))).await.unwrap();
        assert_eq!(evaluation == LoopEvaluation::Satisfied, satisfied, "{evaluation:?}");
        Process::of(&dir).ends().await;
    }
}

/// It holds the output open; what the program said itself counts.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_its_group_does_not_hang_it() {
    let dir = TempDir::new().unwrap();
    let text = feedback(&with_daemon(&dir, "echo out; exit 1")).await;
    assert!(text.ends_with(" failed with exit code 1.\n\nout"), "{text}");
    assert!(Process::of(&dir).runs(), "the test is about a process that goes on");
}

/// The exit code is what counts, however long the output stays open.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_its_group_does_not_change_the_verdict() {
    for (code, satisfied) in [(0, true), (1, false)] {
        let dir = TempDir::new().unwrap();
        let command = with_daemon(&dir, &format!("exit {code}")).timeout(Duration::from_millis(900));
        let evaluation = run(&command).await.unwrap();
        let process = Process::of(&dir);
        assert!(process.runs(), "the test is about a process that goes on");
        assert_eq!(evaluation == LoopEvaluation::Satisfied, satisfied, "{evaluation:?}");
        assert!(!format!("{evaluation:?}").contains("too long"), "{evaluation:?}");
    }
}

/// It closes its output and goes on: its time is its own.
#[tokio::test]
async fn a_program_that_closes_its_output_is_waited_for() {
    assert_eq!(run(&shell("exec >&- 2>&-; sleep 0.2; exit 0")).await.unwrap(), LoopEvaluation::Satisfied);
}

#[tokio::test]
async fn of_a_long_command_the_ends_are_shown() {
    let long = "x".repeat(100_000);
    let failed = feedback(&CommandSucceeds::new("false").arg(&long)).await;
    assert!(failed.starts_with("`false xxx") && failed.len() < 1200, "{failed}");
    let error = run(&CommandSucceeds::new("no-such-program").arg(&long)).await.unwrap_err();
    assert!(error.to_string().starts_with("start `no-such-program xxx") && error.to_string().len() < 1200, "{error}");
}
