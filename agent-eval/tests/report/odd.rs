//! Reports of nothing, of too much, and with holes.

use agent_core::Usage;
use agent_eval::{Comparison, Confusion, ExitRules, JudgeReport, LoopReport, Outcome, Report, TextOptions, Verdict};

use crate::sample::{case, failure, report, set};

/// All renderings; they do not panic, and say nothing that is no number.
fn renderings(report: &Report) -> [String; 5] {
    let rules = ExitRules::default();
    let all = [
        report.to_text(&TextOptions::default()),
        report.to_json(&rules),
        report.to_junit(&rules),
        report.to_markdown(&rules),
        report.to_html(&rules),
    ];
    for text in &all {
        assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    }
    all
}

fn empty_loop() -> LoopReport {
    LoopReport {
        cap: u32::MAX,
        trials: 0,
        at_risk: Vec::new(),
        passed: Vec::new(),
        hazard: Vec::new(),
        pass_by: Vec::new(),
        pass_by_interval: Vec::new(),
        pass_by_errors_fail: Vec::new(),
        resampling: Vec::new(),
        advantage: Vec::new(),
        advantage_interval: Vec::new(),
        expected_iterations: Vec::new(),
        tokens: Vec::new(),
        cost_per_solved: Vec::new(),
        marginal_cost: Vec::new(),
        exits: Vec::new(),
        stops: std::collections::BTreeMap::new(),
        cap_hits: agent_eval::Tally::default(),
        recommended_cap: None,
        min_gain: 0.01,
        supported_gain: None,
        confusion: agent_eval::Confusion::default(),
        wasted_iterations: 0,
        stall_rate: None,
        oscillation_rate: None,
        diagnoses: Vec::new(),
    }
}

#[test]
fn nothing_at_all_is_rendered() {
    let mut nothing = report(Vec::new());
    nothing.manifest.revision = None;
    nothing.manifest.sets.clear();
    insta::assert_snapshot!(renderings(&nothing)[0], @"
    run
      run         0198c5d2-run
      began       2026-03-01T10:00:00Z
      revision    –
      seed        7
      agent-eval  0.1.0
    ────────────
         Summary 0 sets, 0 cases, 0 trials: none; 0 tokens, 0.0 s of agents' time
      INCOMPLETE 0 trials were not run; resume it (exit code 106)
    ");
}

#[test]
fn what_is_not_known_is_a_dash() {
    let mut hollow = set("hollow", vec![case("never-run", &[], Vec::new())]);
    hollow.total = agent_eval::Tally::default();
    hollow.tags.clear();
    hollow.loops = Some(empty_loop());
    hollow.judges = Some(JudgeReport {
        outcomes: 0,
        repeats: 0,
        usage: Usage::default(),
        labels: Confusion::default(),
        alpha: None,
        kappa: None,
        sensitivity: None,
        specificity: None,
        observed_rate: None,
        corrected_rate: None,
    });
    hollow.comparison = Some(Comparison {
        baseline: String::new(),
        paired: 0,
        missing: Vec::new(),
        new: Vec::new(),
        worse: Vec::new(),
        better: Vec::new(),
        difference: 0.0,
        interval: None,
        test: String::new(),
        p: None,
        p_harm: None,
        detectable_drop: None,
        fingerprint_changes: Vec::new(),
    });
    let report = report(vec![hollow, set("", Vec::new())]);
    insta::assert_snapshot!(renderings(&report)[0], @"
    set hollow
         NOT RUN never-run  0/0        –  0 tokens

    hollow: trials
      pass rate     – (95 %: –)
      trials        none, of 1 case
      tokens        0 in, 0 out
      agents' time  0.0 s

    hollow: loop

      trials             0, cap 4294967295
      recommended cap    –
      cap hits           0/0 = – (95 %: –)
      stops              –
      accepted at exit   0 good, 0 bad (precision –)
      not accepted       0 good, 0 bad (recall –)
      wasted iterations  0
      stalls             – of later iterations
      oscillations       – of trials with 3 or more

    hollow: judges
      judged outcomes        0, each asked 0 times
      tokens of judging      0 in, 0 out
      agreement of repeats   – (Krippendorff's alpha)
      labels by people       none: how often the judge is right is not known
      agreement with labels  – (Cohen's kappa)
      sensitivity            – (95 %: –)
      specificity            – (95 %: –)
      judged pass rate       –
      corrected pass rate    – (Rogan and Gladen)

    hollow: against the baseline
      baseline         , 0 cases in both
      difference       +0.0 points (95 %: –)
      evidence         p –, of harm – ()
      cases            0 better, 0 worse
      detectable drop  –

    set

    : trials
      pass rate     – (95 %: –)
      trials        none, of 0 cases
      tokens        0 in, 0 out
      agents' time  0.0 s

      tag    passed  rate  95 %  tokens
      joins     0/0     –     –       0

    run
      run         0198c5d2-run
      began       2026-03-01T10:00:00Z
      revision    4f2c9ab with changes
      seed        7
      agent-eval  0.1.0
    ────────────
         Summary 2 sets, 1 case, 0 trials: none; 0 tokens, 0.0 s of agents' time
      INCOMPLETE 0 trials were not run; resume it (exit code 106)
    ");
}

#[test]
fn lists_of_different_lengths_are_padded() {
    let mut odd = empty_loop();
    odd.pass_by = vec![0.5];
    odd.exits = vec![u64::MAX, 0, 1];
    odd.tokens = vec![1e300, f64::INFINITY];
    let mut set = set("odd", vec![case("a", &[Verdict::Pass], Vec::new())]);
    set.loops = Some(odd);
    let rules = ExitRules::default();
    let report = report(vec![set]);
    assert!(report.to_html(&rules).contains("ended after iteration 3"));
    assert_eq!(report.to_markdown(&rules).lines().filter(|line| line.starts_with("| 3 | – |")).count(), 1);
    let text = report.to_text(&TextOptions::default());
    assert_eq!(text.lines().filter(|line| line.contains("█")).count(), 2, "{text}");
}

#[test]
fn a_thousand_cases_do_not_explode() {
    let long = "x".repeat(2_000);
    let failing = |at: u32| {
        let outcome = Outcome::fail(&long).with_diff(format!("- {long}\n+ {at}"));
        case(&format!("case-{at:04}"), &[Verdict::Fail], vec![failure(0, "rows", outcome, &long)])
    };
    let mut set = set("many", (0..1_000).map(failing).collect());
    let mut comparison = crate::sample::rich().sets[1].comparison.clone().unwrap();
    comparison.worse = (0..1_000).map(|at| (format!("case-{at:04}"), 1.0, 0.0)).collect();
    comparison.new = comparison.worse.iter().map(|(id, _, _)| id.clone()).collect();
    set.comparison = Some(comparison);
    let [text, json, junit, markdown, html] = renderings(&report(vec![set]));
    assert!(markdown.len() < 60_000, "{}", markdown.len());
    assert!(markdown.contains("The JSON and HTML reports have"));
    assert!(text.len() < 1_000_000, "{}", text.len());
    assert!(text.contains("failures of 950 more cases are in the JSON and HTML reports"));
    for whole in [json, junit, html] {
        assert!((6_000_000..10_000_000).contains(&whole.len()), "{}", whole.len());
    }
}

#[test]
fn a_comment_stays_short_whatever_there_is_much_of() {
    let long = "y".repeat(5_000);
    let sets = (0..100).map(|at| {
        let mut set = set(&format!("set-{at}"), vec![case("a", &[Verdict::Fail], Vec::new())]);
        set.tags = (0..1_000).map(|tag| (format!("tag-{tag}"), set.total.clone())).collect();
        set.gates = vec![crate::sample::gate("pass_rate>=0.9", agent_eval::GateVerdict::Failed, &long); 100];
        set
    });
    let mut report = report(sets.collect());
    report.warnings = vec![long; 1_000];
    let markdown = report.to_markdown(&ExitRules::default());
    assert!((45_000..65_000).contains(&markdown.len()), "{}", markdown.len());
    assert!(markdown.contains("The JSON and HTML reports have 9"), "{markdown}");
}
