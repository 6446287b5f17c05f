//! How far a run is: a line for each trial, and a bar in a terminal.

use std::{
    io::{IsTerminal, stderr},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::settings::{ShowProgress, StatusLevel};
use crate::{Progress, Trial, Verdict, report::words::one_line};

/// Shows on the error stream how far a run is, so that what is printed in the end can be piped on.
pub(super) struct Console {
    bar: ProgressBar,
    level: StatusLevel,
    counts: bool,
    done: AtomicU64,
    planned: AtomicU64,
}

impl Console {
    pub(super) fn new(show: ShowProgress, level: StatusLevel) -> Self {
        let has_bar = match show {
            ShowProgress::Auto => stderr().is_terminal(),
            ShowProgress::Bar => true,
            ShowProgress::Counter | ShowProgress::None => false,
        };
        let bar = ProgressBar::hidden();
        bar.set_style(style());
        if has_bar {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let counts = show != ShowProgress::None;
        Self { bar, level, counts, done: AtomicU64::new(0), planned: AtomicU64::new(0) }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, trial: &Trial, done: u64) -> String {
        let (word, style) = match trial.verdict {
            Verdict::Pass => ("PASS", AnsiColor::Green.on_default().bold()),
            Verdict::Fail => ("FAIL", AnsiColor::Red.on_default().bold()),
            Verdict::Error => ("ERROR", AnsiColor::Red.on_default().bold()),
            Verdict::Unscored => ("UNSCORED", AnsiColor::Yellow.on_default().bold()),
        };
        let planned = self.planned.load(Relaxed);
        let width = planned.to_string().len();
        let count = if self.counts { format!("({done:>width$}/{planned}) ") } else { String::new() };
        let seconds = std::time::Duration::from_millis(trial.wall_ms).as_secs_f64();
        let retries = match trial.retries {
            0 => String::new(),
            1 => " (1 retry)".to_owned(),
            retries => format!(" ({retries} retries)"),
        };
        let dim = Style::new().dimmed();
        format!("{style}{word:>12}{style:#} {dim}[{seconds:>8.3}s]{dim:#} {count}{}{retries}", name(trial))
    }
}

/// A trial's name, as `show` and `diff` read it.
fn name(trial: &Trial) -> String {
    one_line(&format!("{}::{}#{}", trial.key.set, trial.key.case, trial.key.repeat))
}

fn style() -> ProgressStyle {
    let template = "{spinner} [{elapsed_precise}] {bar:40} {pos}/{len} trials, {msg}{eta} left";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Console {
    fn began(&self, planned: u64, done: u64) {
        self.planned.store(planned, Relaxed);
        self.done.store(done, Relaxed);
        self.bar.set_length(planned);
        self.bar.set_position(done);
    }

    fn trial_ended(&self, trial: &Trial) {
        let done = self.done.fetch_add(1, Relaxed) + 1;
        self.bar.set_position(done);
        let is_shown = match self.level {
            StatusLevel::None => false,
            StatusLevel::Fail => trial.verdict != Verdict::Pass,
            StatusLevel::All => true,
        };
        if is_shown {
            self.bar.suspend(|| anstream::eprintln!("{}", self.line(trial, done)));
        }
    }
}
