//! `--no-run`: what would be run, and what it would take.

use std::collections::{HashMap, HashSet};

use super::{
    place::{Place, name_of},
    sets::SetFile,
};
use crate::{
    Baseline, EvalCase, Report, ReportOptions, RunLog, RunOptions, TrialKey,
    report::words::{count, duration, of_these},
};

/// What trials of a set took, and where that is known from.
struct Known {
    from: String,
    trials: u64,
    tokens: u64,
    wall_ms: u64,
}

impl Known {
    fn of(baseline: &Baseline, from: String) -> Option<Self> {
        let trials: u64 = baseline.cases.values().map(|case| case.trials).sum();
        let Baseline { tokens, wall_ms, .. } = baseline;
        (trials > 0).then_some(Self { from, trials, tokens: (*tokens)?, wall_ms: (*wall_ms)? })
    }

    /// What so many trials would take, of what these took.
    fn scaled(&self, what: u64, planned: u64) -> u64 {
        u64::try_from(u128::from(what) * u128::from(planned) / u128::from(self.trials)).unwrap_or(u64::MAX)
    }
}

/// How many trials there would be beside those that are kept, and the tokens and the time that they would take if
/// they were as those of the baseline or, without one, of the latest run of the set. No subject is made.
pub(super) fn plan(
    place: &Place,
    chosen: &[(&SetFile, Vec<&EvalCase>)],
    kept: &HashSet<TrialKey>,
    options: &RunOptions,
    baselines: &[Baseline],
) -> String {
    let mut lines = Vec::new();
    let mut kept_repeats: HashMap<(&str, &str), Vec<u32>> = HashMap::new();
    for TrialKey { set, case, repeat } in kept {
        kept_repeats.entry((set, case)).or_default().push(*repeat);
    }
    let (mut trials, mut tokens, mut millis, mut unknown) = (0_u64, 0_u64, 0_u64, false);
    for (file, cases) in chosen {
        let repeats = |case: &&EvalCase| {
            let repeats = options.repeats.or(case.repeats).or(file.set.defaults.repeats);
            let repeats = repeats.map_or(1, std::num::NonZero::get);
            let kept = kept_repeats.get(&(file.set.name.as_str(), case.id.as_str())).into_iter().flatten();
            u64::from(repeats) - kept.filter(|kept| **kept < repeats).count() as u64
        };
        let planned: u64 = cases.iter().map(repeats).sum();
        let baseline = baselines.iter().find(|baseline| baseline.set == file.set.name);
        let of_baseline = baseline.and_then(|baseline| Known::of(baseline, "the baseline".to_owned()));
        let estimate = if let Some(known) = of_baseline.or_else(|| of_latest(place, &file.set.name)) {
            let (used, took) = (known.scaled(known.tokens, planned), known.scaled(known.wall_ms, planned));
            tokens = tokens.saturating_add(used);
            millis = millis.saturating_add(took);
            let (used, took, from) = (count(used), duration(took), &known.from);
            format!("about {used} tokens and {took} of agents' time, by {from}")
        } else {
            unknown = true;
            "no baseline and no run to estimate by".to_owned()
        };
        let cases = of_these(cases.len() as u64, "case");
        lines.push(format!("{}: {cases}, {}; {estimate}\n", file.set.name, of_these(planned, "trial")));
        trials += planned;
    }
    let jobs = options.concurrency.get() as u64;
    let total = if unknown {
        "the tokens and the time are unknown".to_owned()
    } else {
        format!("about {} tokens, and {} with {jobs} at once", count(tokens), duration(millis / jobs))
    };
    lines.push(format!("in all: {}; {total}\n", of_these(trials, "trial")));
    lines.concat()
}

/// The latest run that has trials of the set.
fn of_latest(place: &Place, set: &str) -> Option<Known> {
    place.all_runs().iter().rev().find_map(|dir| {
        let log = RunLog::open(dir).ok().filter(|log| log.sets().iter().any(|found| found.name == set))?;
        let report = Report::of(&log, ReportOptions { resamples: 1, ..ReportOptions::default() }).ok()?;
        let baseline = Baseline::all(&report).into_iter().find(|baseline| baseline.set == set)?;
        Known::of(&baseline, format!("run {}", name_of(dir)))
    })
}
