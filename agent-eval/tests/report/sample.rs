//! Reports that are built by hand.

use agent_core::Usage;
use agent_eval::{
    CaseReport, CheckOutcome, Comparison, Confusion, Failure, GateResult, GateVerdict, JudgeReport, LoopReport,
    Manifest, Outcome, PassAt, REPORT_SCHEMA, Report, SetReport, Tally, Verdict,
    stats::{Interval, wilson},
};
use serde_json::json;

use Verdict::{Error, Fail, Pass, Unscored};

#[expect(clippy::unnecessary_wraps, reason = "every interval of a report may be absent")]
fn within(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { low, high })
}

pub(crate) fn manifest() -> Manifest {
    Manifest {
        schema: "agent-eval-run/1".to_owned(),
        run: "0198c5d2-run".to_owned(),
        sets: [("sql".to_owned(), 18), ("calls".to_owned(), 2)].into(),
        seed: 7,
        fingerprint: json!({ "sql": { "model": "small-2" } }),
        revision: Some("4f2c9ab".to_owned()),
        dirty: true,
        partial: false,
        scored: false,
        began: "2026-03-01T10:00:00Z".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

pub(crate) fn tally(verdicts: &[Verdict], tokens: u64) -> Tally {
    let count = |verdict| verdicts.iter().filter(|other| **other == verdict).count() as u64;
    let (passed, trials) = (count(Pass), verdicts.len() as u64);
    Tally {
        passed,
        failed: count(Fail),
        unscored: count(Unscored),
        errors: count(Error),
        rate: (trials > 0)
            .then(|| f64::from(u32::try_from(passed).unwrap()) / f64::from(u32::try_from(trials).unwrap())),
        interval: wilson(passed, trials, 0.95),
        usage: Usage { input_tokens: tokens, output_tokens: tokens / 10, ..Usage::default() },
        judge_usage: Usage::default(),
        wall_ms: trials * 1_250,
    }
}

pub(crate) fn case(id: &str, verdicts: &[Verdict], failures: Vec<Failure>) -> CaseReport {
    CaseReport {
        id: id.to_owned(),
        tags: vec!["joins".to_owned()],
        group: None,
        tally: tally(verdicts, 1_200 * verdicts.len() as u64),
        verdicts: verdicts.to_vec(),
        quarantine: None,
        failures,
    }
}

pub(crate) fn failure(repeat: u32, check: &str, outcome: Outcome, answer: &str) -> Failure {
    let check = CheckOutcome { check: check.to_owned(), turn: None, outcome };
    Failure { repeat, error: None, checks: vec![check], answer: answer.to_owned() }
}

pub(crate) fn set(name: &str, cases: Vec<CaseReport>) -> SetReport {
    let verdicts: Vec<Verdict> = cases.iter().flat_map(|case| case.verdicts.clone()).collect();
    let tokens = cases.iter().map(|case| case.tally.usage.input_tokens).sum();
    let total = tally(&verdicts, tokens);
    SetReport {
        name: name.to_owned(),
        tags: [("joins".to_owned(), total.clone())].into(),
        total,
        cases,
        pass_at: Vec::new(),
        loops: None,
        judges: None,
        comparison: None,
        gates: Vec::new(),
    }
}

pub(crate) fn report(sets: Vec<SetReport>) -> Report {
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        manifest: manifest(),
        sets,
        warnings: Vec::new(),
        missing: 0,
        infrastructure_errors: 0,
        setup_errors: 0,
    }
}

pub(crate) fn gate(gate: &str, verdict: GateVerdict, detail: &str) -> GateResult {
    GateResult { gate: gate.to_owned(), verdict, detail: detail.to_owned() }
}

fn loops() -> LoopReport {
    LoopReport {
        cap: 4,
        trials: 18,
        at_risk: vec![18, 10, 6, 4],
        passed: vec![8, 4, 1, 0],
        hazard: vec![Some(8.0 / 18.0), Some(0.4), Some(1.0 / 6.0), Some(0.0)],
        pass_by: vec![0.444, 0.667, 0.722, 0.722],
        pass_by_interval: vec![within(0.25, 0.61), within(0.44, 0.83), within(0.5, 0.89), within(0.5, 0.89)],
        pass_by_errors_fail: vec![0.444, 0.667, 0.722, 0.722],
        resampling: vec![Some(0.444), Some(0.6), Some(0.68), None],
        advantage: vec![Some(0.0), Some(0.067), Some(0.042), None],
        advantage_interval: vec![within(0.0, 0.0), within(-0.02, 0.15), within(-0.05, 0.13), None],
        expected_iterations: vec![1.0, 1.56, 1.89, 2.11],
        tokens: vec![1_000.0, 1_450.4, 1_900.0, 2_350.0],
        cost_per_solved: vec![Some(2_250.0), Some(2_708.7), Some(3_377.0), Some(4_100.0)],
        marginal_cost: vec![Some(2_250.0), Some(3_625.0), Some(11_400.0), None],
        exits: vec![8, 4, 2, 4],
        stops: [("completed".to_owned(), 13), ("iteration_limit".to_owned(), 4), ("error".to_owned(), 1)].into(),
        cap_hits: Tally {
            passed: 4,
            failed: 14,
            rate: Some(4.0 / 18.0),
            interval: within(0.09, 0.452),
            ..Tally::default()
        },
        recommended_cap: Some(3),
        min_gain: 0.01,
        supported_gain: Some(0.153),
        confusion: Confusion { accepted_good: 12, accepted_bad: 1, rejected_good: 0, rejected_bad: 4 },
        wasted_iterations: 2,
        stall_rate: Some(0.1),
        oscillation_rate: None,
        diagnoses: vec![
            "the loop accepts bad drafts: 1 of 13 accepted ones fail the gold checks; pass-by-k beyond their exit \
             assumes that they would have gone on like the others"
                .to_owned(),
        ],
    }
}

fn comparison() -> Comparison {
    Comparison {
        baseline: "0198b000-run".to_owned(),
        paired: 5,
        missing: vec!["retired".to_owned()],
        new: vec!["window".to_owned()],
        worse: vec![("group-by".to_owned(), 1.0, 1.0 / 3.0), ("left-join".to_owned(), 1.0, 0.0)],
        better: vec![("limit".to_owned(), 2.0 / 3.0, 1.0)],
        difference: -0.267,
        interval: within(-0.61, 0.08),
        test: "sign flip".to_owned(),
        p: Some(0.25),
        p_harm: Some(0.125),
        detectable_drop: Some(0.56),
        fingerprint_changes: vec!["sql.model: \"small-1\" → \"small-2\"".to_owned()],
    }
}

/// A report with something of everything.
pub(crate) fn rich() -> Report {
    let wrong =
        || Outcome::fail("the rows differ").with_value(0.5).with_diff("  id | total\n- 1 | 20\n+ 1 | 10\n  2 | 30");
    let mut broken = failure(0, "rows", Outcome::error("the checker could not be started"), "");
    broken.error = Some("request the model: connection refused".to_owned());
    let mut flaky =
        case("window", &[Unscored; 3], vec![failure(0, "judge", Outcome::unscored("no rubric"), "SELECT 1")]);
    flaky.quarantine = Some("the rubric is being written (until 2026-04-01)".to_owned());
    let mut sql = set(
        "sql",
        vec![
            case("exists", &[Pass, Pass, Error], vec![broken]),
            case(
                "group-by",
                &[Fail, Pass, Fail],
                vec![
                    failure(0, "rows", wrong(), "SELECT id, sum(total)\nFROM orders\nGROUP BY 1;"),
                    failure(2, "rows", wrong(), "SELECT id, sum(total)\nFROM orders\nGROUP BY 1;"),
                ],
            ),
            case("left-join", &[Fail; 3], (0..3).map(|at| failure(at, "rows", Outcome::fail("no rows"), "")).collect()),
            case("limit", &[Pass; 3], Vec::new()),
            case("order-by", &[Pass; 3], Vec::new()),
            flaky,
        ],
    );
    sql.pass_at = [(1, 0.5, 0.5), (2, 0.62, 0.41), (3, 0.67, 0.33)]
        .map(|(k, any, all)| PassAt { k, any: Some(any), all: Some(all) })
        .to_vec();
    sql.loops = Some(loops());
    sql.comparison = Some(comparison());
    sql.judges = Some(JudgeReport {
        outcomes: 15,
        repeats: 5,
        usage: Usage { input_tokens: 9_000, output_tokens: 600, ..Usage::default() },
        labels: Confusion { accepted_good: 19, accepted_bad: 2, rejected_good: 1, rejected_bad: 8 },
        alpha: Some(0.81),
        kappa: Some(0.769),
        sensitivity: Some(0.95),
        specificity: Some(0.8),
        observed_rate: Some(0.6),
        corrected_rate: Some(0.533),
    });
    sql.gates = vec![
        gate("pass_rate>=0.5", GateVerdict::Passed, "0.500"),
        gate("no_regression", GateVerdict::Failed, "worse by 26.7 points, margin 5.0"),
        gate("cap_hit_rate<=0.3", GateVerdict::Inconclusive, "0.222, the 95 % interval has 0.3"),
    ];
    let mut report = report(vec![
        set("calls", vec![case("parallel", &[Pass], Vec::new()), case("simple", &[Pass], Vec::new())]),
        sql,
    ]);
    report.warnings = vec![
        "sql: changed: sql.model: \"small-1\" → \"small-2\"".to_owned(),
        "1 of 20 trials failed because of the infrastructure; they count as not passed".to_owned(),
    ];
    report.infrastructure_errors = 1;
    report
}

/// A report that passes, though not all trials did.
pub(crate) fn tolerated() -> Report {
    let mut set = set(
        "calls",
        vec![
            case("parallel", &[Pass, Fail], vec![failure(1, "calls", Outcome::fail("one call is missing"), "")]),
            case("simple", &[Pass, Pass], Vec::new()),
        ],
    );
    set.gates = vec![gate("pass_rate>=0.7", GateVerdict::Passed, "0.750")];
    report(vec![set])
}
