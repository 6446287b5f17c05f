//! What an evaluator answers.

use agent_core::ChatMessage;

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
        Self::Continue(Some(text.into()).filter(|text| !text.trim().is_empty()))
    }
}
