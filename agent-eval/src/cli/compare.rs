//! `compare`: a run against another, case by case.

use clap::Args;

use super::{
    codes::{Fault, Outcome},
    place::Place,
    settings::{Format, Verdicts},
    stdout::print_text,
    verdict::text_options,
};
use crate::{Report, RunLog};

/// Compare run B with run A, paired by case.
#[derive(Debug, Clone, Args)]
pub(super) struct Compare {
    /// What B is compared with: a run, a baseline's file, or a folder of them.
    a: String,
    /// The run that is looked at: its folder, its name, or `latest`.
    b: String,
    /// In which form.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// What must hold of B, such as `regression<=0.05`.
    #[arg(long = "gate", value_name = "GATE")]
    gates: Vec<String>,
    /// A gate that may hold by luck fails.
    #[arg(long)]
    require_evidence: bool,
}

impl Compare {
    pub(super) fn run(self) -> Outcome<u8> {
        let place = Place::find()?;
        let log = RunLog::open(place.run(&self.b)?)?;
        let names: Vec<&str> = log.sets().iter().map(|set| set.name.as_str()).collect();
        let verdicts = Verdicts {
            gates: self.gates,
            baseline: Some(self.a.clone()),
            labels: None,
            require_evidence: Some(self.require_evidence),
            max_infrastructure_errors: None,
        };
        let options = verdicts.report(&place, &names, &names)?;
        if !options.baselines.iter().any(|baseline| names.contains(&baseline.set.as_str())) {
            return Err(Fault::setup(format!("compare `{}` with `{}`: they have no set in common", self.b, self.a)));
        }
        let report = Report::of(&log, options)?;
        let rules = verdicts.rules()?;
        print_text(&match self.format {
            Format::Table => report.comparisons_text(&text_options(rules)),
            Format::Json | Format::Junit | Format::Md | Format::Html => self.format.render(&report, &rules),
        })?;
        Ok(report.exit_code(&rules))
    }
}
