//! Gates: what must hold for a change to go in.

use std::{collections::BTreeMap, fmt, str::FromStr};

use agent_core::{Error, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    ReportOptions,
    tally::{CONFIDENCE, Resampling, ratio_interval, total},
};
use crate::{
    CaseReport, Comparison, GateResult, GateVerdict, LoopReport, Manifest, SetReport, Verdict,
    stats::{Interval, holm, pass_at_k, pass_hat_k, wilson},
};

/// What must hold of a set. Cases in quarantine are in no gate. What is undefined holds for no gate.
///
/// ```
/// use agent_eval::Gate;
///
/// let gate: Gate = "pass_rate>=0.9".parse()?;
/// assert_eq!(gate, Gate::PassRate(0.9));
/// assert_eq!("hard(safety)".parse::<Gate>()?.to_string(), "hard(safety)");
/// # Ok::<_, agent_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// `pass_rate>=X`: of all trials.
    PassRate(f64),
    /// `pass_at_K>=X`: at least one of K trials passes, as a mean over cases.
    PassAt(u64, f64),
    /// `pass_hat_K>=X`: all of K trials pass, as a mean over cases.
    PassHat(u64, f64),
    /// `case_rate>=X`: the pass rate of every case.
    CaseRate(f64),
    /// `error_rate<=X`: trials whose run or check went wrong.
    ErrorRate(f64),
    /// `cap_hit_rate<=X`: trials whose loop ended at its cap.
    CapHitRate(f64),
    /// `tokens_per_solved<=X`: all tokens for each trial that passed.
    TokensPerSolved(f64),
    /// `hard(TAG)`: every trial of the cases with this tag passes.
    Hard(String),
    /// `regression<=X`: the pass rate fell by at most X against the baseline. Fails for a larger drop that is
    /// evident, too (one-sided 5 %, adjusted after Holm if several sets of a run have this gate).
    Regression(f64),
    /// `coverage`: every case of the baseline was run.
    Coverage,
}

impl FromStr for Gate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.trim()).ok_or_else(|| {
            let known = "pass_rate>=X, pass_at_K>=X, pass_hat_K>=X, case_rate>=X, error_rate<=X, cap_hit_rate<=X, \
                         tokens_per_solved<=X, regression<=X, hard(TAG), coverage";
            Error::new(ErrorKind::Invalid, format!("read gate `{text}`: use one of {known}"))
        })
    }
}

fn parse(text: &str) -> Option<Gate> {
    if text == "coverage" {
        return Some(Gate::Coverage);
    }
    if let Some(tag) = text.strip_prefix("hard(").and_then(|rest| rest.strip_suffix(')')) {
        return (!tag.is_empty()).then(|| Gate::Hard(tag.to_owned()));
    }
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let share = |text: &str| number(text).filter(|share| *share <= 1.0);
    let count = |text: &str| text.parse::<u64>().ok().filter(|count| *count > 0);
    if let Some((metric, bound)) = text.split_once(">=") {
        let (metric, bound) = (metric.trim(), share(bound)?);
        return match metric {
            "pass_rate" => Some(Gate::PassRate(bound)),
            "case_rate" => Some(Gate::CaseRate(bound)),
            _ => match (metric.strip_prefix("pass_at_"), metric.strip_prefix("pass_hat_")) {
                (Some(k), _) => Some(Gate::PassAt(count(k)?, bound)),
                (_, Some(k)) => Some(Gate::PassHat(count(k)?, bound)),
                (None, None) => None,
            },
        };
    }
    let (metric, bound) = text.split_once("<=")?;
    match metric.trim() {
        "error_rate" => share(bound).map(Gate::ErrorRate),
        "cap_hit_rate" => share(bound).map(Gate::CapHitRate),
        "regression" => share(bound).map(Gate::Regression),
        "tokens_per_solved" => number(bound).map(Gate::TokensPerSolved),
        _ => None,
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PassRate(bound) => write!(f, "pass_rate>={bound}"),
            Self::PassAt(k, bound) => write!(f, "pass_at_{k}>={bound}"),
            Self::PassHat(k, bound) => write!(f, "pass_hat_{k}>={bound}"),
            Self::CaseRate(bound) => write!(f, "case_rate>={bound}"),
            Self::ErrorRate(bound) => write!(f, "error_rate<={bound}"),
            Self::CapHitRate(bound) => write!(f, "cap_hit_rate<={bound}"),
            Self::TokensPerSolved(bound) => write!(f, "tokens_per_solved<={bound}"),
            Self::Hard(tag) => write!(f, "hard({tag})"),
            Self::Regression(bound) => write!(f, "regression<={bound}"),
            Self::Coverage => f.write_str("coverage"),
        }
    }
}

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

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

type Judgement = (GateVerdict, String);

impl Gated<'_> {
    fn judge(&self, gate: &Gate) -> Judgement {
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

    fn mean_at_least(&self, bound: f64, of: impl Fn(u64, u64) -> Option<f64>) -> Judgement {
        let values: Option<Vec<f64>> =
            self.cases.iter().map(|case| of(case.tally.trials(), case.tally.passed)).collect();
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            return (GateVerdict::Failed, "undefined: a case has too few trials".to_owned());
        };
        let shares: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        at_least(Some(mean), ratio_interval(self.cases, &shares, self.resampling), bound)
    }

    fn each_case(&self, bound: f64) -> Judgement {
        let below = |case: &&&CaseReport| case.tally.rate.is_none_or(|rate| rate < bound);
        let below: Vec<&str> = self.cases.iter().filter(below).map(|case| case.id.as_str()).collect();
        all_hold(self.cases.len(), &below, "are below")
    }

    fn hard(&self, tag: &str) -> Judgement {
        let tagged: Vec<&&CaseReport> =
            self.cases.iter().filter(|case| case.tags.iter().any(|has| has == tag)).collect();
        let holds = |case: &CaseReport| !case.verdicts.is_empty() && case.verdicts.iter().all(|v| *v == Verdict::Pass);
        let broken: Vec<&str> = tagged.iter().filter(|case| !holds(case)).map(|case| case.id.as_str()).collect();
        all_hold(tagged.len(), &broken, "did not pass every trial")
    }

    /// A drop fails with a margin and with evidence; what could be a drop and could be none is inconclusive.
    fn regression(&self, margin: f64) -> Judgement {
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

    fn coverage(&self) -> Judgement {
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

fn all_hold(all: usize, broken: &[&str], problem: &str) -> Judgement {
    match (all, broken) {
        (0, _) => (GateVerdict::Failed, "undefined: there is no such case".to_owned()),
        (_, []) => (GateVerdict::Passed, format!("all {all} cases")),
        (_, broken) => {
            (GateVerdict::Failed, format!("{} of {all} cases {problem}: {}", broken.len(), broken.join(", ")))
        }
    }
}

fn at_least(value: Option<f64>, interval: Option<Interval>, bound: f64) -> Judgement {
    let holds = value.map(|value| value >= bound);
    against(value, interval, holds, interval.is_none_or(|interval| interval.low >= bound))
}

fn at_most(value: Option<f64>, interval: Option<Interval>, bound: f64) -> Judgement {
    let holds = value.map(|value| value <= bound);
    against(value, interval, holds, interval.is_none_or(|interval| interval.high <= bound))
}

/// Fails by the value; passes if the whole interval does, else it may be luck.
fn against(value: Option<f64>, interval: Option<Interval>, holds: Option<bool>, is_sure: bool) -> Judgement {
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
