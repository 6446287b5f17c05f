//! `bless`: a run becomes what later ones are compared with.

use clap::Args;

use super::{
    codes::{Fault, Outcome},
    place::{Place, name_of},
    stdout::print_text,
};
use crate::{
    Baseline, Report, ReportOptions, RunLog,
    report::words::of_these,
    text::{listed, nearest},
};

/// Make a run the baseline of its sets: write `evals/baselines/SET.json`.
#[derive(Debug, Clone, Args)]
pub(super) struct Bless {
    /// The run: its folder, its name, or `latest`.
    run: String,
    /// Only these sets; all of the run if none is named.
    #[arg(long = "set", value_name = "SET")]
    sets: Vec<String>,
}

impl Bless {
    pub(super) fn run(&self) -> Outcome<u8> {
        let place = Place::find()?;
        let log = RunLog::open(place.run(&self.run)?)?;
        let report = Report::of(&log, ReportOptions::default())?;
        let known: Vec<&str> = report.sets.iter().map(|set| set.name.as_str()).collect();
        let names: Vec<&str> =
            if self.sets.is_empty() { known.clone() } else { self.sets.iter().map(String::as_str).collect() };
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            let hint = match nearest(unknown, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("it has {}", listed(&known)),
            };
            let run = name_of(log.dir());
            return Err(Fault::setup(format!("bless set `{unknown}`: the run `{run}` has no such set; {hint}")));
        }
        // All or none: a set that cannot be blessed keeps the others as they are.
        let baselines = names.iter().map(|name| Baseline::bless(&report, name)).collect::<Result<Vec<_>, _>>()?;
        for baseline in baselines {
            let path = baseline.write(&place.baselines())?;
            let trials: u64 = baseline.cases.values().map(|case| case.trials).sum();
            let passed: u64 = baseline.cases.values().map(|case| case.passed).sum();
            let cases = of_these(baseline.cases.len() as u64, "case");
            print_text(&format!("{}: {cases}, {passed} of {trials} trials passed\n", path.display()))?;
        }
        Ok(0)
    }
}
