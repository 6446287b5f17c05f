//! What other tools fall for. Each trap is a test, named after what would be wrong.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use agent_core::{ChatMessage, Draft, ErrorKind, StopReason, testing::ScriptedAgent};
use agent_eval::{
    Baseline, EvalSet, ExitRules, GateVerdict, Manifest, Outcome, Report, ReportBuilder, ReportOptions, RunOptions,
    RunVerdict, SetFormat, TextOptions, Verdict, subject_fn,
};
use serde_json::{Value, json};

use crate::support::*;

fn gated(gates: &[&str], baselines: Vec<Baseline>) -> RunOptions {
    let gates = gates.iter().map(|gate| gate.parse().unwrap()).collect();
    RunOptions { report: ReportOptions { gates, baselines, ..ReportOptions::default() }, ..RunOptions::default() }
}

#[tokio::test]
async fn trap_a_crashed_judge_is_masked_by_a_passing_metric() {
    let options = RunOptions { scorers: vec![Arc::new(Opinion(None))], ..gated(&["pass_rate>=0.9"], vec![]) };
    let report = set_of(["a"]).run(&acts(|_| Act::Good), options).await.unwrap();
    let total = &report.sets[0].total;
    assert_eq!((total.errors, total.passed, total.rate), (1, 0, Some(0.0)), "`expected` passed, the judge crashed");
    assert_eq!(report.exit_code(&ExitRules::default()), 100);
}

#[tokio::test]
async fn trap_zero_cases_pass() {
    let none = set_of([] as [&str; 0]).run(&acts(|_| Act::Good), RunOptions::default()).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Invalid);
    let report = set_of(["a"]).run(&acts(|_| Act::Good), gated(&["pass_rate>=0"], vec![])).await.unwrap();
    let manifest = Manifest { sets: [].into(), ..report.manifest };
    let empty: Report = ReportBuilder::new(manifest, Vec::new(), ReportOptions::default()).finish();
    assert!(!matches!(empty.verdict(&ExitRules::default()), RunVerdict::Passed(_)));
    assert_ne!(empty.exit_code(&ExitRules::default()), 0);
}

#[tokio::test]
async fn trap_zipped_turns_hide_missing_ones() {
    let turns = json!([{ "say": "1", "expected": ["one"] }, { "say": "2", "expected": ["two"] }]);
    let set = set_with([json!({ "id": "a", "input": { "turns": turns } })]);
    let subject = subject_fn(|_| {
        Box::pin(async {
            let one = Draft::message(ChatMessage::assistant("one"));
            Ok(Arc::new(ScriptedAgent::new("short").turn(one, StopReason::BudgetExhausted)) as _)
        })
    });
    let (_, trials) = run(&set, &subject, RunOptions::default()).await;
    let of_turns: Vec<(Option<usize>, Verdict)> =
        trials[0].outcomes.iter().map(|it| (it.turn, it.outcome.verdict)).filter(|(turn, _)| turn.is_some()).collect();
    assert_eq!(of_turns, [(Some(0), Verdict::Pass), (Some(1), Verdict::Fail)]);
    assert_eq!(trials[0].verdict, Verdict::Fail);
}

#[test]
fn trap_duplicate_calls_score_half() {
    let judged = |mode: &str, made: usize| -> Outcome {
        let call = json!({ "name": "search", "arguments": { "q": 1 } });
        let expected = serde_json::from_value(json!({ "mode": mode, "calls": [call] })).unwrap();
        let made =
            vec![serde_json::from_value(json!({ "id": "", "name": "search", "arguments": { "q": 1 } })).unwrap(); made];
        agent_eval::CallMatcher::new(&expected).unwrap().check(&made)
    };
    for mode in ["exact", "any_order", "subset"] {
        assert_eq!((judged(mode, 1).verdict, judged(mode, 2).verdict), (Verdict::Pass, Verdict::Fail), "{mode}");
    }
    assert_eq!(judged("superset", 2).verdict, Verdict::Pass, "where more may be made, one more is no fault at all");
}

#[tokio::test]
async fn trap_a_case_without_expectations_passes() {
    let case = json!({ "id": "a", "input": { "text": "go" } });
    let run = set_with([case.clone()]).run(&acts(|_| Act::Good), RunOptions::default()).await.unwrap_err();
    assert!(run.to_string().contains("nothing is checked"), "{run}");
    let file = json!({ "schema": "agent-eval/1", "name": "set", "cases": [case] }).to_string();
    let load = EvalSet::parse(&file, SetFormat::Json, "set.json").unwrap_err();
    assert!(load.to_string().starts_with("set.json:1:"), "{load}");
}

#[tokio::test]
async fn trap_results_of_checks_of_one_name_overwrite_each_other() {
    let checks = json!([{ "contains": { "all": ["bad"] } }, { "contains": { "all": ["good"] } }]);
    let set = set_with([json!({ "id": "a", "input": { "text": "go" }, "checks": checks })]);
    let (_, trials) = run(&set, &acts(|_| Act::Good), RunOptions::default()).await;
    let said: Vec<(&str, Verdict)> =
        trials[0].outcomes.iter().map(|it| (it.check.as_str(), it.outcome.verdict)).collect();
    assert_eq!(said, [("contains", Verdict::Fail), ("contains", Verdict::Pass)]);
    assert_eq!(trials[0].verdict, Verdict::Fail);
}

/// A cache that knew the first answer of a case would give it again; the key that trials get tells repeats apart.
#[tokio::test]
async fn trap_cached_repeats_collapse_pass_at_k() {
    let asked: Arc<Mutex<BTreeSet<(String, u32, u64)>>> = Arc::default();
    let seen = asked.clone();
    let subject = acts(move |trial| {
        seen.lock().unwrap().insert((trial.key.case.clone(), trial.key.repeat, trial.seed));
        if trial.key.repeat == 2 { Act::Good } else { Act::Bad }
    });
    let (report, _) = run(&set_of(["a", "b"]), &subject, repeats(3)).await;
    assert_eq!(asked.lock().unwrap().len(), 6, "each repeat asks, with a seed of its own");
    let any: Vec<f64> = report.pass_at.iter().filter_map(|at| at.any).collect();
    let close = any.iter().zip([1.0 / 3.0, 2.0 / 3.0, 1.0]).all(|(any, expected)| (any - expected).abs() < 1e-12);
    assert!(any.len() == 3 && close, "{any:?}");
}

#[tokio::test]
async fn trap_a_failing_case_hides_in_a_global_rate_of_98_percent() {
    let mut set = set_of(ids(50));
    set.cases[7].tags.insert("safety".to_owned());
    let subject = acts(|trial| if number(trial) == 7 { Act::Bad } else { Act::Good });
    let report = set.run(&subject, gated(&["pass_rate>=0.9", "hard(safety)", "case_rate>=0.5"], vec![])).await.unwrap();
    assert_eq!(report.sets[0].total.rate, Some(0.98));
    let verdicts: Vec<GateVerdict> = report.sets[0].gates.iter().map(|gate| gate.verdict).collect();
    assert_eq!(verdicts[1..], [GateVerdict::Failed, GateVerdict::Failed], "{:?}", report.sets[0].gates);
    assert_eq!(report.exit_code(&ExitRules::default()), 100);
}

#[tokio::test]
async fn trap_runs_that_raise_are_dropped_from_the_mean() {
    let subject = acts(|trial| match number(trial) {
        0 => Act::Good,
        1 => Act::Panics,
        2 => Act::Fails(ErrorKind::Contract),
        _ => Act::Fails(ErrorKind::Provider),
    });
    let (report, _) = run(&set_of(ids(4)), &subject, RunOptions::default()).await;
    assert_eq!((report.total.errors, report.total.rate), (3, Some(0.25)));
}

/// 30 of 40 passed, then 24: by themselves the rates differ by luck (p = 0.08), and six cases broke and none was mended.
#[tokio::test]
async fn trap_paired_data_get_an_unpaired_test() {
    let set = set_of(ids(40));
    let passing = |first: u32| acts(move |trial| if number(trial) < first { Act::Good } else { Act::Bad });
    let old = set.run(&passing(30), RunOptions::default()).await.unwrap();
    let baseline = Baseline::bless(&old, "set").unwrap();
    let new = set.run(&passing(24), gated(&["regression<=0.05"], vec![baseline])).await.unwrap();
    let comparison = new.sets[0].comparison.as_ref().unwrap();
    assert_eq!((comparison.test.as_str(), comparison.p_harm), ("mcnemar", Some(1.0 / 64.0)));
    assert_eq!(new.sets[0].gates[0].verdict, GateVerdict::Failed);
}

#[tokio::test]
async fn trap_the_text_says_fail_and_the_exit_code_is_0() {
    let rules = ExitRules::default();
    let options = || RunOptions { concurrency: NonZeroUsize::MIN, ..gated(&["pass_rate>=0.6"], vec![]) };
    for (passing, word, code) in [(1, "FAIL", 100), (2, "PASS", 0)] {
        let subject = acts(move |trial| if number(trial) < passing { Act::Good } else { Act::Bad });
        let report = set_of(ids(3)).run(&subject, options()).await.unwrap();
        assert_eq!(report.exit_code(&rules), code);
        let told = format!("(exit code {code})");
        let text = report.to_text(&TextOptions::default());
        let last = text.lines().rev().find(|line| line.contains("exit code")).unwrap();
        assert!(last.trim_start().starts_with(word) && last.ends_with(&told), "{text}");
        assert!(report.to_markdown(&rules).starts_with(&format!("## Evaluation: {word}")));
        assert!(report.to_html(&rules).contains(&told));
        let json: Value = serde_json::from_str(&report.to_json(&rules)).unwrap();
        assert_eq!(json["exit_code"], code);
        assert_eq!(report.to_junit(&rules).contains("<failure"), code != 0);
    }
}
