//! What the iterations of a loop come to.

use std::collections::BTreeMap;

use agent_core::StopReason;

use super::{
    diagnoses::diagnose,
    row::Row,
    tally::{CONFIDENCE, Resampling, clusters},
};
use crate::{
    CaseReport, Confusion, IterationTrace, LoopReport, Tally, Verdict,
    stats::{
        Draft, FirstPass, Interval, bootstrap_of, choose_cap, classify_drafts, loop_curve, pass_at_k,
        resampling_baseline, supported_gain,
    },
};

/// What a report needs of an iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    gold: Verdict,
    accepted: bool,
    draft: Draft,
    tokens: u64,
}

impl Step {
    /// Of the iterations of a trial.
    pub(super) fn all(traces: &[IterationTrace]) -> Box<[Self]> {
        let drafts = classify_drafts(&traces.iter().map(|trace| trace.digest).collect::<Vec<u64>>());
        let step = |(trace, draft): (&IterationTrace, Draft)| Self {
            gold: trace.gold,
            accepted: trace.accepted,
            draft,
            tokens: trace.usage.total(),
        };
        traces.iter().zip(drafts).map(step).collect()
    }
}

/// One case's trials that have a loop: those with iterations, and those that failed before the first one ended.
struct LoopCase<'a> {
    rows: Vec<&'a Row>,
    firsts: Vec<FirstPass>,
}

/// The loop of these cases; none if no trial has one.
pub(super) fn loop_report(
    cases: &[(&CaseReport, Vec<&Row>)],
    min_gain: f64,
    resampling: Resampling,
) -> Option<LoopReport> {
    let longest = cases.iter().flat_map(|(_, rows)| rows).map(|row| row.steps.len()).max()?;
    let cap = u32::try_from(longest).ok().filter(|cap| *cap > 0)?;
    let in_loop = |row: &&Row| !row.steps.is_empty() || row.failed;
    let (reports, cases): (Vec<&CaseReport>, Vec<LoopCase<'_>>) = cases
        .iter()
        .map(|(report, rows)| {
            let rows: Vec<&Row> = rows.iter().copied().filter(in_loop).collect();
            let firsts = rows.iter().map(|row| first_pass(row)).collect();
            (*report, LoopCase { rows, firsts })
        })
        .filter(|(_, case)| !case.rows.is_empty())
        .unzip();
    let clusters = clusters(&reports);
    let firsts: Vec<FirstPass> = cases.iter().flat_map(|case| case.firsts.iter().copied()).collect();
    let rows: Vec<&Row> = cases.iter().flat_map(|case| case.rows.iter().copied()).collect();
    let curve = loop_curve(&firsts, cap)?;
    let trials = rows.len() as u64;
    let Costs { tokens, per_solved, marginal } = costs(&rows, &firsts, cap);
    let first_drafts: Vec<(u64, u64)> = cases.iter().map(LoopCase::first_drafts).collect();
    let gains = gains(&cases, &first_drafts, cap);
    let resampled = |statistic: &dyn Fn(&[usize]) -> Vec<f64>| {
        bootstrap_of(clusters.len(), CONFIDENCE, resampling.resamples, resampling.seed, statistic)
    };
    let parts: Vec<Vec<(u64, u64)>> = clusters.iter().map(|members| risk_and_passes(members, &cases, cap)).collect();
    let advantage_interval = gains.iter().map(|gains| {
        let gains = gains.as_ref().filter(|_| clusters.len() >= 2)?;
        *resampled(&|drawn| vec![mean(drawn.iter().flat_map(|at| &clusters[*at]).map(|case| gains[*case]))]).first()?
    });

    let mut report = LoopReport {
        cap,
        trials,
        pass_by_errors_fail: (1..=cap).map(|k| solved(&firsts, k) / trials as f64).collect(),
        resampling: (1..=cap).map(|k| resampling_baseline(&first_drafts, u64::from(k))).collect(),
        advantage: gains.iter().map(|gains| gains.as_ref().map(|gains| mean(gains.iter().copied()))).collect(),
        advantage_interval: advantage_interval.collect::<Vec<Option<Interval>>>(),
        pass_by_interval: pass_by_intervals(&parts, cap, resampling),
        tokens,
        cost_per_solved: per_solved,
        marginal_cost: marginal,
        exits: (1..=longest).map(|k| rows.iter().filter(|row| row.steps.len() == k).count() as u64).collect(),
        stops: stops(&rows),
        cap_hits: cap_hits(&rows),
        recommended_cap: choose_cap(&curve.pass_by, min_gain),
        min_gain,
        supported_gain: supported_gain(trials, CONFIDENCE),
        confusion: confusion(&rows),
        wasted_iterations: rows.iter().zip(&firsts).map(|(row, first)| wasted(row, *first)).sum(),
        stall_rate: stall_rate(&rows, &firsts),
        oscillation_rate: oscillation_rate(&rows),
        diagnoses: Vec::new(),
        at_risk: curve.at_risk,
        passed: curve.passed,
        hazard: curve.hazard,
        pass_by: curve.pass_by,
        expected_iterations: curve.expected_iterations,
    };
    let is_unheeded =
        |row: &&&Row| row.verdict == Verdict::Fail && row.steps.last().is_some_and(|s| s.gold == Verdict::Pass);
    report.diagnoses = diagnose(&report, rows.iter().filter(is_unheeded).count() as u64);
    Some(report)
}

impl LoopCase<'_> {
    /// How many first drafts were judged, and how many of them are good: independent samples of what asking once gives.
    fn first_drafts(&self) -> (u64, u64) {
        let golds = || self.rows.iter().filter_map(|row| row.steps.first()).map(|step| step.gold);
        let judged = golds().filter(|gold| matches!(gold, Verdict::Pass | Verdict::Fail)).count();
        (judged as u64, golds().filter(|gold| *gold == Verdict::Pass).count() as u64)
    }

    fn share_passed_by(&self, by: u32) -> f64 {
        solved(&self.firsts, by) / self.firsts.len() as f64
    }
}

/// How many passed by this iteration.
fn solved(firsts: &[FirstPass], by: u32) -> f64 {
    firsts.iter().filter(|first| matches!(first, FirstPass::At(k) if *k <= by)).count() as f64
}

/// What iterations cost, in tokens; the first one's comes first.
#[derive(Default)]
struct Costs {
    /// Of a trial in it, as a mean.
    tokens: Vec<f64>,
    /// Of all until it ends, for each trial solved by then.
    per_solved: Vec<Option<f64>>,
    /// Of all in it, for each trial solved in it.
    marginal: Vec<Option<f64>>,
}

fn costs(rows: &[&Row], firsts: &[FirstPass], cap: u32) -> Costs {
    let ratio = |top: f64, bottom: f64| (bottom > 0.0).then(|| top / bottom);
    let mut costs = Costs::default();
    let mut spent = 0.0;
    for k in 1..=cap {
        let steps = || rows.iter().filter_map(|row| row.steps.get(k as usize - 1));
        let used: f64 = steps().map(|step| step.tokens as f64).sum();
        spent += used;
        costs.tokens.push(ratio(used, steps().count() as f64).unwrap_or(0.0));
        costs.per_solved.push(ratio(spent, solved(firsts, k)));
        costs.marginal.push(ratio(used, solved(firsts, k) - solved(firsts, k - 1)));
    }
    costs
}

/// When a trial first passed. A draft that could not be judged tells nothing of what comes after it.
fn first_pass(row: &Row) -> FirstPass {
    for (iteration, step) in (1..).zip(&row.steps) {
        match step.gold {
            Verdict::Pass => return FirstPass::At(iteration),
            Verdict::Fail => (),
            Verdict::Unscored | Verdict::Error => return FirstPass::Censored(iteration),
        }
    }
    let finished = u32::try_from(row.steps.len()).unwrap_or(u32::MAX);
    if row.failed { FirstPass::Censored(finished.saturating_add(1)) } else { FirstPass::NeverWithin(finished) }
}

/// For each cap, what the loop gains in each case over asking afresh as often; none where a case has too few repeats.
fn gains(cases: &[LoopCase<'_>], first_drafts: &[(u64, u64)], cap: u32) -> Vec<Option<Vec<f64>>> {
    let at = |k: u32| {
        let gain = |(case, (n, c)): (&LoopCase<'_>, &(u64, u64))| {
            Some(case.share_passed_by(k) - pass_at_k(*n, *c, u64::from(k))?)
        };
        cases.iter().zip(first_drafts).map(gain).collect()
    };
    (1..=cap).map(at).collect()
}

/// Of the cases of a cluster: trials at risk in each iteration, and those that passed in it.
fn risk_and_passes(members: &[usize], cases: &[LoopCase<'_>], cap: u32) -> Vec<(u64, u64)> {
    let firsts: Vec<FirstPass> = members.iter().flat_map(|at| cases[*at].firsts.iter().copied()).collect();
    let curve = loop_curve(&firsts, cap);
    curve.map(|curve| curve.at_risk.into_iter().zip(curve.passed).collect()).unwrap_or_default()
}

/// 95 % of the curve, by bootstrap over clusters; none for fewer than 2 of them.
fn pass_by_intervals(parts: &[Vec<(u64, u64)>], cap: u32, resampling: Resampling) -> Vec<Option<Interval>> {
    if parts.len() < 2 {
        return vec![None; cap as usize];
    }
    let curve = |drawn: &[usize]| resampled_curve(drawn, parts, cap);
    bootstrap_of(parts.len(), CONFIDENCE, resampling.resamples, resampling.seed, curve)
}

/// The curve of a resample of clusters.
fn resampled_curve(drawn: &[usize], parts: &[Vec<(u64, u64)>], cap: u32) -> Vec<f64> {
    let mut sums = vec![(0_u64, 0_u64); cap as usize];
    for part in drawn.iter().map(|at| &parts[*at]) {
        for (sum, (at_risk, passed)) in sums.iter_mut().zip(part) {
            sum.0 += at_risk;
            sum.1 += passed;
        }
    }
    let survive = |survival: &mut f64, (at_risk, passed): (u64, u64)| {
        if at_risk > 0 {
            *survival *= 1.0 - passed as f64 / at_risk as f64;
        }
        Some(1.0 - *survival)
    };
    sums.into_iter().scan(1.0, survive).collect()
}

fn stops(rows: &[&Row]) -> BTreeMap<String, u64> {
    let mut stops = BTreeMap::new();
    for row in rows {
        *stops.entry(LoopReport::stop_key(row.stop)).or_default() += 1;
    }
    stops
}

fn cap_hits(rows: &[&Row]) -> Tally {
    let hits = rows.iter().filter(|row| row.stop == Some(StopReason::IterationLimit)).count() as u64;
    Tally { passed: hits, failed: rows.len() as u64 - hits, ..Tally::default() }.with_rate()
}

/// The loop's verdict at its exit against the gold checks; trials that failed had no exit.
fn confusion(rows: &[&Row]) -> Confusion {
    let mut confusion = Confusion::default();
    for last in rows.iter().filter(|row| !row.failed).filter_map(|row| row.steps.last()) {
        match last.gold {
            Verdict::Pass => confusion.add(last.accepted, true),
            Verdict::Fail => confusion.add(last.accepted, false),
            Verdict::Unscored | Verdict::Error => (),
        }
    }
    confusion
}

fn wasted(row: &Row, first: FirstPass) -> u64 {
    match first {
        FirstPass::At(good) => row.steps.len() as u64 - u64::from(good),
        FirstPass::NeverWithin(_) | FirstPass::Censored(_) => 0,
    }
}

/// To repeat a draft that is good already is no fault of the writer: those after the first good one are left out.
fn stall_rate(rows: &[&Row], firsts: &[FirstPass]) -> Option<f64> {
    let to_first_pass = |(row, first): (&&Row, &FirstPass)| match first {
        FirstPass::At(good) => *good as usize,
        FirstPass::NeverWithin(_) | FirstPass::Censored(_) => row.steps.len(),
    };
    let later = || rows.iter().zip(firsts).flat_map(|pair| pair.0.steps.iter().take(to_first_pass(pair)).skip(1));
    let stalls = later().filter(|step| step.draft == Draft::Stall).count();
    let later = later().count();
    (later > 0).then(|| stalls as f64 / later as f64)
}

fn oscillation_rate(rows: &[&Row]) -> Option<f64> {
    let long: Vec<&&Row> = rows.iter().filter(|row| row.steps.len() >= 3).collect();
    let returned = long.iter().filter(|row| row.steps.iter().any(|step| step.draft == Draft::Oscillation)).count();
    (!long.is_empty()).then(|| returned as f64 / long.len() as f64)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[cfg(test)]
mod tests {
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;

    /// Cases of two kinds, whose writers pass an iteration with probability 0.8 or 0.3; three trials each.
    fn simulate(rng: &mut ChaCha8Rng, cases: usize, cap: u32) -> Vec<Vec<(u64, u64)>> {
        let mut chance = |p: f64| f64::from(rng.next_u32()) < p * f64::from(u32::MAX);
        let mut case = || {
            let hazard = if chance(0.5) { 0.8 } else { 0.3 };
            let mut trial = || (1..=cap).find(|_| chance(hazard)).map_or(FirstPass::NeverWithin(cap), FirstPass::At);
            let curve = loop_curve(&[trial(), trial(), trial()], cap).expect("trials");
            curve.at_risk.into_iter().zip(curve.passed).collect()
        };
        (0..cases).map(|_| case()).collect()
    }

    #[test]
    fn the_interval_of_the_curve_has_the_truth_in_it_as_often_as_it_says() {
        const RUNS: u64 = 1_000;
        let truth: Vec<f64> = (1..=3).map(|k| 1.0 - f64::midpoint(0.2_f64.powi(k), 0.7_f64.powi(k))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut covered = [0_u64; 3];
        for seed in 0..RUNS {
            let parts = simulate(&mut rng, 80, 3);
            let intervals = pass_by_intervals(&parts, 3, Resampling { resamples: 200, seed });
            for ((covered, interval), truth) in covered.iter_mut().zip(intervals).zip(&truth) {
                let Interval { low, high } = interval.expect("more than one case");
                *covered += u64::from(low <= *truth && *truth <= high);
            }
        }
        let shares = covered.map(|covered| covered as f64 / RUNS as f64);
        assert!(shares.iter().all(|share| (0.93..=0.97).contains(share)), "{shares:?}");
    }
}
