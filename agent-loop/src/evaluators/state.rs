//! Evaluators that look at what agents did to the state.

use agent_core::{Result, json_equal};
use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use crate::{LoopContext, LoopEvaluation, LoopEvaluator};

/// `until_escalated`: never satisfied. For bodies that say themselves when they are done: a checker that ends
/// [`Escalated`](agent_core::StopReason::Escalated), or a model with the tool [`exit_loop`](agent_core::exit_loop).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UntilEscalated;

#[async_trait]
impl LoopEvaluator for UntilEscalated {
    fn name(&self) -> &'static str {
        "until_escalated"
    }

    async fn evaluate(&self, _: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok(LoopEvaluation::again())
    }
}

/// `state_equals`: satisfied when a state key has a value. Numbers are compared as numbers: 1 is 1.0.
#[derive(Debug, Clone, PartialEq)]
pub struct StateEquals {
    key: String,
    value: Value,
}

impl StateEquals {
    /// Wants this value under this key.
    ///
    /// # Panics
    /// If the value cannot be JSON: a map whose keys are no strings, or a `Serialize` that fails.
    pub fn new(key: impl Into<String>, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("a state value is serializable as JSON");
        Self { key: key.into(), value }
    }
}

#[async_trait]
impl LoopEvaluator for StateEquals {
    fn name(&self) -> &'static str {
        "state_equals"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let Self { key, value } = self;
        Ok(match cx.session.state().get(key) {
            Some(found) if json_equal(found, value) => LoopEvaluation::Satisfied,
            Some(found) => LoopEvaluation::feedback(format!("`{key}` is {found}; it must be {value}.")),
            None => LoopEvaluation::feedback(format!("`{key}` is not set; it must be {value}.")),
        })
    }
}
