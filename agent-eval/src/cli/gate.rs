//! `gate`: what must hold of a run that is there.

use clap::Args;

use super::{
    codes::Outcome, place::Place, profile::Profile, settings::Verdicts, stdout::print_text, verdict::text_options,
};
use crate::{Report, RunLog};

/// Judge gates on a run, and exit with the verdict's code.
#[derive(Debug, Clone, Args)]
pub(super) struct Gate {
    #[command(flatten)]
    judged: Judged,
}

/// A run, and what is judged of it.
#[derive(Debug, Clone, Args)]
pub(super) struct Judged {
    /// The run: its folder, its name, or `latest`.
    run: String,
    #[command(flatten)]
    verdicts: Verdicts,
    /// Settings of this name in `.config/agent-eval.toml`, over those named `default`.
    #[arg(long, value_name = "NAME", help_heading = "Gates")]
    profile: Option<String>,
}

impl Judged {
    /// The run itself.
    pub(super) fn log(&self) -> Outcome<RunLog> {
        Ok(RunLog::open(Place::find()?.run(&self.run)?)?)
    }

    /// The run's report, and the rules of its verdict.
    pub(super) fn report(self) -> Outcome<(Report, crate::ExitRules)> {
        let place = Place::find()?;
        let profile = Profile::read(&place.root, self.profile.as_deref())?;
        let log = self.log()?;
        let verdicts = self.verdicts.or(profile.verdicts);
        let names: Vec<&str> = log.sets().iter().map(|set| set.name.as_str()).collect();
        // A profile has gates for sets that are not in this run.
        let files = super::sets::load_all(&place).unwrap_or_default();
        let known: Vec<&str> = files.iter().map(|file| file.set.name.as_str()).chain(names.iter().copied()).collect();
        let options = verdicts.report(&place, &names, &known)?;
        Ok((Report::of(&log, options)?, verdicts.rules()?))
    }
}

impl Gate {
    pub(super) fn run(self) -> Outcome<u8> {
        let (report, rules) = self.judged.report()?;
        print_text(&report.gates_text(&text_options(rules)))?;
        Ok(report.exit_code(&rules))
    }
}
