//! Trials that are there, judged anew.

use std::{fs, path::Path, sync::Arc};

use agent_core::{ChatMessage, Draft, StopReason, agent_fn};
use agent_eval::{
    Baseline, EvalSet, ExitRules, Outcome, Report, Resume, RunLog, RunOptions, RunVerdict, SetRun, Subject, Trial,
    Verdict, score, subject_fn,
};
use serde_json::{Value, json};

use crate::support::*;

/// What the trials of a run come to when they are judged anew.
async fn judged(run: &Path, set: &EvalSet, subject: &dyn Subject) -> Vec<Trial> {
    scored(run, set, subject).await.1
}

async fn scored(run: &Path, set: &EvalSet, subject: &dyn Subject) -> (Report, Vec<Trial>) {
    let kept = Arc::new(Kept::default());
    let options = RunOptions { progress: Some(kept.clone()), ..RunOptions::default() };
    let sets = [SetRun { set, subject, dir: None }];
    let report = score(&RunLog::open(run).unwrap(), &sets, options).await.unwrap();
    (report, kept.trials())
}

#[tokio::test]
async fn each_turn_ended_as_it_did() {
    let turn = json!({ "say": "go", "expected": ["good"], "checks": [{ "stop": ["completed"] }] });
    let set = set_with([json!({ "id": "a", "input": { "turns": [turn, turn] } })]);
    let subject = subject_fn(|_| {
        let agent = agent_fn("worker", |session, out| {
            Box::pin(async move {
                let is_first = session.messages().len() == 1;
                out.record(session, Draft::message(ChatMessage::assistant("good"))).await;
                Ok(if is_first { StopReason::Length } else { StopReason::Completed })
            })
        });
        Box::pin(async { Ok(Arc::new(agent) as _) })
    });
    let dir = tempfile::tempdir().unwrap();
    let options = RunOptions { log: Some(dir.path().into()), ..repeats(1) };
    let (_, live) = run(&set, &subject, options).await;
    assert_eq!((live[0].verdict, &live[0].stops), (Verdict::Fail, &vec![StopReason::Length, StopReason::Completed]));
    assert_eq!(judged(dir.path(), &set, &subject).await, live);

    let path = dir.path().join("trials.jsonl");
    let mut lines: Vec<Value> =
        fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[1].as_object_mut().unwrap().remove("stops").is_some());
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let old = judged(dir.path(), &set, &subject).await;
    let stops: Vec<&Outcome> =
        old[0].outcomes.iter().filter(|outcome| outcome.check == "stop").map(|outcome| &outcome.outcome).collect();
    assert_eq!(stops, [&Outcome::unscored("it has not ended, or its log does not say how it did"), &Outcome::pass()]);
}

#[tokio::test]
async fn a_trial_that_was_run_again_is_judged_once() {
    let dir = tempfile::tempdir().unwrap();
    let set = set_of(["a"]);
    let options = |resume| RunOptions { log: Some(dir.path().into()), resume, ..repeats(1) };
    run(&set, &acts(|_| Act::Bad), options(None)).await;
    run(&set, &acts(|_| Act::Good), options(Some(Resume::NotPassed))).await;
    let trials = judged(dir.path(), &set, &acts(|_| Act::Good)).await;
    let seen: Vec<(&str, Verdict)> = trials.iter().map(|trial| (trial.answer.as_str(), trial.verdict)).collect();
    assert_eq!(seen, [("good", Verdict::Pass)]);
}

#[tokio::test]
async fn what_was_scored_is_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let set = set_of(["a", "b"]);
    let concurrency = std::num::NonZeroUsize::MIN;
    let options = RunOptions { log: Some(dir.path().into()), max_tokens: Some(1), concurrency, ..repeats(1) };
    let broken_off = set.run(&acts(|_| Act::Good), options).await.unwrap();
    let told = |report: &Report| {
        let RunVerdict::Incomplete(text) = report.verdict(&ExitRules::default()) else { panic!("a trial is missing") };
        [
            text,
            report.warnings[report.warnings.len() - 1].clone(),
            Baseline::bless(report, "set").unwrap_err().to_string(),
        ]
        .join("\n")
    };
    insta::assert_snapshot!(told(&broken_off), @"
    1 trials were not run; resume it
    1 of 2 trials are missing: the run is incomplete; resume it
    bless set `set`: the run is incomplete; resume it
    ");
    let (again, _) = scored(dir.path(), &set, &acts(|_| Act::Good)).await;
    insta::assert_snapshot!(told(&again), @"
    1 trials were not run; resume the run that was scored, and score it again
    1 of 2 trials are missing: the run is incomplete; resume the run that was scored, and score it again
    bless set `set`: the run is incomplete; resume the run that was scored, and score it again
    ");
}
