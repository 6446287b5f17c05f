//! What people said of answers: judges are measured by it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use agent_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CheckOutcome, EvalCase, RunLog, Trial,
    load::{
        read_text,
        tree::{Spot, Tree, error_at},
    },
};

/// What a person said of an answer. A file of labels has one a line (JSON Lines).
///
/// A label is about one answer: it counts for every trial of the case that gave this answer, in any run, and for no
/// other. So labels stay true when the agent changes, and are there again when it answers the same.
/// [`Label::wanted`] lists the answers of a run to be labeled; [`ReportOptions::labels`](crate::ReportOptions::labels)
/// takes them. Where a case has one answer only, such as a set that was written to measure a judge,
/// `human_verdict: pass` or `fail` in the case's `metadata` says the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The set.
    pub set: String,
    /// The case.
    pub case: String,
    /// The check that it is about; all judges of the case if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The answer that was read; white space at both ends does not count.
    pub answer: String,
    /// Whether it is good; `null` until somebody has read it.
    pub good: Option<bool>,
    /// Who read it, or why it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Label {
    /// Reads a file of labels.
    ///
    /// # Errors
    /// A file that cannot be read, and the first line that is no label, with its place.
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<Self>> {
        let (text, file) = (read_text(path.as_ref())?, path.as_ref().display().to_string());
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let read = |(line, text): (u64, &str)| {
            let spot = Spot { line, column: 1 };
            let value = Tree::json(&file, text, spot)?.value();
            serde_json::from_value(value).map_err(|error| error_at(&file, spot, format!("no label: {error}")))
        };
        lines.map(read).collect()
    }

    /// The answers of a run that judges judged, each once, as labels that nobody has given yet.
    ///
    /// # Errors
    /// What keeps the log from being read.
    pub fn wanted(run: &RunLog) -> Result<Vec<Self>> {
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for trial in run.trials()? {
            let trial = trial?;
            let of_answer = trial.outcomes.iter().filter(|outcome| is_of_answer(outcome, &trial));
            for judgment in of_answer.flat_map(CheckOutcome::judgments) {
                let Trial { key, answer, .. } = &trial;
                let (set, case, answer) = (key.set.clone(), key.case.clone(), answer.clone());
                let label = Self { set, case, check: Some(judgment.check.clone()), answer, good: None, note: None };
                if seen.insert(label.clone()) {
                    wanted.push(label);
                }
            }
        }
        wanted.sort_by(|a, b| (&a.set, &a.case, &a.check, &a.answer).cmp(&(&b.set, &b.case, &b.check, &b.answer)));
        Ok(wanted)
    }
}

/// Labels by what they are about.
#[derive(Debug, Default)]
pub(super) struct Labels(HashMap<Read, Vec<Said>>);

/// Set, case and answer.
type Read = (String, String, String);
/// The check that it is about, and whether the answer is good.
type Said = (Option<String>, bool);

impl Labels {
    pub(super) fn new(labels: &[Label]) -> Self {
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        for Label { set, case, check, answer, good, .. } in labels {
            if let Some(good) = good {
                let key = (set.clone(), case.clone(), answer.trim().to_owned());
                found.entry(key).or_default().push((check.clone(), *good));
            }
        }
        Self(found)
    }

    /// What people said of this trial's answer, for this check.
    pub(super) fn of(&self, trial: &Trial, check: &str) -> Vec<bool> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let key = (trial.key.set.clone(), trial.key.case.clone(), trial.answer.trim().to_owned());
        let about = |(of, _): &&Said| of.as_deref().is_none_or(|of| of == check);
        self.0.get(&key).into_iter().flatten().filter(about).map(|(_, good)| *good).collect()
    }
}

/// Whether it is about the trial's answer, and not about what was said in an earlier turn.
pub(super) fn is_of_answer(outcome: &CheckOutcome, trial: &Trial) -> bool {
    outcome.turn.is_none_or(|turn| turn + 1 >= trial.turns.len())
}

/// `human_verdict` in a case's metadata: `pass` or `fail`.
pub(super) fn of_case(case: &EvalCase) -> Option<bool> {
    match case.metadata.get("human_verdict")?.as_str()? {
        "pass" => Some(true),
        "fail" => Some(false),
        _ => None,
    }
}
