//! What can be set on the command line and in a profile.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::codes::{Fault, Outcome};
use crate::CassetteMode;

/// How a run goes. A flag outweighs the profile; what neither says has a default.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Settings {
    /// Run each case so often, whatever its set says.
    #[arg(long, value_name = "N", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeats: Option<u32>,
    /// Trials at once [default: 4].
    #[arg(short, long, value_name = "N", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jobs: Option<usize>,
    /// Begin a trial again so often while the infrastructure fails; a wrong answer is never tried again [default: 0].
    #[arg(long, value_name = "N", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retries: Option<u32>,
    /// A trial that takes longer is an infrastructure error, such as `90s` or `5m` [default: no limit].
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeout: Option<String>,
    /// Begin no trial once so many tokens are used [default: no limit].
    #[arg(long, value_name = "N", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u64>,
    /// Begin no trial once one did not pass.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fail_fast: Option<bool>,
    /// What the seeds of all trials and of all resampling come from [default: 0].
    #[arg(long, value_name = "N", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    /// Where the answers of models come from [default: replay].
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<CassetteMode>,
    /// The model to ask or, in a replay, the one whose answers are replayed [default: `AGENT_MODEL` with --live and
    /// --record; whichever was recorded in a replay].
    #[arg(long, value_name = "PROVIDER:NAME", help_heading = "Models")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// Where the model's service is [default: where its provider is].
    #[arg(long, value_name = "URL", help_heading = "Models")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// The model that judges, for checks that ask one. It is always asked: judgments are not recorded.
    #[arg(long, value_name = "PROVIDER:NAME", help_heading = "Models")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge: Option<String>,
    /// Where the judge's service is [default: where its provider is].
    #[arg(long, value_name = "URL", help_heading = "Models")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge_base_url: Option<String>,
    /// Ask the judge so often, and take the majority [default: 1].
    #[arg(long, value_name = "N", help_heading = "Models")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge_repeats: Option<NonZeroU32>,
    /// Let judges and programs judge each iteration of a loop, too, and not its end alone.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        help_heading = "Models")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gold_scorers: Option<bool>,
    /// What to make of the run: the table is printed, the rest is written into the run's folder
    /// [default: table,json,junit,html].
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', help_heading = "Reporting")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) format: Vec<Format>,
    /// How the run's progress is shown [default: auto: a bar in a terminal, else a count at each trial].
    #[arg(long, value_name = "HOW", help_heading = "Reporting")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) show_progress: Option<ShowProgress>,
    /// Which trials have a line of their own when they end [default: all].
    #[arg(long, value_name = "WHICH", help_heading = "Reporting")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status_level: Option<StatusLevel>,
}

/// What is judged of a run that is there.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Verdicts {
    /// What must hold of each set, such as `pass_rate>=0.9`, or of one, such as `sql: cap_hit_rate<=0.1`. Others:
    /// `pass_at_K>=X`, `pass_hat_K>=X`, `case_rate>=X`, `error_rate<=X`, `tokens_per_solved<=X`, `regression<=X`,
    /// `hard(TAG)`, `coverage` [default: no gate].
    #[arg(long = "gate", value_name = "GATE", help_heading = "Gates")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) gates: Vec<String>,
    /// What to compare with: a folder of baselines, a baseline, a run, or `none` [default: evals/baselines].
    #[arg(long, value_name = "WHAT", help_heading = "Gates")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<String>,
    /// What people said of answers, to measure judges by: a file of labels [default: evals/labels/SET.jsonl].
    #[arg(long, value_name = "FILE", help_heading = "Gates")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) labels: Option<PathBuf>,
    /// A gate that may hold by luck fails the run.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        help_heading = "Gates")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) require_evidence: Option<bool>,
    /// The largest share of trials that may fail because of the infrastructure [default: 0.05].
    #[arg(long, value_name = "SHARE", help_heading = "Gates")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_infrastructure_errors: Option<f64>,
}

/// In which form a report is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    /// For a terminal.
    Table,
    /// All of it, for programs.
    Json,
    /// For CI servers.
    Junit,
    /// Markdown for a pull request.
    Md,
    /// One page for a browser.
    Html,
}

/// How a run's progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ShowProgress {
    /// A bar in a terminal, else a counter.
    #[default]
    Auto,
    /// A bar.
    Bar,
    /// A count at each trial's line.
    Counter,
    /// Neither.
    None,
}

/// Which trials have a line of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StatusLevel {
    /// None.
    None,
    /// Those that did not pass.
    Fail,
    /// All.
    #[default]
    All,
}

impl Format {
    /// What a run makes if nobody says what.
    pub(super) const DEFAULT: [Self; 4] = [Self::Table, Self::Json, Self::Junit, Self::Html];
}

impl Settings {
    /// These where they say something, else the others.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            repeats: self.repeats.or(other.repeats),
            jobs: self.jobs.or(other.jobs),
            retries: self.retries.or(other.retries),
            timeout: self.timeout.or(other.timeout),
            max_tokens: self.max_tokens.or(other.max_tokens),
            fail_fast: self.fail_fast.or(other.fail_fast),
            seed: self.seed.or(other.seed),
            mode: self.mode.or(other.mode),
            model: self.model.or(other.model),
            base_url: self.base_url.or(other.base_url),
            judge: self.judge.or(other.judge),
            judge_base_url: self.judge_base_url.or(other.judge_base_url),
            judge_repeats: self.judge_repeats.or(other.judge_repeats),
            gold_scorers: self.gold_scorers.or(other.gold_scorers),
            format: if self.format.is_empty() { other.format } else { self.format },
            show_progress: self.show_progress.or(other.show_progress),
            status_level: self.status_level.or(other.status_level),
        }
    }

    /// Where answers come from.
    pub(super) fn mode(&self) -> CassetteMode {
        self.mode.unwrap_or(CassetteMode::Replay)
    }

    /// How long a trial may take.
    pub(super) fn timeout(&self) -> Outcome<Option<Duration>> {
        let parse = |text: &String| {
            humantime::parse_duration(text)
                .map_err(|error| Fault::setup(format!("read the time limit `{text}`: {error}; write `90s` or `5m`")))
        };
        self.timeout.as_ref().map(parse).transpose()
    }

    /// How many trials run at once.
    pub(super) fn jobs(&self) -> Outcome<Option<NonZeroUsize>> {
        let given = |jobs| {
            NonZeroUsize::new(jobs)
                .ok_or_else(|| Fault::setup("run 0 trials at once: nothing would be run; give at least 1"))
        };
        self.jobs.map(given).transpose()
    }

    /// How often each case is run, whatever its set says.
    pub(super) fn repeats(&self) -> Outcome<Option<NonZeroU32>> {
        let given = |repeats| {
            NonZeroU32::new(repeats)
                .ok_or_else(|| Fault::setup("run each case 0 times: nothing would be run; give at least 1"))
        };
        self.repeats.map(given).transpose()
    }
}

impl Verdicts {
    /// The fields' names in a profile.
    pub(super) const KEYS: [&str; 5] = ["gates", "baseline", "labels", "require-evidence", "max-infrastructure-errors"];

    /// These where they say something, else the others; gates are added.
    pub(super) fn or(self, other: Self) -> Self {
        let mut gates = other.gates;
        gates.extend(self.gates.into_iter().filter(|gate| !gates.contains(gate)).collect::<Vec<_>>());
        Self {
            gates,
            baseline: self.baseline.or(other.baseline),
            labels: self.labels.or(other.labels),
            require_evidence: self.require_evidence.or(other.require_evidence),
            max_infrastructure_errors: self.max_infrastructure_errors.or(other.max_infrastructure_errors),
        }
    }
}
