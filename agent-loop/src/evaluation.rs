//! What an evaluator answers.

use std::fmt;

use agent_core::{ChatMessage, Error, ErrorKind, StateChange, StopReason};

use crate::text::is_blank;

/// An evaluator's answer. The first that is not [`Satisfied`](Self::Satisfied) decides.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopEvaluation {
    /// Nothing to object: the next evaluator is asked. If all are satisfied the loop is done.
    Satisfied,
    /// Run again, with this feedback. None, or nothing but white space: run again without a word.
    Continue(Option<String>),
    /// Run again, with exactly these messages.
    ContinueWith(Vec<ChatMessage>),
    /// Stop at once, whatever later evaluators want, for this reason.
    Halt(String),
}

impl LoopEvaluation {
    /// Run again without a word.
    pub fn again() -> Self {
        Self::Continue(None)
    }

    /// Run again with this feedback; nothing but white space is none.
    pub fn feedback(text: impl Into<String>) -> Self {
        Self::Continue(Some(text.into()).filter(|text| !is_blank(text)))
    }
}

/// An evaluation, and what it changes in the session's state: committed together with the iteration's record.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What the evaluator decided.
    pub evaluation: LoopEvaluation,
    /// What it wants noted. Keys are its own, never an agent's or the framework's.
    pub state: Vec<StateChange>,
}

impl From<LoopEvaluation> for Verdict {
    fn from(evaluation: LoopEvaluation) -> Self {
        Self { evaluation, state: Vec::new() }
    }
}

/// What an evaluator returns as its error if a limit refused what it needs, or the run is cancelled: the loop ends
/// with that reason, as if the iteration itself had been interrupted, and can be taken up again.
///
/// ```
/// use agent_core::RunContext;
/// use agent_loop::Interrupted;
///
/// fn before_a_judge_calls_its_model(run: &RunContext) -> agent_core::Result<()> {
///     Ok(run.take_model_call().map_err(Interrupted)?)
/// }
/// # before_a_judge_calls_its_model(&RunContext::default()).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted(pub StopReason);

impl Interrupted {
    /// The reason, if that is what an error says.
    pub(crate) fn of(error: &Error) -> Option<StopReason> {
        let source = std::error::Error::source(error)?;
        source.downcast_ref::<Self>().map(|Self(stop)| *stop)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Self {
        Self::new(ErrorKind::Evaluator, "judge an iteration").with_source(interrupted)
    }
}
