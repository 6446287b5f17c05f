//! How a run goes.

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent_core::ChatClient;
use serde::{Deserialize, Serialize};

use crate::{Check, EvalCase, EvalSet, ReportOptions, Scorer, Trial, TrialKey};

/// Which cases are run.
pub type CaseFilter = Arc<dyn Fn(&EvalSet, &EvalCase) -> bool + Send + Sync>;

/// How a run goes. All is optional:
///
/// ```
/// use agent_eval::RunOptions;
///
/// let options = RunOptions { repeats: 5.try_into().ok(), seed: 7, ..Default::default() };
/// assert_eq!(options.concurrency.get(), 4);
/// ```
#[derive(Clone)]
pub struct RunOptions {
    /// How often each case is run, whatever the set says.
    pub repeats: Option<NonZeroU32>,
    /// How many trials run at once; 4 by default.
    pub concurrency: NonZeroUsize,
    /// What the seeds of all trials and of all resampling are derived from.
    pub seed: u64,
    /// How often a trial is begun again if the infrastructure fails, after the wait that a service asks for, unless that
    /// is more than ten minutes; its retries are recorded. A wrong answer is never tried again.
    pub retries: u32,
    /// How long a trial, and each scorer after it, may take; longer is an infrastructure error. A case's own budget of
    /// time is a limit of the agent, and more is a failure.
    pub timeout: Option<Duration>,
    /// Tokens of the whole run, those of judges included; once they are used, no further trial begins.
    pub max_tokens: Option<u64>,
    /// Whether no further trial begins once one did not pass.
    pub fail_fast: bool,
    /// The run's directory, see [`RunLog`](crate::RunLog). Without one nothing is kept but the report.
    pub log: Option<PathBuf>,
    /// Whether to go on with the run that is in `log`, and what of it is run again.
    pub resume: Option<Resume>,
    /// The ids of the cases to run; all if empty.
    pub cases: Vec<String>,
    /// Which of them are run.
    pub filter: Option<CaseFilter>,
    /// Checks of every case, beside its own.
    pub checks: Vec<Arc<dyn Check>>,
    /// Scorers of every case, beside its own.
    pub scorers: Vec<Arc<dyn Scorer>>,
    /// Whether scorers judge each iteration of a loop, too, and not the end alone. A judge costs a call an iteration
    /// then, and the agent waits for it, so that a budget of time is used up sooner.
    pub gold_scorers: bool,
    /// The model that judges, for sets that want one.
    pub judge: Option<Arc<dyn ChatClient>>,
    /// How often it is asked, where a check does not say.
    pub judge_repeats: NonZeroU32,
    /// Who is told how far the run is.
    pub progress: Option<Arc<dyn Progress>>,
    /// Where the answers of models come from; passed on to the subject.
    pub cassettes: CassetteMode,
    /// The git revision, for the manifest.
    pub revision: Option<String>,
    /// Whether the work tree has changes, for the manifest.
    pub dirty: bool,
    /// When the run begins; now if absent.
    pub began: Option<SystemTime>,
    /// How the report is built.
    pub report: ReportOptions,
}

impl Default for RunOptions {
    fn default() -> Self {
        const CONCURRENCY: NonZeroUsize = NonZeroUsize::new(4).expect("not zero");
        Self {
            repeats: None,
            concurrency: CONCURRENCY,
            seed: 0,
            retries: 0,
            timeout: None,
            max_tokens: None,
            fail_fast: false,
            log: None,
            resume: None,
            cases: Vec::new(),
            filter: None,
            checks: Vec::new(),
            scorers: Vec::new(),
            gold_scorers: false,
            judge: None,
            judge_repeats: NonZeroU32::MIN,
            progress: None,
            cassettes: CassetteMode::Live,
            revision: None,
            dirty: false,
            began: None,
            report: ReportOptions::default(),
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("repeats", &self.repeats)
            .field("concurrency", &self.concurrency)
            .field("seed", &self.seed)
            .field("retries", &self.retries)
            .field("timeout", &self.timeout)
            .field("max_tokens", &self.max_tokens)
            .field("fail_fast", &self.fail_fast)
            .field("log", &self.log)
            .field("resume", &self.resume)
            .field("cases", &self.cases)
            .field("cassettes", &self.cassettes)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// Which trials of a run that is gone on with are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resume {
    /// Those that are not in its log.
    Missing,
    /// And those that ended with an error.
    Errors,
    /// And all others that did not pass.
    NotPassed,
}

/// Where the answers of a subject's models come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CassetteMode {
    /// From the models.
    #[default]
    Live,
    /// From the models, and they are kept.
    Record,
    /// From what was kept; what is not there is an error. Time means nothing then.
    Replay,
}

/// Who is told how far a run is. Calls come from the task that runs the set and hold it up.
pub trait Progress: Send + Sync {
    /// The run begins: so many trials are planned, and so many of them are done already.
    fn began(&self, planned: u64, done: u64) {
        let _ = (planned, done);
    }

    /// A trial begins.
    fn trial_began(&self, trial: &TrialKey) {
        let _ = trial;
    }

    /// A trial has ended, and is in the log.
    fn trial_ended(&self, trial: &Trial) {
        let _ = trial;
    }
}
