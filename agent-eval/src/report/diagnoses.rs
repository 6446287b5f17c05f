//! What a loop's numbers say, each by a rule that is printed with it.

use crate::{LoopReport, stats::Interval};

/// From this share of trials on, something always happens.
const ALWAYS: f64 = 0.95;
/// From this share of iterations on, drafts are repeated.
const REPEATED: f64 = 0.5;

/// `unheeded` trials ended with a draft that the iterations' checks pass, and failed.
pub(super) fn diagnose(report: &LoopReport, unheeded: u64) -> Vec<String> {
    let mut found = Vec::new();
    let trials = report.trials as f64;
    let share_of = |count: u64| count as f64 / trials;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if report.at_risk.iter().all(|count| *count == 0) {
        found.push(
            "no draft was judged: the set has no check that judges an iteration, so the curve is empty".to_owned(),
        );
    }
    if unheeded > 0 {
        found.push(format!(
            "the curve is not the pass rate: {unheeded} of {} trials failed with a last draft that passes the checks of \
             iterations; what judges the end alone (scorers, stop reasons) failed them",
            report.trials
        ));
    }
    let at_cap = share_of(report.cap_hits.passed);
    if at_cap >= ALWAYS {
        found
            .push(format!("the exit signal never fires: {} of the trials ended at the cap (>= 95 %)", percent(at_cap)));
    }
    let at_one = report.exits.first().map_or(0.0, |count| share_of(*count));
    if at_one >= ALWAYS && at_cap < ALWAYS {
        found.push(format!(
            "the loop adds nothing: {} of the trials ended after one iteration (>= 95 %)",
            percent(at_one)
        ));
    }
    found.extend(feedback(report));
    if let Some(rate) = report.stall_rate.filter(|rate| *rate >= REPEATED) {
        let share = percent(rate);
        found.push(format!(
            "feedback does not reach the writer: {share} of the later drafts equal the one before (>= 50 %)"
        ));
    }
    if report.confusion.accepted_bad > 0 {
        let (bad, all) =
            (report.confusion.accepted_bad, report.confusion.accepted_bad + report.confusion.accepted_good);
        found.push(format!(
            "the loop accepts bad drafts: {bad} of {all} accepted ones fail the gold checks; pass-by-k beyond their exit \
             assumes that they would have gone on like the others"
        ));
    }
    if report.supported_gain.is_some_and(|gain| gain > report.min_gain) {
        let gain = report.supported_gain.unwrap_or(1.0) * 100.0;
        found.push(format!(
            "the recommended cap is supported to {gain:.1} points only: {} trials cannot rule out smaller gains",
            report.trials
        ));
    }
    found
}

/// Whether feedback helps, at the largest cap for which asking afresh is known.
fn feedback(report: &LoopReport) -> Option<String> {
    let known = report.advantage.iter().rposition(Option::is_some).filter(|at| *at > 0)?;
    let gain = report.advantage[known]?;
    let interval: Option<Interval> = report.advantage_interval.get(known).copied().flatten();
    let (cap, points) = (known + 1, gain * 100.0);
    if gain <= 0.0 {
        return Some(format!(
            "feedback does not help: with {cap} iterations the loop passes {points:+.1} points against {cap} fresh answers \
             (paired over cases; <= 0)"
        ));
    }
    let low = interval.map_or(f64::NEG_INFINITY, |interval| interval.low);
    (low <= 0.0).then(|| {
        format!(
            "no evidence that feedback helps: with {cap} iterations the loop passes {points:+.1} points against {cap} fresh \
             answers, and the 95 % interval has 0 (paired over cases)"
        )
    })
}
