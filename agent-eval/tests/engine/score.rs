//! Trials that are there, judged anew.

use std::{fs, path::Path, sync::Arc};

use agent_core::{ChatMessage, Draft, StopReason, agent_fn};
use agent_eval::{EvalSet, Outcome, RunLog, RunOptions, SetRun, Subject, Trial, Verdict, score, subject_fn};
use serde_json::{Value, json};

use crate::support::*;

/// What the trials of a run come to when they are judged anew.
async fn judged(run: &Path, set: &EvalSet, subject: &dyn Subject) -> Vec<Trial> {
    let kept = Arc::new(Kept::default());
    let options = RunOptions { progress: Some(kept.clone()), ..RunOptions::default() };
    let sets = [SetRun { set, subject, dir: None }];
    score(&RunLog::open(run).unwrap(), &sets, options).await.unwrap();
    kept.trials()
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
