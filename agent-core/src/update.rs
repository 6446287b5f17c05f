//! What a run yields, and the reasons for which it ends.

use std::fmt;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{Event, Result};

/// A piece of something that is still being written: for display only, never committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// A piece of the answer.
    Text(String),
    /// A piece of the model's thoughts.
    Reasoning(String),
    /// A piece of a call's arguments, as JSON text.
    ToolArguments {
        /// The call that it belongs to.
        call_id: String,
        /// The next characters of its arguments.
        json: String,
    },
}

/// One item of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A piece for display.
    Delta(Delta),
    /// A committed step.
    Event(Event),
    /// The end: once, and last.
    Done(StopReason),
}

/// A run: updates until one [`Update::Done`] or one error, and nothing after either.
///
/// It is a pull stream: its body does not move between polls, so whoever pulls can store an event before asking for
/// the next one. Put nothing between an agent and its runner that pulls ahead.
pub type Updates<'a> = BoxStream<'a, Result<Update>>;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The work is done.
    Completed,
    /// An agent asked the enclosing loop to end.
    Escalated,
    /// A tool call waits for the caller's answer.
    AwaitingApproval,
    /// The model reached its output limit.
    Length,
    /// The service withheld the answer.
    Filtered,
    /// An agent used all its turns.
    TurnLimit,
    /// A loop used all its iterations and something still objected.
    IterationLimit,
    /// One of the run's [`Limits`](crate::Limits) was reached.
    BudgetExhausted,
    /// An evaluator forbade the loop to go on.
    Halted,
    /// The run was cancelled.
    Cancelled,
}

impl StopReason {
    /// Whether running the same session again takes the run up where it stopped:
    /// [`AwaitingApproval`](Self::AwaitingApproval), [`Cancelled`](Self::Cancelled),
    /// [`BudgetExhausted`](Self::BudgetExhausted).
    pub fn is_suspended(self) -> bool {
        match self {
            Self::AwaitingApproval | Self::BudgetExhausted | Self::Cancelled => true,
            Self::Completed
            | Self::Escalated
            | Self::Length
            | Self::Filtered
            | Self::TurnLimit
            | Self::IterationLimit
            | Self::Halted => false,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Completed => "completed",
            Self::Escalated => "escalated",
            Self::AwaitingApproval => "awaiting approval",
            Self::Length => "output limit reached",
            Self::Filtered => "answer withheld by the service",
            Self::TurnLimit => "turn limit reached",
            Self::IterationLimit => "iteration limit reached",
            Self::BudgetExhausted => "budget exhausted",
            Self::Halted => "halted by an evaluator",
            Self::Cancelled => "cancelled",
        })
    }
}
