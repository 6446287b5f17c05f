//! What a run may spend, and what it has spent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a run may spend, everything that it reaches included; none is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls; 100 by default. Exact.
    pub model_calls: Option<u32>,
    /// Tool calls. Exact.
    pub tool_calls: Option<u32>,
    /// Input and output tokens together, looked at before each model call: the call that crosses the line is the last.
    pub tokens: Option<u64>,
    /// Time since the context was made; it interrupts a pending model call, tool or evaluator.
    pub wall: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { model_calls: Some(100), tool_calls: None, tokens: None, wall: None }
    }
}

/// What a run has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Model calls that were allowed.
    pub model_calls: u32,
    /// Tool calls that were allowed.
    pub tool_calls: u32,
    /// Input and output tokens together.
    pub tokens: u64,
    /// Time since the context was made; of a run that was [taken up](crate::RunContext::taken_up), the time before, too.
    pub wall: Duration,
}
