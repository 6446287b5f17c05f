//! What a report keeps of a trial.

use agent_core::{StopReason, Usage};

use super::{judges::Judged, labels::Labels, loops::Step};
use crate::{Failure, Trial, Verdict, text::cut};

/// How many characters of an answer are kept.
const ANSWER: usize = 500;

/// What a report needs of a trial.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) verdict: Verdict,
    pub(super) usage: Usage,
    pub(super) judge_usage: Usage,
    pub(super) wall_ms: u64,
    pub(super) stop: Option<StopReason>,
    pub(super) failed: bool,
    pub(super) steps: Box<[Step]>,
    pub(super) infrastructure: bool,
    pub(super) setup: bool,
    pub(super) judged: Box<[Judged]>,
    pub(super) failure: Option<Box<Failure>>,
}

impl Row {
    pub(super) fn of(trial: &Trial, labels: &Labels) -> Self {
        let failure = || Failure {
            repeat: trial.key.repeat,
            error: trial.error.as_ref().map(|error| error.message.clone()),
            checks: trial.outcomes.iter().filter(|outcome| !outcome.outcome.passed()).cloned().collect(),
            answer: cut(&trial.answer, ANSWER),
        };
        Self {
            verdict: trial.verdict,
            usage: trial.usage,
            judge_usage: trial.judge_usage,
            wall_ms: trial.wall_ms,
            stop: trial.stop,
            failed: trial.error.is_some(),
            steps: Step::all(&trial.iterations),
            infrastructure: trial.error.as_ref().is_some_and(|error| error.infrastructure),
            setup: trial.error.as_ref().is_some_and(|error| error.setup),
            judged: Judged::all(trial, labels).into(),
            failure: (trial.verdict != Verdict::Pass).then(|| Box::new(failure())),
        }
    }
}
