//! Runs that are logged, killed and gone on with.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{Draft, StopReason, agent_fn};
use agent_eval::{EvalSet, Report, ReportOptions, Resume, RunLog, RunOptions, Subject, subject_fn};
use serde_json::json;

use crate::support::*;

const REPEATS: u32 = 3;

fn set() -> EvalSet {
    set_of(ids(12))
}

/// Loops of all kinds, slowed down; what a trial does follows from its key and seed.
fn subject() -> impl Subject {
    Versioned(
        subject_fn(|trial| {
            let writer = match (number(trial) + trial.key.repeat) % 5 {
                0 => Writer::Never,
                1 => Writer::FailsAt(2),
                good_at => Writer::GoodAt(good_at - 1),
            };
            let pause = Duration::from_millis(2 + trial.seed % 5);
            Box::pin(async move {
                tokio::time::sleep(pause).await;
                Ok(writing_loop(writer, 3))
            })
        }),
        json!({ "model": "scripted" }),
    )
}

fn options(dir: Option<&Path>, resume: Option<Resume>) -> RunOptions {
    RunOptions { log: dir.map(Into::into), resume, seed: 5, ..repeats(REPEATS) }
}

async fn uninterrupted() -> String {
    timeless(&set().run(&subject(), options(None, None)).await.unwrap())
}

fn lines(dir: &Path) -> usize {
    fs::read(dir.join("trials.jsonl"))
        .map_or(0, |text| text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).count())
}

#[tokio::test]
async fn a_report_is_built_from_the_log_as_from_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("run");
    let report = set().run(&subject(), options(Some(&dir), None)).await.unwrap();
    assert_eq!(timeless(&report), uninterrupted().await);
    let log = RunLog::open(&dir).unwrap();
    assert_eq!(Report::of(&log, ReportOptions::default()).unwrap(), report);
    assert_eq!((lines(&dir), log.sets()[0].cases.len()), (37, 12));
    let again = set().run(&subject(), options(Some(&dir), None)).await.unwrap_err();
    assert!(again.to_string().ends_with("there is one already; resume it or take another"), "{again}");
}

#[tokio::test]
async fn a_torn_line_is_run_again() {
    let dir = tempfile::tempdir().unwrap();
    set().run(&subject(), options(Some(dir.path()), None)).await.unwrap();
    let path = dir.path().join("trials.jsonl");
    let text = fs::read(&path).unwrap();
    let ends: Vec<usize> = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    // In the manifest; after it; in a trial; all of a trial but its end.
    for cut in [ends[0] / 2, ends[0] + 1, ends[4] + 100, ends[20]] {
        fs::write(&path, &text[..cut]).unwrap();
        let kept = lines(dir.path());
        let ran = Arc::new(Kept::default());
        let options = RunOptions { progress: Some(ran.clone()), ..options(Some(dir.path()), Some(Resume::Missing)) };
        let report = set().run(&subject(), options).await.unwrap();
        assert_eq!(timeless(&report), uninterrupted().await);
        assert_eq!((ran.trials().len(), lines(dir.path())), (37 - kept.max(1), 37));
    }
}

#[tokio::test]
async fn another_run_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    set().run(&subject(), options(Some(dir.path()), None)).await.unwrap();
    let resume = || options(Some(dir.path()), Some(Resume::Missing));
    let other_model = Versioned(subject(), json!({ "model": "other" }));
    let mut other_set = set();
    other_set.cases[1].expected = vec!["better".to_owned()];
    let texts = [
        set().run(&other_model, resume()).await.unwrap_err(),
        set().run(&subject(), RunOptions { seed: 6, ..resume() }).await.unwrap_err(),
        set().run(&subject(), RunOptions { revision: Some("5f1720f".to_owned()), ..resume() }).await.unwrap_err(),
        other_set.run(&subject(), resume()).await.unwrap_err(),
        set()
            .run(&subject(), RunOptions { repeats: 4.try_into().ok(), cases: vec!["case-0000".into()], ..resume() })
            .await
            .unwrap_err(),
    ];
    let shown = |error: &agent_core::Error| {
        let text = error.to_string();
        let from = text.find("it is not").unwrap_or_else(|| panic!("{text}"));
        text[from..].chars().take(120).collect::<String>()
    };
    insta::assert_snapshot!(texts.iter().map(shown).collect::<Vec<_>>().join("\n"), @r#"
    it is not the same run: /fingerprint/set/model: "scripted" -> "other"; undo that, or begin a new run
    it is not the same run: /seed: 5 -> 6; undo that, or begin a new run
    it is not the same run: /revision: null -> "5f1720f"; check out its revision, or begin a new run
    it is not the same run: /sets/set/cases/case-0001/expected: ["good"] -> ["better"]; undo that, or begin a new run
    it is not the same run: /sets/set/cases/case-0000/repeats: 3 -> 4; /sets/set/cases/case-0001: {"expected":["good"],"id":
    "#);
}

#[tokio::test]
async fn errors_and_failures_are_run_again_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let mended: Arc<Mutex<bool>> = Arc::default();
    let is_mended = mended.clone();
    let subject = acts(move |trial| match number(trial) {
        0 => Act::Good,
        _ if *is_mended.lock().unwrap() => Act::Good,
        1 => Act::Fails(agent_core::ErrorKind::Provider),
        _ => Act::Bad,
    });
    let set = set_of(ids(3));
    let run = async |resume| {
        let options = RunOptions { log: Some(dir.path().into()), resume, ..repeats(1) };
        let report = set.run(&subject, options).await.unwrap();
        (report.sets[0].total.passed, lines(dir.path()))
    };
    assert_eq!(run(None).await, (1, 4));
    *mended.lock().unwrap() = true;
    assert_eq!(run(Some(Resume::Missing)).await, (1, 4));
    assert_eq!(run(Some(Resume::Errors)).await, (2, 5));
    assert_eq!(run(Some(Resume::NotPassed)).await, (3, 6));
    assert_eq!(run(Some(Resume::NotPassed)).await, (3, 6));
}

const CHILD_DIR: &str = "AGENT_EVAL_TEST_RUN";

/// The run that is killed: a process of its own.
#[test]
#[ignore = "started by a_killed_run_is_gone_on_with"]
fn killed_run() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = Path::new(&dir);
    let resume = dir.join("trials.jsonl").exists().then_some(Resume::Missing);
    runtime.block_on(set().run(&subject(), options(Some(dir), resume))).unwrap();
}

#[tokio::test]
async fn a_killed_run_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut kills = Vec::new();
    loop {
        let before = lines(dir.path());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "resume::killed_run"])
            .env(CHILD_DIR, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // A few more lines, then at any moment.
        while lines(dir.path()) < before + 4 && child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(u64::from(uuid::Uuid::now_v7().as_bytes()[15]) * 20)).await;
        if child.try_wait().unwrap().is_some_and(|status| status.success()) {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills.push(lines(dir.path()));
        assert!(kills.len() < 40, "no progress: {kills:?}");
    }
    assert!(kills.iter().any(|lines| (2..37).contains(lines)), "killed while it ran: {kills:?}");
    assert_eq!(lines(dir.path()), 37);
    let report = Report::of(&RunLog::open(dir.path()).unwrap(), ReportOptions::default()).unwrap();
    assert_eq!(timeless(&report), uninterrupted().await);
}

#[tokio::test]
async fn a_dropped_run_ends_its_trials() {
    let alive = Arc::new(());
    let guard = alive.clone();
    let subject = subject_fn(move |_| {
        let guard = guard.clone();
        let agent = agent_fn("waits", move |session, out| {
            let guard = guard.clone();
            Box::pin(async move {
                out.record(session, Draft::default()).await;
                std::future::pending::<()>().await;
                drop(guard);
                Ok(StopReason::Completed)
            })
        });
        Box::pin(async move { Ok(Arc::new(agent) as _) })
    });
    let set = set_of(ids(4));
    let run = set.run(&subject, RunOptions::default());
    assert!(tokio::time::timeout(Duration::from_millis(20), run).await.is_err());
    drop(subject);
    for _ in 0..1000 {
        if Arc::strong_count(&alive) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{} trials are alive", Arc::strong_count(&alive) - 1);
}
