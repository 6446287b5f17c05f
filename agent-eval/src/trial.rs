//! Trials: one run of one case.

use agent_core::{Event, StopReason, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Outcome, Verdict, outcome::is_nothing};

/// Which trial: a line of a run's log is found by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TrialKey {
    /// The set.
    pub set: String,
    /// The case.
    pub case: String,
    /// Which repeat, from 0.
    pub repeat: u32,
}

/// One run of one case, as the log keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Which trial.
    #[serde(flatten)]
    pub key: TrialKey,
    /// The seed that the agent was made with.
    pub seed: u64,
    /// The overall verdict: of all outcomes, or `Error` if the run failed.
    pub verdict: Verdict,
    /// What each check said, in the order of the case.
    pub outcomes: Vec<CheckOutcome>,
    /// How the run ended; none if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::schemas::StopReason>")]
    pub stop: Option<StopReason>,
    /// What failed, with its causes on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
    /// The loop's iterations, each judged off-path; empty if there is no loop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<IterationTrace>,
    /// The answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// What the agent used.
    #[serde(default)]
    #[schemars(with = "crate::schemas::Usage")]
    pub usage: Usage,
    /// What judging used, each iteration's included; none of it is the agent's.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[schemars(with = "crate::schemas::Usage")]
    pub judge_usage: Usage,
    /// How long it took, in milliseconds.
    pub wall_ms: u64,
    /// How often it was begun again because the infrastructure failed.
    #[serde(default)]
    pub retries: u32,
    /// Model calls that were answered from a cassette.
    #[serde(default)]
    pub cassette_hits: u32,
    /// Everything that was recorded, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::schemas::Event>")]
    pub events: Vec<Event>,
    /// Where in `events` each turn of a conversation begins; empty if nothing was said after the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<usize>,
    /// How each of these turns ended; empty in logs that do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<crate::schemas::StopReason>")]
    pub stops: Vec<StopReason>,
}

/// What one check said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckOutcome {
    /// The check's name.
    pub check: String,
    /// Which turn of the case it belongs to, from 0; none for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// What it said.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl CheckOutcome {
    /// What judges said: this, if it is a judge's, or those in it.
    pub(crate) fn judgments(&self) -> impl Iterator<Item = &Self> {
        let own = (!self.outcome.votes.is_empty()).then_some(self);
        own.into_iter().chain(&self.outcome.judges)
    }
}

/// Why a trial has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialError {
    /// The error and its causes.
    pub message: String,
    /// Whether it is the infrastructure's (a service, the network, a time-out), not the agent's.
    pub infrastructure: bool,
    /// Whether it is how the trial was set up, see [`SetupError`](crate::SetupError).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup: bool,
}

/// One iteration of a trial's loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationTrace {
    /// Which iteration, from 1.
    pub iteration: u32,
    /// What its draft is worth by the case's own checks, whatever the loop thought of it.
    pub gold: Verdict,
    /// Whether the loop's evaluators had nothing against it.
    pub accepted: bool,
    /// The evaluator that objected, or the agent that escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The tokens of the whole pass.
    #[serde(default)]
    #[schemars(with = "crate::schemas::Usage")]
    pub usage: Usage,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// A hash of what it came to: equal drafts have equal digests.
    pub digest: u64,
    /// The draft.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub draft: String,
}

/// The first line of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// `agent-eval-run/1`.
    pub schema: String,
    /// The run's id.
    pub run: String,
    /// The sets and how many trials each has.
    pub sets: std::collections::BTreeMap<String, u64>,
    /// The seed of the whole run.
    pub seed: u64,
    /// What the subjects are made of: models, options, versions. Runs are compared only if they say how they differ.
    pub fingerprint: Value,
    /// The git revision, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether the work tree had changes.
    #[serde(default)]
    pub dirty: bool,
    /// Whether only some of the sets' cases were selected.
    #[serde(default)]
    pub partial: bool,
    /// Whether it is the trials of another run, judged anew: there is nothing to go on with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scored: bool,
    /// When it began, RFC 3339 in UTC.
    pub began: String,
    /// The version of this crate.
    pub version: String,
}

impl Manifest {
    /// How an incomplete run becomes complete.
    pub(crate) fn completed_by(&self) -> &'static str {
        if self.scored { "resume the run that was scored, and score it again" } else { "resume it" }
    }
}
