//! `show` and `diff`: what happened in a trial, and how two differ.

use anstyle::{AnsiColor, Style};
use clap::Args;
use similar::{ChangeTag, TextDiff};

use super::{codes::Outcome, place::Place, report::print, stdout::print_text, timeline, trials::named};
use crate::{EvalCase, ExitRules, Report, ReportOptions, RunLog, Trial, Verdict};

/// Show what happened in a case's trials: messages, calls, iterations with their verdicts, and checks. Without a case,
/// the run's report.
#[derive(Debug, Clone, Args)]
pub(super) struct Show {
    /// The run: its folder, its name, or `latest`.
    run: String,
    /// The case, `[SET::]CASE`, or one of its trials, `[SET::]CASE#REPEAT`.
    case: Option<String>,
}

/// Show how two trials of a run differ, line by line.
#[derive(Debug, Clone, Args)]
pub(super) struct Diff {
    /// The run: its folder, its name, or `latest`.
    run: String,
    /// A trial, `[SET::]CASE#REPEAT`; repeat 0 if it says none.
    a: String,
    /// Another one.
    b: String,
    /// The run of the other one [default: the same].
    #[arg(long, value_name = "RUN")]
    with: Option<String>,
}

impl Show {
    pub(super) fn run(&self) -> Outcome<u8> {
        let log = RunLog::open(Place::find()?.run(&self.run)?)?;
        let Some(case) = &self.case else {
            let rules = ExitRules::default();
            let report = Report::of(&log, ReportOptions::default())?;
            print(&report, &rules)?;
            return Ok(report.exit_code(&rules));
        };
        let trials = named(&log, case)?;
        print_text(&trials.iter().flat_map(|trial| lines(trial, case_of(&log, trial))).collect::<String>())?;
        Ok(0)
    }
}

impl Diff {
    pub(super) fn run(&self) -> Outcome<u8> {
        let place = Place::find()?;
        let log = RunLog::open(place.run(&self.run)?)?;
        let other = self.with.as_ref().map(|run| Ok::<_, super::codes::Fault>(RunLog::open(place.run(run)?)?));
        let other = other.transpose()?;
        let other = other.as_ref().unwrap_or(&log);
        let (old, new) = (first(&log, &self.a)?, first(other, &self.b)?);
        let text = |log: &RunLog, trial: &Trial| {
            let lines = timeline::lines(trial, case_of(log, trial));
            lines.into_iter().map(|line| line.text + "\n").collect::<String>()
        };
        let (before, after) = (text(&log, &old), text(other, &new));
        let head = format!("- {}\n+ {}\n\n", timeline::headline(&old), timeline::headline(&new));
        let diff = TextDiff::from_lines(&before, &after);
        let changes = diff.iter_all_changes().map(|change| {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', AnsiColor::Red.on_default()),
                ChangeTag::Insert => ('+', AnsiColor::Green.on_default()),
                ChangeTag::Equal => (' ', Style::new()),
            };
            format!("{style}{sign} {}{style:#}\n", change.value().trim_end())
        });
        print_text(&std::iter::once(head).chain(changes).collect::<String>())?;
        Ok(0)
    }
}

/// The first trial that the name means.
fn first(log: &RunLog, name: &str) -> Outcome<Trial> {
    let mut trials = named(log, name)?;
    Ok(trials.swap_remove(0))
}

fn case_of<'a>(log: &'a RunLog, trial: &Trial) -> Option<&'a EvalCase> {
    let set = log.sets().iter().find(|set| set.name == trial.key.set)?;
    set.cases.iter().find(|case| case.id == trial.key.case)
}

fn lines(trial: &Trial, case: Option<&EvalCase>) -> Vec<String> {
    let color = if trial.verdict == Verdict::Pass { AnsiColor::Green } else { AnsiColor::Red };
    let (style, dim) = (color.on_default().bold(), Style::new().dimmed());
    let head = format!("\n{style}{}{style:#}\n", timeline::headline(trial));
    let line = |line: timeline::Line| {
        let at = line.at.map_or_else(String::new, |at| format!("+{:.3}s", at.as_secs_f64()));
        format!("{dim}{at:>10}{dim:#}  {}\n", line.text)
    };
    std::iter::once(head).chain(timeline::lines(trial, case).into_iter().map(line)).collect()
}
