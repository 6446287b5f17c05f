//! `--no-run`: what would be run, and what it would take.

use crate::{Baseline, EvalCase, RunOptions, report::words};

use super::{codes::Outcome, place::Place, sets::SetFile};

/// Prints how many trials there would be, with the tokens and the time that those of the baseline took.
pub(super) fn print_plan(
    _place: &Place,
    chosen: &[(&SetFile, Vec<&EvalCase>)],
    options: &RunOptions,
    baselines: &[Baseline],
) -> Outcome<u8> {
    let (mut trials, mut tokens, mut millis) = (0, Some(0), Some(0));
    for (file, cases) in chosen {
        let repeats = |case: &&EvalCase| {
            let repeats = options.repeats.or(case.repeats).or(file.set.defaults.repeats);
            u64::from(repeats.map_or(1, std::num::NonZero::get))
        };
        let planned: u64 = cases.iter().map(repeats).sum();
        let baseline = baselines.iter().find(|baseline| baseline.set == file.set.name);
        let of_baseline = |of: fn(&Baseline) -> Option<u64>| {
            let baseline = baseline?;
            let known: u64 = baseline.cases.values().map(|case| case.trials).sum();
            (known > 0).then_some(())?;
            u64::try_from(u128::from(of(baseline)?) * u128::from(planned) / u128::from(known)).ok()
        };
        let (its_tokens, its_millis) = (of_baseline(|b| b.tokens), of_baseline(|b| b.wall_ms));
        let estimate = match (its_tokens, its_millis) {
            (Some(tokens), Some(millis)) => {
                format!("about {} tokens, {} of agents' time", words::count(tokens), words::duration(millis))
            }
            _ => "no baseline to estimate by".to_owned(),
        };
        let (cases, runs) = (words::of_these(cases.len() as u64, "case"), words::of_these(planned, "trial"));
        anstream::println!("{}: {cases}, {runs}; {estimate}", file.set.name);
        trials += planned;
        tokens = tokens.zip(its_tokens).map(|(all, more): (u64, u64)| all.saturating_add(more));
        millis = millis.zip(its_millis).map(|(all, more): (u64, u64)| all.saturating_add(more));
    }
    let jobs = options.concurrency.get() as u64;
    let total = match (tokens, millis) {
        (Some(tokens), Some(millis)) => {
            let wall = words::duration(millis / jobs);
            format!("about {} tokens, and {wall} with {jobs} at once", words::count(tokens))
        }
        _ => "the tokens and the time are unknown".to_owned(),
    };
    anstream::println!("in all: {}; {total}", words::of_these(trials, "trial"));
    Ok(0)
}
