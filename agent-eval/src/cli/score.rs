//! `score`: a run's trials, judged anew.

use std::sync::Arc;

use clap::Args;

use super::{
    asked::Asked,
    codes::{Fault, Outcome},
    place::{Place, name_of},
    profile::Profile,
    progress::Console,
    report::{print, write_reports},
    sets::{SetFile, load_all},
    settings::{Format, ShowProgress, StatusLevel, Verdicts},
    stdout::print_text,
};
use crate::{CassetteMode, ModelSource, Project, RunLog, RunOptions, SetRun, Subject, score, text::listed};

/// Judge a run's trials with the present checks of their cases, and run no agent. The result is a run of its own.
#[derive(Debug, Clone, Args)]
pub(super) struct Score {
    /// The run: its folder, its name, or `latest`.
    run: String,
    /// Name the new run [default: the time].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    verdicts: Verdicts,
    /// Settings of this name in `.config/agent-eval.toml`, over those named `default`.
    #[arg(long, value_name = "NAME", help_heading = "Gates")]
    profile: Option<String>,
    /// The model that judges, for checks that ask one.
    #[arg(long, value_name = "PROVIDER:NAME")]
    judge: Option<String>,
    /// Where the judge's service is [default: where its provider is].
    #[arg(long, value_name = "URL")]
    judge_base_url: Option<String>,
    /// Ask the judge so often, and take the majority [default: 1].
    #[arg(long, value_name = "N")]
    judge_repeats: Option<std::num::NonZeroU32>,
}

impl Score {
    pub(super) async fn run(self, project: &dyn Project) -> Outcome<u8> {
        let place = Place::find()?;
        let dir = place.run(&self.run)?;
        let log = RunLog::open(&dir)?;
        let profile = Profile::read(&place.root, self.profile.as_deref())?;
        let verdicts = self.verdicts.or(profile.verdicts);
        let sets = load_all(&place)?;
        let known: Vec<&str> = sets.iter().map(|file| file.set.name.as_str()).collect();
        let names: Vec<&str> = log.sets().iter().map(|set| set.name.as_str()).collect();
        if let Some(gone) = names.iter().find(|name| !known.contains(name)) {
            let what =
                format!("score run `{}`: there is no set `{gone}` any more; known are {}", self.run, listed(&known));
            return Err(Fault::setup(what));
        }
        let files: Vec<&SetFile> = sets.iter().filter(|file| names.contains(&file.set.name.as_str())).collect();
        let subjects = files.iter().map(|file| subject(file, project, &dir)).collect::<Outcome<Vec<_>>>()?;
        let runs: Vec<SetRun<'_>> = files
            .iter()
            .zip(&subjects)
            .map(|(file, subject)| SetRun { set: &file.set, subject: subject.as_ref(), dir: Some(file.dir()) })
            .collect();
        let judge = self.judge.or(profile.settings.judge);
        let judge_base_url = self.judge_base_url.or(profile.settings.judge_base_url);
        let judge = judge.map(|judge| project.client(&judge, judge_base_url.as_deref())).transpose()?;
        let judge_repeats = self.judge_repeats.or(profile.settings.judge_repeats);
        let report = verdicts.report(&place, &names, &known)?;
        let rules = verdicts.rules()?;
        let new = place.new_run(self.name.as_deref())?;
        let default = RunOptions::default();
        let options = RunOptions {
            log: Some(new.clone()),
            judge,
            judge_repeats: judge_repeats.unwrap_or(default.judge_repeats),
            gold_scorers: profile.settings.gold_scorers.unwrap_or(default.gold_scorers),
            progress: Some(Arc::new(Console::new(ShowProgress::None, StatusLevel::Fail))),
            report,
            ..default
        };
        // What cannot be scored leaves no empty folder.
        let report = score(&log, &runs, options).await.inspect_err(|_| drop(std::fs::remove_dir(&new)))?;
        let written = write_reports(&report, &new, &Format::DEFAULT, &rules)?;
        print(&report, &rules)?;
        print_text(&format!("\n         Run {}: {} in {}\n", name_of(&new), listed(&written), new.display()))?;
        Ok(report.exit_code(&rules))
    }
}

/// The set's subject, for its checks. It asks no model, so what is replayed will do, or what the run was made with.
fn subject(file: &SetFile, project: &dyn Project, run: &std::path::Path) -> Outcome<Box<dyn Subject>> {
    let replayed = ModelSource { cassettes: CassetteMode::Replay, ..ModelSource::default() };
    file.subject(project, &replayed).or_else(|fault| match Asked::of(run) {
        Ok(asked) => file.subject(project, &asked.source()),
        Err(_) => Err(fault),
    })
}
