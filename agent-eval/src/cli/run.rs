//! `run`: the cases that are meant, as often as they are to be.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use clap::Args;

use super::{
    asked::{Asked, with_model},
    codes::{Fault, Outcome},
    place::{LATEST, Place, name_of},
    plan::plan,
    profile::Profile,
    progress::Console,
    report::{print, write_reports},
    sets::{SetFile, Which, load_all, selected},
    settings::{Format, Settings, Verdicts},
    stdout::print_text,
};
use crate::{
    CassetteMode, EvalSet, ExitRules, Project, Report, ReportOptions, Resume, RunLog, RunOptions, SetRun,
    run::{kept, run_kept},
    text::listed,
};

/// Run eval sets: those of `evals/`, or the cases that are named.
///
/// A run is kept in `target/evals/NAME`: its log, and its reports. Models are not asked unless --live or --record say
/// so: their recorded answers are replayed, and one that is missing is an error.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Run {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    source: SourceFlags,
    #[command(flatten)]
    verdicts: Verdicts,
    /// Settings of this name in `.config/agent-eval.toml`, over those named `default`.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "rerun"], help_heading = "Running")]
    profile: Option<String>,
    /// Name the run [default: the time].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "rerun"], help_heading = "Running")]
    name: Option<String>,
    /// Go on with a run that was broken off, with its own cases and settings: the latest if none is named.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = LATEST, help_heading = "Running")]
    resume: Option<String>,
    /// Go on with a run, and run again what ended so.
    #[arg(long, value_name = "WHICH", help_heading = "Running")]
    rerun: Option<Rerun>,
    /// Say what would be run and what it would take, and run nothing.
    #[arg(long = "no-run", help_heading = "Running")]
    only_plan: bool,
}

#[derive(Debug, Clone, Copy, Default, Args)]
struct SourceFlags {
    /// Replay recorded answers; one that is missing is an error. This is the default.
    #[arg(long, conflicts_with_all = ["record", "live"], help_heading = "Models")]
    replay: bool,
    /// Ask the model for answers that are not recorded yet, and record them.
    #[arg(long, conflicts_with = "live", help_heading = "Models")]
    record: bool,
    /// Ask the model, and record nothing.
    #[arg(long, help_heading = "Models")]
    live: bool,
}

/// What of a run is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rerun {
    /// What did not pass.
    Failed,
    /// What ended with an error.
    Error,
}

impl SourceFlags {
    fn mode(self) -> Option<CassetteMode> {
        let Self { replay, record, live } = self;
        let modes = [(replay, CassetteMode::Replay), (record, CassetteMode::Record), (live, CassetteMode::Live)];
        modes.into_iter().find(|(is_meant, _)| *is_meant).map(|(_, mode)| mode)
    }
}

impl Run {
    pub(super) async fn run(self, project: &dyn Project) -> Outcome<u8> {
        let place = Place::find()?;
        let only_plan = self.only_plan;
        let Planned { asked, name, goes_on } = self.planned(&place)?;
        let Asked { settings, verdicts, .. } = &asked;
        let sets = load_all(&place)?;
        let selection = asked.which().selection(&sets)?;
        let chosen = selected(&sets, &selection)?;
        let names: Vec<&str> = chosen.iter().map(|(file, _)| file.set.name.as_str()).collect();
        let known: Vec<&str> = sets.iter().map(|file| file.set.name.as_str()).collect();
        let rules = verdicts.rules()?;
        let report = verdicts.report(&place, &names, &known)?;
        let options = asked.options(project)?;
        if only_plan {
            let kept = goes_on.map(|(dir, resume)| kept(&dir, resume)).transpose()?.unwrap_or_default();
            print_text(&plan(&place, &chosen, &kept, &options, &report.baselines))?;
            return Ok(0);
        }
        let source = asked.source();
        let files: Vec<&SetFile> = chosen.iter().map(|(file, _)| *file).collect();
        let subjects = files.iter().map(|file| file.subject(project, &source)).collect::<Outcome<Vec<_>>>()?;
        let with_subject = files.iter().zip(&subjects);
        let runs: Vec<SetRun<'_>> = with_subject
            .map(|(file, subject)| SetRun { set: &file.set, subject: subject.as_ref(), dir: Some(file.dir()) })
            .collect();
        let (dir, resume) = if let Some((dir, resume)) = goes_on {
            (dir, Some(resume))
        } else {
            (place.new_run(name.as_deref())?, None)
        };
        let console = Arc::new(Console::new(
            settings.show_progress.unwrap_or_default(),
            settings.status_level.unwrap_or_default(),
        ));
        let (revision, dirty) = revision(&place.root);
        let options = RunOptions {
            log: Some(dir.clone()),
            resume,
            filter: Some(Arc::new(move |set: &EvalSet, case: &_| selection.matches(set, case))),
            progress: Some(console.clone()),
            revision,
            dirty,
            report: report.clone(),
            ..options
        };
        let ended = tokio::select! {
            ended = run_kept(&runs, options, |dir| asked.keep(dir)) => Some(ended),
            () = interrupted() => None,
        };
        console.finish();
        let report = match ended {
            Some(ended) => ended?,
            None => broken_off(&dir, report)?,
        };
        let formats = if settings.format.is_empty() { &Format::DEFAULT } else { settings.format.as_slice() };
        tell(&report, &dir, formats, &rules)?;
        Ok(report.exit_code(&rules))
    }

    /// What is to be run, and whether a run goes on with it.
    fn planned(self, place: &Place) -> Outcome<Planned> {
        let Self { which, mut settings, source, verdicts, profile, name, resume, rerun, only_plan: _ } = self;
        settings.mode = source.mode();
        let resumed = match (&resume, rerun) {
            (None, None) => None,
            (run, None) => Some((run.as_deref(), Resume::Missing)),
            (run, Some(Rerun::Error)) => Some((run.as_deref(), Resume::Errors)),
            (run, Some(Rerun::Failed)) => Some((run.as_deref(), Resume::NotPassed)),
        };
        let Some((run, resume)) = resumed else {
            let profile = Profile::read(&place.root, profile.as_deref())?;
            let Which { substrings, filters, partition } = which;
            let settings = with_model(settings.or(profile.settings));
            let verdicts = verdicts.or(profile.verdicts);
            let asked = Asked { substrings, filters, partition, settings, verdicts, withheld: Vec::new() };
            return Ok(Planned { asked, name, goes_on: None });
        };
        let dir = place.run(run.unwrap_or(LATEST))?;
        if !which.is_all() {
            let what = format!("go on with run `{}`: it has its own cases; name none", name_of(&dir));
            return Err(Fault::setup(what));
        }
        let asked = Asked::of(&dir)?.with(settings, verdicts, &dir)?;
        Ok(Planned { asked, name: None, goes_on: Some((dir, resume)) })
    }
}

/// What is to be run.
struct Planned {
    asked: Asked,
    /// The name of a new run, if it is given one.
    name: Option<String>,
    /// The run that goes on.
    goes_on: Option<(PathBuf, Resume)>,
}

/// Writes the reports, and says where they are.
fn tell(report: &Report, dir: &Path, formats: &[Format], rules: &ExitRules) -> Outcome<()> {
    // Both are tried: what cannot be written is seen, and what cannot be shown is kept.
    let printed = if formats.contains(&Format::Table) { print(report, rules) } else { Ok(()) };
    let written = write_reports(report, dir, formats, rules)?;
    printed?;
    let name = name_of(dir);
    let resume =
        if report.missing > 0 { format!("      Resume `--resume {name}` goes on with it\n") } else { String::new() };
    print_text(&format!("\n         Run {name}: {} in {}\n{resume}", listed(&written), dir.display()))
}

/// The report of what was run before the run was broken off. Its gates are not judged: cases are missing.
fn broken_off(dir: &Path, options: ReportOptions) -> Outcome<Report> {
    anstream::eprintln!("\n  Broken off: the trials that were running are dropped");
    let log = RunLog::open(dir)?;
    let (gates, set_gates) = Default::default();
    Ok(Report::of(&log, ReportOptions { gates, set_gates, ..options })?)
}

/// Ends with the first Ctrl-C, or the first request to end.
async fn interrupted() {
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => if pressed.is_err() { std::future::pending().await },
        () = terminated => (),
    }
}

/// The git revision, and whether there are changes; none outside of a repository.
fn revision(root: &Path) -> (Option<String>, bool) {
    let git = |args: &[&str]| {
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let revision = git(&["rev-parse", "HEAD"]);
    let dirty = revision.is_some() && git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
    (revision, dirty)
}
