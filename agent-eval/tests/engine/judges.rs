//! Judges: what they cost, and how far they can be trusted.

use std::{fs, num::NonZeroUsize, sync::Arc};

use agent_core::{
    AgentExt, ChatMessage, Session, StopReason, Usage,
    testing::{ScriptedAgent, ScriptedClient},
};
use agent_eval::{
    BuildContext, CheckEvaluator, CheckSpec, EvalSet, HtmlOptions, Label, Report, ReportOptions, RunLog, RunOptions,
    Verdict,
};
use agent_loop::{LoopAgent, LoopOptions, LoopOutcome};
use serde_json::json;

use crate::support::*;

/// A judge with these votes, each of 100 tokens in and 10 out.
fn judge(votes: &[bool]) -> ScriptedClient {
    let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
    let reply = |good: &bool| ChatMessage::assistant(json!({ "reason": "so it is", "good": good }).to_string());
    votes.iter().fold(ScriptedClient::new(), |judge, good| judge.reply(reply(good), usage))
}

fn judged_set(ids: &[&str], repeats: u32) -> EvalSet {
    let check = json!({ "judge": { "rubric": "It is good.", "repeats": repeats } });
    set_with(ids.iter().map(|id| json!({ "id": id, "input": { "text": "go" }, "checks": [check] })))
}

fn with_judge(judge: ScriptedClient) -> RunOptions {
    RunOptions { judge: Some(Arc::new(judge)), concurrency: NonZeroUsize::MIN, ..repeats(1) }
}

#[tokio::test]
async fn what_a_judge_used_is_counted_and_is_not_the_agents() {
    let set = judged_set(&["a", "b"], 3);
    let (report, trials) = run(&set, &acts(|_| Act::Good), with_judge(judge(&[true; 6]))).await;
    let used: Vec<(u64, u64)> = trials.iter().map(|it| (it.usage.total(), it.judge_usage.total())).collect();
    assert_eq!(used, [(10, 330); 2]);
    assert_eq!((report.total.usage.total(), report.total.judge_usage.total()), (20, 660));
    assert_eq!(report.judges.unwrap().usage, Usage { input_tokens: 600, output_tokens: 60, ..Usage::default() });
    let most = RunOptions { max_tokens: Some(340), ..with_judge(judge(&[true; 6])) };
    let report = set.run(&acts(|_| Act::Good), most).await.unwrap();
    assert_eq!((report.sets[0].total.passed, report.missing), (1, 1), "the judge used up the tokens");
}

#[tokio::test]
async fn a_judge_that_breaks_off_has_used_what_it_used() {
    let broken = judge(&[true]).says("It is good, I think.");
    let (_, trials) = run(&judged_set(&["a"], 3), &acts(|_| Act::Good), with_judge(broken)).await;
    let outcome = &trials[0].outcomes[0].outcome;
    assert_eq!((outcome.verdict, outcome.usage.total(), outcome.votes.len()), (Verdict::Error, 110, 0));
    insta::assert_snapshot!(outcome.reason, @r#"read the verdict of judge `scripted`: "It is good, I think.": expected value at line 1 column 1"#);
}

#[tokio::test]
async fn judging_each_iteration_costs_each_time() {
    let options = RunOptions { gold_scorers: true, ..with_judge(judge(&[false, true, true])) };
    let (report, trials) = run(&judged_set(&["a"], 1), &writes(3, |_| Writer::GoodAt(2)), options).await;
    let golds: Vec<Verdict> = trials[0].iterations.iter().map(|it| it.gold).collect();
    assert_eq!((golds, trials[0].judge_usage.total()), (vec![Verdict::Fail, Verdict::Pass], 330));
    assert_eq!(report.judges.unwrap().usage.total(), 330);
}

#[tokio::test]
async fn a_loop_that_a_judge_drives_pays_for_it() {
    let rubric = CheckSpec::Judge { rubric: "It is good.".to_owned(), repeats: None };
    let cx = BuildContext { judge: Some(Arc::new(judge(&[false, true]))), ..BuildContext::default() };
    let writer = ScriptedAgent::new("writer").says("bad").says("good");
    let evaluator = CheckEvaluator::from(rubric.build(&cx).unwrap());
    let agent = LoopAgent::new("refine", writer, LoopOptions::default()).evaluator(evaluator);
    let mut session = Session::new();
    let response = agent.ask(&mut session, "go").await.unwrap();
    assert_eq!((response.stop, response.usage.total()), (StopReason::Completed, 220));
    let outcome = LoopOutcome::of(&session, "refine").unwrap();
    assert_eq!(outcome.iterations.iter().map(|it| it.usage.total()).collect::<Vec<_>>(), [110, 110]);
}

#[tokio::test]
async fn judges_in_checks_made_of_checks_are_measured_too() {
    let dir = tempfile::tempdir().unwrap();
    let judge_of = |repeats: u32| json!({ "judge": { "rubric": "It is good.", "repeats": repeats } });
    let check = json!({ "any_of": [{ "equals": "nothing" }, { "not": judge_of(1) }, judge_of(3)] });
    let set = set_with([
        json!({ "id": "a", "input": { "text": "go" }, "checks": [check], "metadata": { "human_verdict": "pass" } }),
    ]);
    let votes = judge(&[true, true, false, true]);
    let options = RunOptions { log: Some(dir.path().join("run")), ..with_judge(votes) };
    let report = set.run(&acts(|_| Act::Good), options).await.unwrap();
    let judges = report.sets[0].judges.as_ref().unwrap();
    assert_eq!((judges.outcomes, judges.repeats, judges.usage.total()), (2, 3, 440));
    assert_eq!((judges.labels.accepted_good, judges.labels.all()), (2, 2), "`not` turns the check, not its judge");
    let run = RunLog::open(dir.path().join("run")).unwrap();
    assert_eq!(Report::of(&run, ReportOptions::default()).unwrap().sets[0].judges.as_ref(), Some(judges));
    let wanted = Label::wanted(&run).unwrap();
    assert_eq!(wanted.iter().map(|label| label.check.as_deref()).collect::<Vec<_>>(), [Some("judge")]);
    let page = report.to_html_with_trials(&run, &HtmlOptions { passed: true, ..HtmlOptions::default() }).unwrap();
    let votes: Vec<&str> = page.lines().filter(|line| line.contains("votes")).collect();
    insta::assert_snapshot!(votes.join("\n"), @r#"<li><span class="badge good">pass</span> <code>any_of</code> <span title="votes">✓ ✓✗✓</span> </li>"#);
}

#[tokio::test]
async fn labels_are_about_an_answer_and_not_about_a_case() {
    let dir = tempfile::tempdir().unwrap();
    let subject = acts(|trial| if trial.key.repeat == 2 { Act::Bad } else { Act::Good });
    let options = RunOptions {
        repeats: 3.try_into().ok(),
        log: Some(dir.path().join("run")),
        ..with_judge(judge(&[true, true, false]))
    };
    judged_set(&["a"], 1).run(&subject, options).await.unwrap();
    let run = RunLog::open(dir.path().join("run")).unwrap();
    let mut labels = Label::wanted(&run).unwrap();
    let answers: Vec<&str> = labels.iter().map(|label| label.answer.as_str()).collect();
    assert_eq!(answers, ["bad", "good"], "each answer once");
    assert!(labels.iter().all(|label| label.good.is_none()), "nobody has read them yet");
    labels[1].good = Some(true);
    " good\n".clone_into(&mut labels[1].answer);
    labels[0].answer.push_str(" as never before");
    labels[0].good = Some(false);
    let path = dir.path().join("labels.jsonl");
    let lines: Vec<String> = labels.iter().map(|label| serde_json::to_string(label).unwrap()).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    assert_eq!(Label::read(&path).unwrap(), labels);
    let labels = Label::read(&path).unwrap();
    let report = Report::of(&run, ReportOptions { labels, ..ReportOptions::default() }).unwrap();
    let judges = report.sets[0].judges.as_ref().unwrap();
    assert_eq!((judges.labels.accepted_good, judges.labels.all()), (2, 2), "of both trials that answered so");
    assert_eq!((judges.sensitivity, judges.specificity, judges.corrected_rate), (Some(1.0), None, None));
}

#[tokio::test]
async fn people_spoke_of_the_answer_and_not_of_earlier_turns() {
    let dir = tempfile::tempdir().unwrap();
    let asked = json!({ "say": "go", "checks": [{ "judge": { "rubric": "It is good." } }] });
    let plain = json!({ "say": "go", "expected": ["good"] });
    let set = set_with([
        json!({ "id": "a", "input": { "turns": [asked, asked] }, "metadata": { "human_verdict": "pass" } }),
        json!({ "id": "b", "input": { "turns": [asked, plain] }, "metadata": { "human_verdict": "pass" } }),
    ]);
    let options = RunOptions { log: Some(dir.path().into()), ..with_judge(judge(&[false, true, false])) };
    set.run(&acts(|_| Act::Good), options).await.unwrap();
    let run = RunLog::open(dir.path()).unwrap();
    let mut labels = Label::wanted(&run).unwrap();
    assert_eq!(labels.iter().map(|label| label.case.as_str()).collect::<Vec<_>>(), ["a"]);
    let measured = |labels: Vec<Label>| {
        let report = Report::of(&run, ReportOptions { labels, ..ReportOptions::default() }).unwrap();
        let judges = report.sets[0].judges.clone().unwrap();
        (judges.outcomes, judges.labels.accepted_good, judges.labels.accepted_bad, judges.labels.all())
    };
    assert_eq!(measured(Vec::new()), (3, 1, 0, 1), "by the cases' metadata");
    labels[0].good = Some(false);
    assert_eq!(measured(labels), (3, 0, 1, 1), "a label outweighs them");
}

#[test]
fn a_line_that_is_no_label_is_shown_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.jsonl");
    let line = r#"{"set": "s", "case": "c", "answer": "a", "good": true}"#;
    fs::write(&path, format!("{line}\n\n{{\"set\": \"s\", \"case\": \"c\", \"answer\": \"a\", \"god\": true}}\n"))
        .unwrap();
    let error = Label::read(&path).unwrap_err().to_string().replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(error, @"DIR/labels.jsonl:3:1: no label: unknown field `god`, expected one of `set`, `case`, `check`, `answer`, `good`, `note`");
}

#[tokio::test]
async fn each_line_of_a_log_is_as_its_schema_says() {
    let dir = tempfile::tempdir().unwrap();
    let subject = writes(3, |trial| match number(trial) {
        0 => Writer::Never,
        1 => Writer::FailsAt(2),
        _ => Writer::GoodAt(2),
    });
    let options = RunOptions { log: Some(dir.path().join("run")), ..with_judge(judge(&[true; 9])) };
    let mut set = judged_set(&["case-0000", "case-0001", "case-0002"], 1);
    set.cases[2].expected = vec!["better".to_owned()];
    let report = set.run(&subject, options).await.unwrap();
    let log = fs::read_to_string(dir.path().join("run/trials.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    let written: serde_json::Value = serde_json::from_str(&report.to_json(&agent_eval::ExitRules::default())).unwrap();
    let of = |schema, documents: &[serde_json::Value]| {
        let validator = jsonschema::validator_for(&schema).unwrap();
        for document in documents {
            let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
            assert_eq!(errors, [""; 0], "{document}");
        }
        assert!(!validator.is_valid(&json!({ "schema": 1 })));
    };
    of(agent_eval::log_schema(), &lines);
    of(agent_eval::report_schema(), &[written]);
    let baseline = agent_eval::Baseline::bless(
        &set.run(&acts(|_| Act::Good), with_judge(judge(&[true; 3]))).await.unwrap(),
        "set",
    );
    of(agent_eval::baseline_schema(), &[json!(baseline.unwrap())]);
}

#[test]
fn every_stop_reason_is_in_the_schema() {
    let validator = jsonschema::validator_for(&agent_eval::log_schema()).unwrap();
    let line = |stop: serde_json::Value| json!({ "set": "s", "case": "c", "repeat": 0, "seed": 1, "verdict": "pass", "outcomes": [], "stop": stop, "wall_ms": 1 });
    let all = [
        StopReason::Completed,
        StopReason::Escalated,
        StopReason::AwaitingApproval,
        StopReason::Length,
        StopReason::Filtered,
        StopReason::TurnLimit,
        StopReason::IterationLimit,
        StopReason::BudgetExhausted,
        StopReason::Halted,
        StopReason::Cancelled,
    ];
    for stop in all {
        assert!(validator.is_valid(&line(json!(stop))), "{stop}");
    }
    assert!(!validator.is_valid(&line(json!("tired"))));
}
