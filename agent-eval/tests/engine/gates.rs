//! Gates, baselines, and the one verdict.

use std::time::{Duration, SystemTime};

use agent_core::ErrorKind;
use agent_eval::{
    Baseline, EvalSet, ExitRules, Gate, GateVerdict, Report, ReportOptions, RunOptions, SetRun, run_sets,
};
use serde_json::json;

use crate::support::*;

/// Case n passes in the first `passes(n)` of its repeats.
async fn report(set: &EvalSet, count: u32, passes: fn(u32) -> u32, report: ReportOptions) -> Report {
    let subject = acts(move |trial| if trial.key.repeat < passes(number(trial)) { Act::Good } else { Act::Bad });
    set.run(&subject, RunOptions { report, ..repeats(count) }).await.unwrap()
}

fn gated(gates: &[&str], baselines: &[&Baseline]) -> ReportOptions {
    let gates = gates.iter().map(|gate| gate.parse().unwrap()).collect();
    ReportOptions { gates, baselines: baselines.iter().map(|it| (*it).clone()).collect(), ..ReportOptions::default() }
}

fn verdicts(report: &Report) -> Vec<String> {
    let gates = report.sets[0].gates.iter();
    gates.map(|gate| format!("{:?} {}: {}", gate.verdict, gate.gate, gate.detail)).collect()
}

#[test]
fn gates_are_read_as_they_are_written() {
    let texts = [
        "pass_rate>=0.9",
        "pass_at_3>=0.5",
        "pass_hat_3>=0.5",
        "case_rate>=0.3",
        "error_rate<=0.1",
        "cap_hit_rate<=0.05",
        "tokens_per_solved<=3000",
        "hard(safety)",
        "regression<=0.03",
        "coverage",
    ];
    for text in texts {
        assert_eq!(text.parse::<Gate>().unwrap().to_string(), text);
    }
    for wrong in
        ["pass_rate<=0.9", "pass_rate>=90", "pass_at_0>=1", "cap_hit_rate>=1", "hard()", "speed>=1", "regression<=NaN"]
    {
        assert_eq!(wrong.parse::<Gate>().unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
    }
}

#[tokio::test]
async fn a_failing_case_does_not_hide_in_a_high_rate() {
    let mut set = set_of(ids(50));
    set.cases[7].tags.insert("safety".to_owned());
    let passes = |case| if case == 7 { 1 } else { 2 };
    let options = gated(&["pass_rate>=0.9", "hard(safety)", "case_rate>=0.8", "pass_hat_2>=0.9", "hard(speed)"], &[]);
    let report = report(&set, 2, passes, options).await;
    assert_eq!(report.sets[0].total.rate, Some(0.99));
    insta::assert_snapshot!(verdicts(&report).join("\n"), @"
    Passed pass_rate>=0.9: 0.990, 95 % 0.970 to 1.000
    Failed hard(safety): 1 of 1 cases did not pass every trial: case-0007
    Failed case_rate>=0.8: 1 of 50 cases are below: case-0007
    Inconclusive pass_hat_2>=0.9: 0.980, 95 % 0.895 to 0.996
    Failed hard(speed): undefined: there is no such case
    ");
}

#[tokio::test]
async fn what_is_undefined_holds_for_no_gate() {
    let options =
        gated(&["pass_hat_3>=0", "cap_hit_rate<=1", "tokens_per_solved<=100", "regression<=1", "coverage"], &[]);
    let report = report(&set_of(ids(2)), 2, |_| 0, options).await;
    let failed = report.sets[0].gates.iter().filter(|gate| gate.verdict == GateVerdict::Failed);
    assert_eq!(failed.count(), 5);
}

#[tokio::test]
async fn text_and_code_agree() {
    let rules = ExitRules::default();
    let strict = ExitRules { require_evidence: true, ..rules };
    let few = set_of(ids(4));
    let good = report(&few, 1, |_| 1, gated(&["pass_rate>=0.9"], &[])).await;
    let bad = report(&few, 1, |case| u32::from(case > 0), gated(&["pass_rate>=0.9"], &[])).await;
    let ungated = report(&few, 1, |_| 0, ReportOptions::default()).await;
    let lines: Vec<String> = [(&good, &rules), (&good, &strict), (&bad, &rules), (&ungated, &rules)]
        .map(|(report, rules)| format!("{} {}", report.exit_code(rules), report.verdict(rules)))
        .into();
    insta::assert_snapshot!(lines.join("\n"), @"
    0 PASS: 1 gate does not fail, and may hold by luck; 4 of 4 trials passed
    107 INCONCLUSIVE: set: pass_rate>=0.9 (1.000, 95 % 0.510 to 1.000)
    100 FAIL: set: pass_rate>=0.9 (0.750, 95 % 0.301 to 0.954)
    0 PASS: no gate was asked for; 0 of 4 trials passed
    ");
}

#[tokio::test]
async fn a_regression_needs_a_margin_and_evidence() {
    let set = set_of(ids(40));
    let old = report(&set, 1, |case| u32::from(case < 30), ReportOptions::default()).await;
    let baseline = Baseline::bless(&old, "set").unwrap();
    let against =
        |passes: fn(u32) -> u32| report(&set, 1, passes, gated(&["regression<=0.05", "coverage"], &[&baseline]));
    let same = against(|case| u32::from(case < 30)).await;
    let small = against(|case| u32::from(case < 27)).await;
    let large = against(|case| u32::from(case < 24)).await;
    let gates: Vec<String> = [&same, &small, &large].map(|report| verdicts(report).remove(0)).into();
    insta::assert_snapshot!(gates.join("\n"), @"
    Passed regression<=0.05: +0.0 points over 40 pairs, p of harm 1.0000 (mcnemar); drops below 11.9 points go unseen
    Inconclusive regression<=0.05: -7.5 points over 40 pairs, p of harm 0.1250 (mcnemar); drops below 12.1 points go unseen
    Failed regression<=0.05: -15.0 points over 40 pairs, p of harm 0.0156 (mcnemar); drops below 17.2 points go unseen
    ");
    let comparison = large.sets[0].comparison.as_ref().unwrap();
    let worse: Vec<&str> = comparison.worse.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(worse, ["case-0024", "case-0025", "case-0026", "case-0027", "case-0028", "case-0029"]);
}

#[tokio::test]
async fn what_is_better_everywhere_is_no_regression() {
    let set = set_of(ids(8));
    let old = report(&set, 1, |_| 0, ReportOptions::default()).await;
    let baseline = Baseline::bless(&old, "set").unwrap();
    let new = report(&set, 1, |_| 1, gated(&["regression<=0.05"], &[&baseline])).await;
    assert_eq!(new.sets[0].gates[0].verdict, GateVerdict::Passed, "{:?}", new.sets[0].gates);
}

#[tokio::test]
async fn repeats_are_compared_by_case() {
    let set = set_of(ids(6));
    let old = report(&set, 3, |case| [3, 3, 2, 1, 0, 2][case as usize], ReportOptions::default()).await;
    let baseline = Baseline::bless(&old, "set").unwrap();
    let new = report(&set, 3, |case| [3, 2, 2, 1, 0, 1][case as usize], gated(&[], &[&baseline])).await;
    let comparison = new.sets[0].comparison.as_ref().unwrap();
    assert!((comparison.difference + 1.0 / 9.0).abs() < 1e-12);
    let interval = comparison.interval.unwrap();
    assert!(interval.low < -1.0 / 9.0 && interval.high > 0.0);
    // The mean square of the differences stands for the share of changed cases: here 1/27 in 6 cases.
    let detectable = comparison.detectable_drop.unwrap();
    assert!((detectable - 2.801_585 * (1.0_f64 / 27.0 / 6.0).sqrt()).abs() < 1e-6, "{detectable}");
    // Of the 4 ways to sign two equal differences, 2 are as large.
    assert_eq!((comparison.test.as_str(), comparison.p, comparison.p_harm), ("sign flip", Some(0.5), Some(0.25)));
}

#[tokio::test]
async fn a_case_of_the_baseline_that_is_missing_fails() {
    let old = report(&set_of(ids(5)), 1, |_| 1, ReportOptions::default()).await;
    let baseline = Baseline::bless(&old, "set").unwrap();
    let options = || gated(&["coverage"], &[&baseline]);
    let fewer = report(&set_of(ids(4)), 1, |_| 1, options()).await;
    assert_eq!(verdicts(&fewer), ["Failed coverage: 1 cases of the baseline were not run: case-0004"]);
    assert_eq!(fewer.exit_code(&ExitRules::default()), 100);
    let select = RunOptions { cases: vec!["case-0000".to_owned()], report: options(), ..repeats(1) };
    let selected = set_of(ids(5)).run(&acts(|_| Act::Good), select).await.unwrap();
    insta::assert_snapshot!(selected.verdict(&ExitRules::default()), @"PARTIAL: 4 cases of the baseline were not selected");
    assert_eq!(selected.exit_code(&ExitRules::default()), 5);
    assert_eq!(
        Baseline::bless(&selected, "set").unwrap_err().to_string(),
        "bless set `set`: only some of the cases were run; run all"
    );
}

#[tokio::test]
async fn a_quarantine_keeps_a_case_out_of_the_gates_until_its_day() {
    let mut set = set_of(ids(20));
    set.cases[3] = serde_json::from_value(json!({
        "id": "case-0003", "input": { "text": "go" }, "expected": ["good"],
        "quarantine": { "reason": "the service is down", "until": "2026-03-10" },
    }))
    .unwrap();
    let on = |day: u64| {
        let today = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * (20_513 + day)); // 2026-03-01 is day 0
        ReportOptions { today: Some(today), ..gated(&["case_rate>=1"], &[]) }
    };
    let passes = |case| u32::from(case != 3);
    let lasting = report(&set, 1, passes, on(9)).await;
    assert_eq!(verdicts(&lasting), ["Passed case_rate>=1: all 19 cases"]);
    assert_eq!(lasting.sets[0].cases[3].quarantine.as_deref(), Some("the service is down (until 2026-03-10)"));
    assert_eq!(lasting.sets[0].total.failed, 1);
    let over = report(&set, 1, passes, on(10)).await;
    assert_eq!(verdicts(&over), ["Failed case_rate>=1: 1 of 20 cases are below: case-0003"]);
    assert!(
        over.warnings
            .contains(&"set: the quarantine of case `case-0003` ended on 2026-03-10: it is in the gates".to_owned())
    );
}

#[tokio::test]
async fn a_baseline_is_kept_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let subject = Versioned(acts(|_| Act::Good), json!({ "model": "a" }));
    let old = set_of(ids(3)).run(&subject, repeats(2)).await.unwrap();
    let baseline = Baseline::bless(&old, "set").unwrap();
    let path = baseline.write(dir.path()).unwrap();
    assert_eq!(path, dir.path().join("set.json"));
    assert_eq!(Baseline::read(&path).unwrap(), baseline);
    let other = Versioned(acts(|_| Act::Good), json!({ "model": "b" }));
    let options = RunOptions { report: gated(&[], &[&baseline]), ..repeats(2) };
    let new = set_of(ids(3)).run(&other, options).await.unwrap();
    assert_eq!(new.sets[0].comparison.as_ref().unwrap().fingerprint_changes, [r#"/model: "a" -> "b""#]);
    assert_eq!(new.warnings, [r#"set: changed: /model: "a" -> "b""#]);
    std::fs::write(&path, r#"{ "schema": "agent-eval-baseline/9", "set": "set", "run": "x", "cases": {} }"#).unwrap();
    assert!(
        Baseline::read(&path)
            .unwrap_err()
            .to_string()
            .ends_with("it is `agent-eval-baseline/9`, not `agent-eval-baseline/1`")
    );
}

#[tokio::test]
async fn intervals_know_that_repeats_are_not_independent() {
    let alike = report(&set_of(ids(20)), 10, |case| if case % 2 == 0 { 10 } else { 0 }, ReportOptions::default()).await;
    let width = |report: &Report| {
        let interval = report.sets[0].total.interval.unwrap();
        interval.high - interval.low
    };
    // Wilson's interval of 100 in 200 would be 0.14 wide.
    assert!(width(&alike) > 0.35, "{}", width(&alike));
    let mut grouped = set_of(ids(20));
    for (at, case) in grouped.cases.iter_mut().enumerate() {
        case.group = Some(format!("{}", at % 4));
    }
    let grouped = report(&grouped, 10, |case| if case % 2 == 0 { 10 } else { 0 }, ReportOptions::default()).await;
    assert!(width(&grouped) > width(&alike), "{}", width(&grouped));
}

/// Five of ten cases that passed fail now: p of harm is 1/32 for one set alone.
#[tokio::test]
async fn a_drop_needs_more_evidence_where_several_sets_could_drop() {
    let sets = ["a", "b", "c"].map(|name| EvalSet { name: name.to_owned(), ..set_of(ids(10)) });
    let run = async |fallen: &str, count: usize, baselines: &[Baseline]| {
        let fallen = fallen.to_owned();
        let subject =
            acts(move |trial| if trial.key.set == fallen && number(trial) < 5 { Act::Bad } else { Act::Good });
        let runs: Vec<SetRun<'_>> =
            sets[..count].iter().map(|set| SetRun { set, subject: &subject, dir: None }).collect();
        let options = gated(&["regression<=0.1"], &baselines.iter().collect::<Vec<_>>());
        run_sets(&runs, RunOptions { report: options, ..repeats(1) }).await.unwrap()
    };
    let good = run("none", 3, &[]).await;
    let baselines = ["a", "b", "c"].map(|set| Baseline::bless(&good, set).unwrap());
    insta::assert_snapshot!(verdicts(&run("a", 1, &baselines).await).join("\n"), @"Failed regression<=0.1: -50.0 points over 10 pairs, p of harm 0.0312 (mcnemar); drops below 62.6 points go unseen");
    insta::assert_snapshot!(verdicts(&run("a", 3, &baselines).await).join("\n"), @"Inconclusive regression<=0.1: -50.0 points over 10 pairs, p of harm 0.0938 (mcnemar, Holm over 3 sets); drops below 62.6 points go unseen");
}
