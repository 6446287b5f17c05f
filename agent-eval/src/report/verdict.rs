//! The one verdict on a run: its text and its exit code come from here.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{GateVerdict, Report};

/// What a verdict looks at beside the report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExitRules {
    /// The largest share of trials that may fail because of the infrastructure; 0.05 by default.
    pub max_infrastructure_errors: f64,
    /// Whether a gate that may hold by luck fails the run.
    pub require_evidence: bool,
}

impl Default for ExitRules {
    fn default() -> Self {
        Self { max_infrastructure_errors: 0.05, require_evidence: false }
    }
}

/// The verdict on a run, in the order in which they outweigh each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// Trials could not be run as they were set up: answers were not recorded.
    BadSetup(String),
    /// Too many trials failed because of the infrastructure: nothing else can be said.
    TooManyInfrastructureErrors(String),
    /// A gate failed.
    GateFailed(String),
    /// Planned trials were not run.
    Incomplete(String),
    /// Gates hold, and it may be luck; only where evidence is required.
    Inconclusive(String),
    /// All gates hold for the cases that were selected, and cases of the baseline were not among them.
    Partial(String),
    /// All gates hold.
    Passed(String),
}

impl RunVerdict {
    /// The exit code of a process with this verdict.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Passed(_) => 0,
            Self::Partial(_) => 5,
            Self::BadSetup(_) => 96,
            Self::GateFailed(_) => 100,
            Self::TooManyInfrastructureErrors(_) => 101,
            Self::Incomplete(_) => 106,
            Self::Inconclusive(_) => 107,
        }
    }
}

impl fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(text) => write!(f, "PASS: {text}"),
            Self::Partial(text) => write!(f, "PARTIAL: {text}"),
            Self::GateFailed(text) => write!(f, "FAIL: {text}"),
            Self::BadSetup(text) | Self::TooManyInfrastructureErrors(text) => write!(f, "ERROR: {text}"),
            Self::Incomplete(text) => write!(f, "INCOMPLETE: {text}"),
            Self::Inconclusive(text) => write!(f, "INCONCLUSIVE: {text}"),
        }
    }
}

impl Report {
    /// The verdict.
    pub fn verdict(&self, rules: &ExitRules) -> RunVerdict {
        let trials: u64 = self.sets.iter().map(|set| set.total.trials()).sum();
        if self.setup_errors > 0 {
            let text = "trials could not be run as set up; mend that, and run them again";
            return RunVerdict::BadSetup(format!("{} of {trials} {text}", self.setup_errors));
        }
        let errors = self.infrastructure_errors;
        if errors as f64 > rules.max_infrastructure_errors * trials as f64 {
            let text = format!("{errors} of {trials} trials failed because of the infrastructure");
            return RunVerdict::TooManyInfrastructureErrors(text);
        }
        let failed = self.gates_that(GateVerdict::Failed);
        if !failed.is_empty() {
            return RunVerdict::GateFailed(failed);
        }
        if self.missing > 0 || trials == 0 {
            let remedy = self.manifest.completed_by();
            return RunVerdict::Incomplete(format!("{} trials were not run; {remedy}", self.missing));
        }
        let inconclusive = self.gates_that(GateVerdict::Inconclusive);
        if rules.require_evidence && !inconclusive.is_empty() {
            return RunVerdict::Inconclusive(inconclusive);
        }
        let left_out =
            self.sets.iter().filter_map(|set| set.comparison.as_ref()).map(|c| c.missing.len()).sum::<usize>();
        if self.manifest.partial && left_out > 0 {
            return RunVerdict::Partial(format!("{left_out} cases of the baseline were not selected"));
        }
        let gates = || self.sets.iter().flat_map(|set| &set.gates);
        let passed: u64 = self.sets.iter().map(|set| set.total.passed).sum();
        let unsure = gates().filter(|gate| gate.verdict == GateVerdict::Inconclusive).count();
        let gates = match (gates().count(), unsure) {
            (0, _) => "no gate was asked for".to_owned(),
            (1, 0) => "1 gate holds".to_owned(),
            (1, _) => "1 gate does not fail, and may hold by luck".to_owned(),
            (all, 0) => format!("{all} gates hold"),
            (all, unsure) => format!("{all} gates do not fail, {unsure} of them may hold by luck"),
        };
        RunVerdict::Passed(format!("{gates}; {passed} of {trials} trials passed"))
    }

    /// The exit code of the verdict.
    pub fn exit_code(&self, rules: &ExitRules) -> u8 {
        self.verdict(rules).exit_code()
    }

    fn gates_that(&self, verdict: GateVerdict) -> String {
        let gates = self.sets.iter().flat_map(|set| set.gates.iter().map(move |gate| (set, gate)));
        let these = gates.filter(|(_, gate)| gate.verdict == verdict);
        let texts: Vec<String> =
            these.map(|(set, gate)| format!("{}: {} ({})", set.name, gate.gate, gate.detail)).collect();
        texts.join("; ")
    }
}
