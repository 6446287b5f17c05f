//! What a check or a scorer says.

use agent_core::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CheckOutcome;

/// A judgment. `Unscored` and `Error` are never 0, and never a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// Not as it should be.
    Fail,
    /// Nothing was judged: what the check needs is not there.
    Unscored,
    /// The check itself went wrong: a judge that crashed, a command that could not be started.
    Error,
}

/// What a check or a scorer says of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The judgment.
    pub verdict: Verdict,
    /// A grade beside it, where the check has one: 0 to 1 unless the check says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Why, in a sentence; for a pass it may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Expected against actual, line by line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The single votes of a judge that was asked several times (true: pass); empty for every other check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<bool>,
    /// What each judge in a check made of checks said, whatever came of it; empty for every other check. None names a
    /// turn: they are of the whole one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<CheckOutcome>,
    /// What judging used: a judge's tokens. None of it is the agent's.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[schemars(with = "crate::schemas::Usage")]
    pub usage: Usage,
}

impl Outcome {
    /// As it should be.
    pub fn pass() -> Self {
        Self::new(Verdict::Pass, "")
    }

    /// Not as it should be.
    pub fn fail(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Fail, reason)
    }

    /// Nothing was judged.
    pub fn unscored(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Unscored, reason)
    }

    /// The check itself went wrong.
    pub fn error(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Error, reason)
    }

    /// A pass if the condition holds, else a failure with this reason.
    pub fn of(holds: bool, reason: impl FnOnce() -> String) -> Self {
        if holds { Self::pass() } else { Self::fail(reason()) }
    }

    /// With a grade.
    pub fn with_value(mut self, value: f64) -> Self {
        self.value = Some(value);
        self
    }

    /// With expected against actual.
    pub fn with_diff(mut self, diff: impl Into<String>) -> Self {
        self.diff = Some(diff.into());
        self
    }

    /// With the single votes of a judge.
    pub fn with_votes(mut self, votes: impl IntoIterator<Item = bool>) -> Self {
        self.votes = votes.into_iter().collect();
        self
    }

    /// With what the judges in it said.
    pub fn with_judges(mut self, judges: impl IntoIterator<Item = CheckOutcome>) -> Self {
        self.judges = judges.into_iter().collect();
        self
    }

    /// With what judging used.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Pass
    }

    pub(crate) fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        let (votes, judges) = Default::default();
        Self { verdict, value: None, reason: reason.into(), diff: None, votes, judges, usage: Usage::default() }
    }
}

/// The verdict of several checks together: an error outweighs a failure, a failure what was not judged, and that a
/// pass. None at all is `Unscored`: what nobody checked has not passed.
pub fn overall(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let rank = |verdict| match verdict {
        Verdict::Error => 3,
        Verdict::Fail => 2,
        Verdict::Unscored => 1,
        Verdict::Pass => 0,
    };
    verdicts.into_iter().max_by_key(|verdict| rank(*verdict)).unwrap_or(Verdict::Unscored)
}

pub(crate) fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}
