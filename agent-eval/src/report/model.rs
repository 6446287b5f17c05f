//! What a run comes to, as data: everything that is printed, written or decided is read from here.

use std::collections::BTreeMap;

use agent_core::{StopReason, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Confusion;
use crate::{CheckOutcome, Manifest, Verdict, outcome::is_nothing, stats::Interval};

/// The version of the report's file format.
pub const REPORT_SCHEMA: &str = "agent-eval-report/1";

/// What a run comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: String,
    /// What was run, with what.
    pub manifest: Manifest,
    /// One for each set, in the order of their names.
    pub sets: Vec<SetReport>,
    /// What a reader must know before believing a number: too few cases, changed fingerprints, missing trials.
    pub warnings: Vec<String>,
    /// Trials that were planned and are not in the log: the run is incomplete, and can be resumed.
    pub missing: u64,
    /// Trials that failed because of the infrastructure: services, the network, time-outs.
    #[serde(default)]
    pub infrastructure_errors: u64,
    /// Trials that could not be run as they were set up: answers that were not recorded.
    #[serde(default)]
    pub setup_errors: u64,
}

/// What a set comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetReport {
    /// The set's name.
    pub name: String,
    /// Its cases, in the order of their ids.
    pub cases: Vec<CaseReport>,
    /// All trials together. The interval is over cases.
    pub total: Tally,
    /// The trials of each tag.
    pub tags: BTreeMap<String, Tally>,
    /// pass@k and pass^k for k from 1 to the smallest number of repeats, as means over cases.
    pub pass_at: Vec<PassAt>,
    /// The loop, if the subject has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<LoopReport>,
    /// The judges, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judges: Option<JudgeReport>,
    /// Against a baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The gates that were asked for.
    pub gates: Vec<GateResult>,
}

/// What a case comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseReport {
    /// The case.
    pub id: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it shares a source with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its trials.
    pub tally: Tally,
    /// The verdict of each trial, in the order of the repeats.
    pub verdicts: Vec<Verdict>,
    /// Why it is out of the gates, while its quarantine lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
    /// What did not pass.
    pub failures: Vec<Failure>,
}

/// A trial that did not pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Which repeat, from 0.
    pub repeat: u32,
    /// What went wrong with the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The checks that did not pass.
    pub checks: Vec<CheckOutcome>,
    /// The answer, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

/// Counted trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Nothing was judged.
    pub unscored: u64,
    /// The run or a check went wrong. Errors count as not passed in the rate.
    pub errors: u64,
    /// passed / all trials; none without trials.
    pub rate: Option<f64>,
    /// 95 %. Wilson's for the trials of a case, and for a set or tag with one trial a case; else by bootstrap over
    /// cases, or over groups where cases share a source. Where all of these have one rate, which resampling cannot
    /// tell from certainty, Wilson's with each of them counted once.
    pub interval: Option<Interval>,
    /// Tokens of the agents.
    #[schemars(with = "crate::schemas::Usage")]
    pub usage: Usage,
    /// Tokens of judges.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[schemars(with = "crate::schemas::Usage")]
    pub judge_usage: Usage,
    /// Milliseconds, summed.
    pub wall_ms: u64,
}

/// pass@k and pass^k of a set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassAt {
    /// How many trials.
    pub k: u64,
    /// At least one of them passes.
    pub any: Option<f64>,
    /// All of them pass.
    pub all: Option<f64>,
}

/// What the iterations of a set's loop come to; each list has one entry an iteration, from 1 to the cap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopReport {
    /// The largest number of iterations that any trial had, or the loop's own cap if it is known.
    pub cap: u32,
    /// Trials with a loop.
    pub trials: u64,
    /// Trials still failing when the iteration began.
    pub at_risk: Vec<u64>,
    /// Those that passed in it by the gold checks.
    pub passed: Vec<u64>,
    /// Their share.
    pub hazard: Vec<Option<f64>>,
    /// The probability to have passed by then.
    pub pass_by: Vec<f64>,
    /// 95 %, by bootstrap over cases.
    pub pass_by_interval: Vec<Option<Interval>>,
    /// The share of all trials that passed by then: the lower bound, in which errors, and loops that ended before
    /// the cap with a bad draft, count as failures.
    pub pass_by_errors_fail: Vec<f64>,
    /// Asking afresh as often instead: pass@k of the first drafts; none for more than there are repeats.
    pub resampling: Vec<Option<f64>>,
    /// What the loop gains over asking afresh: the mean over cases of the share passed by then minus pass@k.
    #[serde(default)]
    pub advantage: Vec<Option<f64>>,
    /// 95 % of it, by bootstrap over cases.
    #[serde(default)]
    pub advantage_interval: Vec<Option<Interval>>,
    /// The mean number of iterations of a loop with this cap.
    pub expected_iterations: Vec<f64>,
    /// Mean tokens of a trial in the iteration: all that the loop used, its own evaluators included. Judging drafts
    /// off-path is no part of what the loop costs, and is in no token count here.
    pub tokens: Vec<f64>,
    /// Tokens spent through the iteration for each trial solved by then; none while nothing is solved.
    pub cost_per_solved: Vec<Option<f64>>,
    /// Tokens of one more solve in the iteration; none where nothing was solved in it.
    pub marginal_cost: Vec<Option<f64>>,
    /// How many trials ended after so many iterations.
    pub exits: Vec<u64>,
    /// How they ended; the key is the stop reason, or `error`.
    pub stops: BTreeMap<String, u64>,
    /// Trials that ended at the cap with an objection, counted as `passed`, and all others, as `failed`.
    pub cap_hits: Tally,
    /// The smallest cap after which no iteration gains `min_gain`.
    pub recommended_cap: Option<u32>,
    /// What was looked for.
    pub min_gain: f64,
    /// What the number of trials can rule out where nothing was gained.
    pub supported_gain: Option<f64>,
    /// The loop's own verdict at exit against the gold checks.
    pub confusion: Confusion,
    /// Iterations after the first draft that was good already, summed.
    pub wasted_iterations: u64,
    /// Share of iterations (from the second on, up to the first good draft) that came to the same as the one before.
    pub stall_rate: Option<f64>,
    /// Share of trials with at least 3 iterations that returned to an older draft.
    pub oscillation_rate: Option<f64>,
    /// What the numbers say, each by a printed rule.
    pub diagnoses: Vec<String>,
}

/// How far the judges can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeReport {
    /// Judgments: those of judges in checks made of checks, too.
    pub outcomes: u64,
    /// How often each was asked, at most.
    pub repeats: u32,
    /// Tokens of judging, that of iterations included.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[schemars(with = "crate::schemas::Usage")]
    pub usage: Usage,
    /// The judges' verdicts against what people said of the same answers: a good answer is one with a good
    /// [`Label`](crate::Label).
    #[serde(default)]
    pub labels: Confusion,
    /// Agreement of the repeats (Krippendorff's alpha).
    pub alpha: Option<f64>,
    /// Agreement with human labels (Cohen's kappa), where there are labels.
    pub kappa: Option<f64>,
    /// Of the judge, measured on the labels.
    pub sensitivity: Option<f64>,
    /// Of the judge, measured on the labels.
    pub specificity: Option<f64>,
    /// The pass rate as judged.
    pub observed_rate: Option<f64>,
    /// Corrected for the judge's faults (Rogan and Gladen).
    pub corrected_rate: Option<f64>,
}

/// A set against a baseline, paired by case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The baseline's run.
    pub baseline: String,
    /// Cases in both.
    pub paired: u64,
    /// Cases of the baseline that this run does not have.
    pub missing: Vec<String>,
    /// Cases that the baseline does not have.
    pub new: Vec<String>,
    /// Cases whose pass rate fell, with old and new rate.
    pub worse: Vec<(String, f64, f64)>,
    /// Cases whose pass rate rose, with old and new rate.
    pub better: Vec<(String, f64, f64)>,
    /// The mean difference of the pass rate over cases, new minus old.
    pub difference: f64,
    /// 95 %.
    pub interval: Option<Interval>,
    /// The test that was used: `mcnemar`, `paired t` or `sign flip`.
    pub test: String,
    /// Two-sided.
    pub p: Option<f64>,
    /// One-sided: evidence of harm.
    pub p_harm: Option<f64>,
    /// The smallest drop that so many cases would show.
    pub detectable_drop: Option<f64>,
    /// What differs in what was run: models, options.
    pub fingerprint_changes: Vec<String>,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// The gate, as it was asked for.
    pub gate: String,
    /// What it says.
    pub verdict: GateVerdict,
    /// With which numbers.
    pub detail: String,
}

/// The verdict of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// There is too little evidence to say.
    Inconclusive,
}

impl LoopReport {
    /// The stop reason as the key of [`stops`](Self::stops).
    pub fn stop_key(stop: Option<StopReason>) -> String {
        let key = stop.and_then(|stop| serde_json::to_value(stop).ok());
        key.and_then(|key| key.as_str().map(str::to_owned)).unwrap_or_else(|| "error".to_owned())
    }
}
