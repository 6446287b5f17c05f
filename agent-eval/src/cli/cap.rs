//! `cap`: which cap a loop should have.

use clap::Args;

use super::{
    codes::{Fault, Outcome},
    place::Place,
    stdout::print_text,
    verdict::text_options,
};
use crate::{ExitRules, Report, ReportOptions, RunLog};

/// Show what each iteration of a run's loops is worth, and which cap to set.
#[derive(Debug, Clone, Args)]
pub(super) struct Cap {
    /// The run: its folder, its name, or `latest`.
    run: String,
    /// The share of cases that one more iteration must solve to be worth it.
    #[arg(long, value_name = "SHARE", default_value_t = ReportOptions::default().min_gain)]
    min_gain: f64,
}

impl Cap {
    pub(super) fn run(self) -> Outcome<u8> {
        if !(0.0..=1.0).contains(&self.min_gain) {
            let what = format!("advise a cap for a gain of {}: give a share from 0 to 1", self.min_gain);
            return Err(Fault::setup(what));
        }
        let log = RunLog::open(Place::find()?.run(&self.run)?)?;
        let report = Report::of(&log, ReportOptions { min_gain: self.min_gain, ..ReportOptions::default() })?;
        if report.sets.iter().all(|set| set.loops.is_none()) {
            return Err(Fault::setup(format!(
                "advise a cap for run `{}`: it has no loop; name a run of a set whose subject is one",
                self.run
            )));
        }
        print_text(&report.loops_text(&text_options(ExitRules::default())))?;
        Ok(0)
    }
}
