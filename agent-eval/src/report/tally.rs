//! Counts of trials, and how sure their rates are.

use std::collections::BTreeMap;

use super::row::Row;
use crate::{
    CaseReport, Tally, Verdict,
    stats::{Interval, bootstrap_of, wilson},
};

pub(super) const CONFIDENCE: f64 = 0.95;

/// How cases are resampled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resampling {
    pub(super) resamples: usize,
    pub(super) seed: u64,
}

impl Tally {
    /// All trials.
    pub fn trials(&self) -> u64 {
        self.passed + self.failed + self.unscored + self.errors
    }

    /// All of them together, without a rate.
    pub(super) fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for Self { passed, failed, unscored, errors, usage, judge_usage, wall_ms, rate: _, interval: _ } in parts {
            all.passed += passed;
            all.failed += failed;
            all.unscored += unscored;
            all.errors += errors;
            all.usage += *usage;
            all.judge_usage += *judge_usage;
            all.wall_ms = all.wall_ms.saturating_add(*wall_ms);
        }
        all
    }

    /// passed / all, with Wilson's interval.
    pub(super) fn with_rate(mut self) -> Self {
        let trials = self.trials();
        self.rate = (trials > 0).then(|| self.passed as f64 / trials as f64);
        self.interval = wilson(self.passed, trials, CONFIDENCE);
        self
    }

    fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Pass => &mut self.passed,
            Verdict::Fail => &mut self.failed,
            Verdict::Unscored => &mut self.unscored,
            Verdict::Error => &mut self.errors,
        } += 1;
    }
}

/// The trials of one case.
pub(super) fn count<'a>(trials: impl Iterator<Item = &'a Row>) -> Tally {
    let mut tally = Tally::default();
    for row in trials {
        tally.add(row.verdict);
        tally.usage += row.usage;
        tally.judge_usage += row.judge_usage;
        tally.wall_ms = tally.wall_ms.saturating_add(row.wall_ms);
    }
    tally.with_rate()
}

/// The trials of several cases.
pub(super) fn total(cases: &[&CaseReport], resampling: Resampling) -> Tally {
    let all = Tally::sum(cases.iter().map(|case| &case.tally));
    let shares = cases.iter().map(|case| (case.tally.passed as f64, case.tally.trials() as f64));
    let interval = ratio_interval(cases, &shares.collect::<Vec<_>>(), resampling);
    Tally { interval, ..all.with_rate() }
}

/// The cases that are not independent of each other, together: those of a group, and each other case by itself.
pub(super) fn clusters(cases: &[&CaseReport]) -> Vec<Vec<usize>> {
    let mut clusters: BTreeMap<(bool, &str), Vec<usize>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        let key = case.group.as_deref().map_or((false, case.id.as_str()), |group| (true, group));
        clusters.entry(key).or_default().push(at);
    }
    clusters.into_values().collect()
}

/// 95 % of a ratio of sums, such as passed / trials: `shares` has the part of each case, and what is independent is
/// resampled. See [`Tally::interval`] for where Wilson's interval stands in.
#[expect(clippy::float_cmp, reason = "rates are compared that are one division of small counts")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded share of a count")]
pub(super) fn ratio_interval(cases: &[&CaseReport], shares: &[(f64, f64)], resampling: Resampling) -> Option<Interval> {
    let sum = |members: &[usize]| {
        members.iter().fold((0.0, 0.0), |(top, bottom), at| (top + shares[*at].0, bottom + shares[*at].1))
    };
    let parts: Vec<(f64, f64)> =
        clusters(cases).iter().map(|members| sum(members)).filter(|part| part.1 > 0.0).collect();
    let (first, count) = (parts.first()?, parts.len() as u64);
    let ratio = |(top, bottom): &(f64, f64)| top / bottom;
    if parts.iter().all(|(top, bottom)| *bottom == 1.0 && (*top == 0.0 || *top == 1.0)) {
        return wilson(parts.iter().map(|part| part.0 as u64).sum(), count, CONFIDENCE);
    }
    if parts.iter().all(|part| ratio(part) == ratio(first)) {
        return wilson((ratio(first) * count as f64).round() as u64, count, CONFIDENCE);
    }
    let statistic = |drawn: &[usize]| {
        let (top, bottom) = drawn.iter().fold((0.0, 0.0), |sum, at| (sum.0 + parts[*at].0, sum.1 + parts[*at].1));
        vec![top / bottom]
    };
    bootstrap_of(parts.len(), CONFIDENCE, resampling.resamples, resampling.seed, statistic).into_iter().next()?
}
