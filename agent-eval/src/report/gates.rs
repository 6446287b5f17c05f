//! Gates are judged: what must hold for a change to go in.

use std::collections::BTreeMap;

use super::{
    Gate, ReportOptions,
    tally::{CONFIDENCE, Resampling, ratio_interval, total},
};
use crate::{
    CaseReport, Comparison, GateResult, GateVerdict, LoopReport, Manifest, SetReport, Verdict,
    stats::{Interval, holm, pass_at_k, pass_hat_k, wilson},
};

/// What gates look at.
struct Gated<'a> {
    /// Those that are in no quarantine.
    cases: &'a [&'a CaseReport],
    loops: Option<&'a LoopReport>,
    comparison: Option<&'a Comparison>,
    /// The evidence of harm, adjusted for the other sets that are judged by theirs.
    p_harm: Option<f64>,
    /// How many sets are.
    family: usize,
    /// Whether only some of the cases were selected.
    is_partial: bool,
    resampling: Resampling,
}

/// Judges the gates of all sets. Where several sets may fail by a regression, one of them would by luck more often
/// than one alone: their p values are adjusted after Holm.
pub(super) fn judge_gates(sets: &mut [SetReport], options: &ReportOptions, manifest: &Manifest) {
    let gates: Vec<Vec<&Gate>> = sets.iter().map(|set| options.gates_of(&set.name).collect()).collect();
    let has_regression = |gates: &[&Gate]| gates.iter().any(|gate| matches!(gate, Gate::Regression(_)));
    let p_of = |set: &SetReport| set.comparison.as_ref().and_then(|comparison| comparison.p_harm);
    let tested: Vec<usize> =
        (0..sets.len()).filter(|at| has_regression(&gates[*at]) && p_of(&sets[*at]).is_some()).collect();
    let adjusted = holm(&tested.iter().filter_map(|at| p_of(&sets[*at])).collect::<Vec<_>>());
    let adjusted: BTreeMap<usize, f64> = tested.into_iter().zip(adjusted).collect();
    for (at, set) in sets.iter_mut().enumerate() {
        let cases: Vec<&CaseReport> = set.cases.iter().filter(|case| case.quarantine.is_none()).collect();
        let input = Gated {
            cases: &cases,
            loops: set.loops.as_ref(),
            comparison: set.comparison.as_ref(),
            p_harm: adjusted.get(&at).copied(),
            family: adjusted.len(),
            is_partial: manifest.partial,
            resampling: Resampling { resamples: options.resamples, seed: manifest.seed },
        };
        let judge = |gate: &&Gate| {
            let (verdict, detail) = input.judge(gate);
            GateResult { gate: gate.to_string(), verdict, detail }
        };
        set.gates = gates[at].iter().map(judge).collect();
    }
}

type Judgment = (GateVerdict, String);

impl Gated<'_> {
    fn judge(&self, gate: &Gate) -> Judgment {
        let tally = || total(self.cases, self.resampling);
        match gate {
            Gate::PassRate(bound) => at_least(tally().rate, tally().interval, *bound),
            Gate::PassAt(k, bound) => self.mean_at_least(*bound, |n, c| pass_at_k(n, c, *k)),
            Gate::PassHat(k, bound) => self.mean_at_least(*bound, |n, c| pass_hat_k(n, c, *k)),
            Gate::CaseRate(bound) => self.each_case(*bound),
            Gate::ErrorRate(bound) => {
                let (errors, trials) = (tally().errors, tally().trials());
                let rate = (trials > 0).then(|| errors as f64 / trials as f64);
                at_most(rate, wilson(errors, trials, CONFIDENCE), *bound)
            }
            Gate::CapHitRate(bound) => {
                let hits = self.loops.map(|loops| &loops.cap_hits);
                at_most(hits.and_then(|hits| hits.rate), hits.and_then(|hits| hits.interval), *bound)
            }
            Gate::TokensPerSolved(bound) => {
                let tally = tally();
                let cost = (tally.passed > 0).then(|| tally.usage.total() as f64 / tally.passed as f64);
                at_most(cost, None, *bound)
            }
            Gate::Hard(tag) => self.hard(tag),
            Gate::Regression(margin) => self.regression(*margin),
            Gate::Coverage => self.coverage(),
        }
    }

    fn mean_at_least(&self, bound: f64, of: impl Fn(u64, u64) -> Option<f64>) -> Judgment {
        let values: Option<Vec<f64>> =
            self.cases.iter().map(|case| of(case.tally.trials(), case.tally.passed)).collect();
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            return (GateVerdict::Failed, "undefined: a case has too few trials".to_owned());
        };
        let shares: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        at_least(Some(mean), ratio_interval(self.cases, &shares, self.resampling), bound)
    }

    fn each_case(&self, bound: f64) -> Judgment {
        let below = |case: &&&CaseReport| case.tally.rate.is_none_or(|rate| rate < bound);
        let below: Vec<&str> = self.cases.iter().filter(below).map(|case| case.id.as_str()).collect();
        all_hold(self.cases.len(), &below, "are below")
    }

    fn hard(&self, tag: &str) -> Judgment {
        let tagged: Vec<&&CaseReport> =
            self.cases.iter().filter(|case| case.tags.iter().any(|has| has == tag)).collect();
        let holds = |case: &CaseReport| !case.verdicts.is_empty() && case.verdicts.iter().all(|v| *v == Verdict::Pass);
        let broken: Vec<&str> = tagged.iter().filter(|case| !holds(case)).map(|case| case.id.as_str()).collect();
        all_hold(tagged.len(), &broken, "did not pass every trial")
    }

    /// A drop fails with a margin and with evidence; what could be a drop and could be none is inconclusive.
    fn regression(&self, margin: f64) -> Judgment {
        const ALPHA: f64 = 0.05;
        let Some(comparison) = self.comparison.filter(|comparison| comparison.paired > 0) else {
            return (GateVerdict::Failed, "undefined: no case has a baseline".to_owned());
        };
        let Comparison { difference, interval, detectable_drop, test, .. } = comparison;
        let is_evident = self.p_harm.is_some_and(|p| p <= ALPHA);
        let verdict = if *difference < -margin && is_evident {
            GateVerdict::Failed
        // All differences equal: they have no spread, and so no interval.
        } else if interval.map_or(*difference > 0.0 && comparison.paired > 1, |interval| interval.low >= -margin) {
            GateVerdict::Passed
        } else {
            GateVerdict::Inconclusive
        };
        let p = self.p_harm.map_or_else(|| "undefined".to_owned(), |p| format!("{p:.4}"));
        let family = if self.family > 1 { format!(", Holm over {} sets", self.family) } else { String::new() };
        let seen = detectable_drop
            .map_or_else(String::new, |drop| format!("; drops below {:.1} points go unseen", drop * 100.0));
        (
            verdict,
            format!(
                "{:+.1} points over {} pairs, p of harm {p} ({test}{family}){seen}",
                difference * 100.0,
                comparison.paired
            ),
        )
    }

    fn coverage(&self) -> Judgment {
        match self.comparison {
            None => (GateVerdict::Failed, "undefined: there is no baseline".to_owned()),
            Some(comparison) if self.is_partial && !comparison.missing.is_empty() => (
                GateVerdict::Inconclusive,
                format!("only some cases were selected; {} of the baseline were not run", comparison.missing.len()),
            ),
            Some(comparison) if comparison.missing.is_empty() => {
                (GateVerdict::Passed, "every case of the baseline was run".to_owned())
            }
            Some(Comparison { missing, .. }) => (
                GateVerdict::Failed,
                format!("{} cases of the baseline were not run: {}", missing.len(), missing.join(", ")),
            ),
        }
    }
}

fn all_hold(all: usize, broken: &[&str], problem: &str) -> Judgment {
    match (all, broken) {
        (0, _) => (GateVerdict::Failed, "undefined: there is no such case".to_owned()),
        (_, []) => (GateVerdict::Passed, format!("all {all} cases")),
        (_, broken) => {
            (GateVerdict::Failed, format!("{} of {all} cases {problem}: {}", broken.len(), broken.join(", ")))
        }
    }
}

fn at_least(value: Option<f64>, interval: Option<Interval>, bound: f64) -> Judgment {
    let holds = value.map(|value| value >= bound);
    against(value, interval, holds, interval.is_none_or(|interval| interval.low >= bound))
}

fn at_most(value: Option<f64>, interval: Option<Interval>, bound: f64) -> Judgment {
    let holds = value.map(|value| value <= bound);
    against(value, interval, holds, interval.is_none_or(|interval| interval.high <= bound))
}

/// Fails by the value; passes if the whole interval does, else it may be luck.
fn against(value: Option<f64>, interval: Option<Interval>, holds: Option<bool>, is_sure: bool) -> Judgment {
    let verdict = match (holds, is_sure) {
        (Some(true), true) => GateVerdict::Passed,
        (Some(true), false) => GateVerdict::Inconclusive,
        (Some(false) | None, _) => GateVerdict::Failed,
    };
    let text = |value: f64| if value <= 1.0 { format!("{value:.3}") } else { format!("{value:.0}") };
    let detail = match (value, interval) {
        (None, _) => "undefined: nothing was measured".to_owned(),
        (Some(value), None) => text(value),
        (Some(value), Some(Interval { low, high })) => format!("{}, 95 % {} to {}", text(value), text(low), text(high)),
    };
    (verdict, detail)
}

#[cfg(test)]
mod tests {
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;
    use crate::{
        Manifest, Tally,
        report::{Baseline, baseline::BASELINE_SCHEMA, baseline::CaseBaseline, compare::compare},
    };

    const CASES: u32 = 60;

    /// Case n passes with probability 0.4, 0.6 or 0.8, less the drop.
    fn simulate(rng: &mut ChaCha8Rng, repeats: u64, drop: f64) -> Vec<CaseReport> {
        let case = |n: u32| {
            let chance = 0.4 + 0.2 * f64::from(n % 3) - drop;
            let draw = || f64::from(rng.next_u32()) < chance * f64::from(u32::MAX);
            let passed =
                std::iter::repeat_with(draw).take(usize::try_from(repeats).unwrap()).filter(|passes| *passes).count()
                    as u64;
            let tally = Tally { passed, failed: repeats - passed, ..Tally::default() };
            let (tags, verdicts, failures) = Default::default();
            CaseReport { id: format!("{n}"), tags, group: None, tally, verdicts, quarantine: None, failures }
        };
        (0..CASES).map(case).collect()
    }

    /// The share of 1,000 pairs of runs for which the gate fails.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    fn alarms(repeats: u64, drop: f64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(repeats);
        let manifest = Manifest {
            schema: String::new(),
            run: "new".to_owned(),
            sets: [].into(),
            seed: 0,
            fingerprint: serde_json::Value::Null,
            revision: None,
            dirty: false,
            partial: false,
            scored: false,
            began: String::new(),
            version: String::new(),
        };
        let mut alarm = || {
            let old = simulate(&mut rng, repeats, 0.0);
            let rates = old
                .iter()
                .map(|case| (case.id.clone(), CaseBaseline { trials: case.tally.trials(), passed: case.tally.passed }));
            let baseline = Baseline {
                schema: BASELINE_SCHEMA.to_owned(),
                set: "set".to_owned(),
                run: "old".to_owned(),
                revision: None,
                fingerprint: serde_json::Value::Null,
                tokens: None,
                wall_ms: None,
                cases: rates.collect(),
            };
            let new = simulate(&mut rng, repeats, drop);
            let comparison = compare(&baseline, &new, &manifest, 0);
            let resampling = Resampling { resamples: 1, seed: 0 };
            let gated = Gated {
                cases: &[],
                loops: None,
                p_harm: comparison.p_harm,
                family: 1,
                comparison: Some(&comparison),
                is_partial: false,
                resampling,
            };
            gated.judge(&Gate::Regression(0.0)).0 == GateVerdict::Failed
        };
        (0..1_000).filter(|_| alarm()).count() as f64 / 1_000.0
    }

    #[test]
    fn a_regression_gate_rarely_fails_without_a_regression() {
        let most = 0.05 + 2.0 * f64::sqrt(0.05 * 0.95 / 1_000.0);
        for repeats in [1, 3] {
            let share = alarms(repeats, 0.0);
            assert!((0.005..=most).contains(&share), "{share} with {repeats} repeats");
        }
    }

    #[test]
    fn a_regression_gate_finds_a_large_regression() {
        for (repeats, least) in [(1, 0.6), (3, 0.95)] {
            let share = alarms(repeats, 0.2);
            assert!(share >= least, "{share} with {repeats} repeats");
        }
    }
}
