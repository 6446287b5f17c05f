//! Loops: worked examples through the real engine, and what their numbers say.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use agent_core::{Agent, AgentExt, Session, StopReason, agent_fn, testing::ScriptedAgent};
use agent_eval::{LoopReport, Outcome, RunOptions, Verdict, subject_fn};
use agent_loop::{ContextMode, LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};

use crate::support::*;

#[track_caller]
fn near(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{actual:?}");
    let close = |(a, e): (&f64, &f64)| (a - e).abs() <= 1e-12 * e.abs().max(1.0);
    assert!(actual.iter().zip(expected).all(close), "{actual:?} is not {expected:?}");
}

#[track_caller]
fn all_near(actual: &[Option<f64>], expected: &[Option<f64>]) {
    let defined = |list: &[Option<f64>]| list.iter().map(Option::is_some).collect::<Vec<bool>>();
    assert_eq!(defined(actual), defined(expected), "{actual:?}");
    let plain = |list: &[Option<f64>]| list.iter().flatten().copied().collect::<Vec<f64>>();
    near(&plain(actual), &plain(expected));
}

/// One trial a case; `counts[k]` of them pass at k + 1, then come `failing` that fail in iteration 3, then `never`.
async fn loop_of(counts: &[u32], failing: u32, never: u32, cap: u32) -> LoopReport {
    let mut writers: Vec<Writer> = Vec::new();
    for (good_at, count) in (1..).zip(counts) {
        writers.extend((0..*count).map(|_| Writer::GoodAt(good_at)));
    }
    writers.extend((0..failing).map(|_| Writer::FailsAt(3)));
    writers.extend((0..never).map(|_| Writer::Never));
    let set = set_of(ids(u32::try_from(writers.len()).unwrap()));
    let subject = writes(cap, move |trial| writers[number(trial) as usize]);
    run(&set, &subject, RunOptions::default()).await.0.loops.expect("a loop")
}

#[tokio::test]
async fn the_cap_is_read_from_the_curve() {
    let report = loop_of(&[70, 20, 6], 0, 4, 4).await;
    assert_eq!((report.trials, report.cap, &report.at_risk), (100, 4, &vec![100, 30, 10, 4]));
    near(&report.pass_by, &[0.7, 0.9, 0.96, 0.96]);
    all_near(&report.hazard, &[Some(0.7), Some(2.0 / 3.0), Some(0.6), Some(0.0)]);
    near(&report.expected_iterations, &[1.0, 1.3, 1.4, 1.44]);
    assert_eq!((report.recommended_cap, report.cap_hits.passed), (Some(3), 4));
    assert_eq!(report.exits, [70, 20, 6, 4]);
    assert_eq!(report.stops, [("completed".to_owned(), 96), ("iteration_limit".to_owned(), 4)].into());
    assert!((report.supported_gain.unwrap() - (1.0 - 0.05_f64.powf(0.01))).abs() < 1e-12);
    let interval = report.pass_by_interval[1].unwrap();
    assert!(0.8 < interval.low && interval.low < 0.9 && 0.9 < interval.high && interval.high < 1.0, "{interval:?}");
}

#[tokio::test]
async fn an_error_is_censored_and_a_failure_in_the_lower_bound() {
    let report = loop_of(&[10, 4, 2, 0, 1], 1, 2, 5).await;
    assert_eq!((report.at_risk, report.passed), (vec![20, 10, 5, 3, 3], vec![10, 4, 2, 0, 1]));
    near(&report.pass_by, &[0.5, 0.7, 0.82, 0.82, 0.88]);
    near(&report.pass_by_errors_fail, &[0.5, 0.7, 0.8, 0.8, 0.85]);
    assert_eq!(report.stops["error"], 1);
    assert_eq!((report.cap_hits.passed, report.cap_hits.failed), (2, 18));
}

#[tokio::test]
async fn tokens_are_set_against_what_they_solve() {
    let report = loop_of(&[10, 4, 2, 0, 1], 0, 3, 5).await;
    near(&report.tokens, &[1000.0, 1200.0, 1400.0, 1600.0, 1800.0]);
    all_near(
        &report.cost_per_solved,
        &[Some(2000.0), Some(32_000.0 / 14.0), Some(2525.0), Some(2925.0), Some(54_000.0 / 17.0)],
    );
    all_near(&report.marginal_cost, &[Some(2000.0), Some(3000.0), Some(4200.0), None, Some(7200.0)]);
}

#[tokio::test]
async fn the_loop_is_set_against_asking_afresh() {
    // By case and repeat: first drafts that are good 5, 2, 0 and 1 times of 5.
    const GOOD_AT: [[u32; 5]; 4] = [[1; 5], [1, 1, 2, 2, 2], [2, 3, 3, 4, 0], [1, 0, 0, 0, 0]];
    let subject = writes(5, |trial| match GOOD_AT[number(trial) as usize][trial.key.repeat as usize] {
        0 => Writer::Never,
        good_at => Writer::GoodAt(good_at),
    });
    let report = run(&set_of(ids(4)), &subject, repeats(5)).await.0.loops.unwrap();
    all_near(&report.resampling, &[Some(0.4), Some(0.525), Some(0.625), Some(0.7), Some(0.75)]);
    near(&report.pass_by, &[0.4, 0.6, 0.7, 0.75, 0.75]);
    all_near(&report.advantage, &[Some(0.0), Some(0.075), Some(0.075), Some(0.05), Some(0.0)]);
    all_near(&report.hazard, &[Some(0.4), Some(1.0 / 3.0), Some(0.25), Some(1.0 / 6.0), Some(0.0)]);
    insta::assert_snapshot!(report.diagnoses.join("\n"), @"
    feedback does not help: with 5 iterations the loop passes +0.0 points against 5 fresh answers (paired over cases; <= 0)
    the recommended cap is supported to 13.9 points only: 20 trials cannot rule out smaller gains
    ");
}

/// A loop whose evaluator is this function of the iteration and the text, around a writer of these drafts.
fn judged_by(drafts: &'static [&'static str], accepts: fn(u32, &str) -> bool, context: ContextMode) -> LoopAgent {
    let writer = drafts.iter().fold(ScriptedAgent::new("writer"), |writer, text| writer.says(*text));
    let checker = evaluate_fn("checker", move |cx| {
        if accepts(cx.iteration, &cx.last.text()) {
            LoopEvaluation::Satisfied
        } else {
            LoopEvaluation::feedback("again")
        }
    });
    let max_iterations = NonZeroU32::new(u32::try_from(drafts.len()).unwrap()).unwrap();
    LoopAgent::new("refine", writer, LoopOptions { max_iterations, context, ..LoopOptions::default() })
        .evaluator(checker)
}

#[tokio::test]
async fn the_checker_is_held_against_the_gold_checks() {
    const DRAFTS: [&[&str]; 4] = [&["bad"], &["good", "good", "bad", "good"], &["A", "B", "A"], &["x", "x", "x"]];
    let subject = subject_fn(|trial| {
        let number = number(trial) as usize;
        // The first accepts at once, the second in its 4th iteration, the others never.
        let accepts: fn(u32, &str) -> bool = match number {
            0 => |_, _| true,
            1 => |k, _| k == 4,
            _ => |_, _| false,
        };
        Box::pin(async move { Ok(Arc::new(judged_by(DRAFTS[number], accepts, ContextMode::Shared)) as _) })
    });
    let (set, trials) = run(&set_of(ids(4)), &subject, RunOptions::default()).await;
    let report = set.loops.unwrap();
    let confusion = report.confusion;
    assert_eq!((confusion.accepted_good, confusion.accepted_bad, confusion.rejected_bad), (1, 1, 2));
    assert_eq!(report.wasted_iterations, 3);
    assert_eq!(report.stall_rate, Some(0.5), "what follows a good draft does not count");
    assert_eq!(report.oscillation_rate, Some(2.0 / 3.0));
    near(&report.pass_by_errors_fail, &[0.25; 4]);
    let golds: Vec<Verdict> = trials[1].iterations.iter().map(|trace| trace.gold).collect();
    assert_eq!(golds, [Verdict::Pass, Verdict::Pass, Verdict::Fail, Verdict::Pass]);
    let accepted: Vec<bool> = trials[1].iterations.iter().map(|trace| trace.accepted).collect();
    assert_eq!(accepted, [false, false, false, true]);
}

#[tokio::test]
async fn drafts_are_judged_before_they_are_forgotten_and_the_loop_does_not_notice() {
    for context in [ContextMode::Shared, ContextMode::Fresh] {
        let agent = move || judged_by(&["one", "good", "three"], |_, _| false, context);
        let subject = subject_fn(move |_| Box::pin(async move { Ok(Arc::new(agent()) as _) }));
        let (_, trials) = run(&set_of(["a"]), &subject, RunOptions::default()).await;
        let seen: Vec<_> = trials[0].iterations.iter().map(|it| (it.iteration, it.draft.as_str(), it.gold)).collect();
        assert_eq!(seen, [(1, "one", Verdict::Fail), (2, "good", Verdict::Pass), (3, "three", Verdict::Fail)]);
        let alone = agent().ask(&mut Session::new(), "go").await.unwrap();
        let said = |events: &[agent_core::Event]| -> Vec<_> {
            events.iter().map(|event| (event.rewind, event.messages.clone(), event.path.clone())).collect()
        };
        assert_eq!(said(&trials[0].events), said(&alone.events));
    }
}

#[tokio::test]
async fn of_nested_loops_the_outermost_is_judged_or_the_one_that_is_named() {
    struct Nested(Option<&'static str>);
    #[async_trait::async_trait]
    impl agent_eval::Subject for Nested {
        async fn agent(&self, _: &agent_eval::TrialSpec<'_>) -> agent_core::Result<Arc<dyn Agent>> {
            let writer = ["1", "2", "3", "good"].into_iter().fold(ScriptedAgent::new("writer"), ScriptedAgent::says);
            Ok(Arc::new(until_good("outer", until_good("inner", writer, 2), 5)))
        }
        fn loop_name(&self) -> Option<&str> {
            self.0
        }
    }
    for (name, drafts) in
        [(None, vec![(1, "2"), (2, "good")]), (Some("inner"), vec![(1, "1"), (2, "2"), (1, "3"), (2, "good")])]
    {
        let (_, trials) = run(&set_of(["a"]), &Nested(name), RunOptions::default()).await;
        let seen: Vec<_> = trials[0].iterations.iter().map(|it| (it.iteration, it.draft.as_str())).collect();
        assert_eq!(seen, drafts);
    }
}

#[tokio::test(start_paused = true)]
async fn what_ended_before_a_time_out_is_kept() {
    let subject = subject_fn(|_| {
        let hangs = agent_fn("writer", |session, out| {
            Box::pin(async move {
                if session.messages().len() > 1 {
                    std::future::pending::<()>().await;
                }
                out.record(session, agent_core::Draft::message(agent_core::ChatMessage::assistant("bad"))).await;
                Ok(StopReason::Completed)
            })
        });
        Box::pin(async move { Ok(Arc::new(until_good("refine", hangs, 5)) as _) })
    });
    let options = RunOptions { timeout: Some(Duration::from_secs(5)), ..RunOptions::default() };
    let (report, trials) = run(&set_of(["a", "b"]), &subject, options).await;
    assert_eq!(trials[0].iterations.len(), 1);
    let loops = report.loops.unwrap();
    assert_eq!((loops.at_risk, loops.exits, loops.stops["error"]), (vec![2], vec![2], 2));
}

#[tokio::test]
async fn each_diagnosis_prints_its_rule() {
    let never = run(&set_of(ids(30)), &writes(3, |_| Writer::Never), repeats(3)).await.0.loops.unwrap();
    let at_once = run(&set_of(ids(300)), &writes(3, |_| Writer::GoodAt(1)), repeats(1)).await.0.loops.unwrap();
    let stuck = subject_fn(|_| {
        Box::pin(async { Ok(Arc::new(judged_by(&["x", "x", "x"], |k, _| k == 3, ContextMode::Shared)) as _) })
    });
    let stuck = run(&set_of(ids(300)), &stuck, repeats(1)).await.0.loops.unwrap();
    insta::assert_snapshot!(never.diagnoses.join("\n"), @"
    the exit signal never fires: 100 % of the trials ended at the cap (>= 95 %)
    feedback does not help: with 3 iterations the loop passes +0.0 points against 3 fresh answers (paired over cases; <= 0)
    the recommended cap is supported to 3.3 points only: 90 trials cannot rule out smaller gains
    ");
    insta::assert_snapshot!(at_once.diagnoses.join("\n"), @"the loop adds nothing: 100 % of the trials ended after one iteration (>= 95 %)");
    insta::assert_snapshot!(stuck.diagnoses.join("\n"), @"
    feedback does not reach the writer: 100 % of the later drafts equal the one before (>= 50 %)
    the loop accepts bad drafts: 300 of 300 accepted ones fail the gold checks; pass-by-k beyond their exit assumes that they would have gone on like the others
    ");
}

#[tokio::test]
async fn a_good_draft_that_is_repeated_is_no_stall() {
    let endless = subject_fn(|_| {
        let agent = judged_by(&["bad", "good", "good", "good", "good"], |_, _| false, ContextMode::Shared);
        Box::pin(async { Ok(Arc::new(agent) as _) })
    });
    let endless = run(&set_of(ids(300)), &endless, repeats(1)).await.0.loops.unwrap();
    assert_eq!(endless.stall_rate, Some(0.0));
    insta::assert_snapshot!(endless.diagnoses.join("\n"), @"the exit signal never fires: 100 % of the trials ended at the cap (>= 95 %)");
}

#[tokio::test]
async fn scorers_judge_the_end_or_each_iteration_too() {
    let strict: Arc<dyn agent_eval::Scorer> = Arc::new(Opinion(Some(Outcome::fail("dull"))));
    let golds = async |gold_scorers| {
        let options = RunOptions { scorers: vec![strict.clone()], gold_scorers, ..repeats(1) };
        let (report, trials) = run(&set_of(["a", "b"]), &writes(3, |_| Writer::GoodAt(2)), options).await;
        let golds: Vec<Verdict> = trials[0].iterations.iter().map(|trace| trace.gold).collect();
        (golds, report.loops.unwrap().diagnoses.remove(0))
    };
    let (end, diagnosis) = golds(false).await;
    assert_eq!(end, [Verdict::Fail, Verdict::Pass]);
    insta::assert_snapshot!(diagnosis, @"the curve is not the pass rate: 2 of 2 trials failed with a last draft that passes the checks of iterations; what judges the end alone (scorers, stop reasons) failed them");
    assert_eq!(golds(true).await.0, [Verdict::Fail, Verdict::Fail]);
}
