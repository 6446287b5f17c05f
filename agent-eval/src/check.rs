//! The border between the engine and what judges.

use std::{sync::Arc, time::Duration};

use agent_core::{Event, Session, StopReason, ToolCall, Usage};
use async_trait::async_trait;

use crate::{EvalCase, IterationTrace, Outcome};

/// What a check or scorer is told: a trial, or one iteration of it, or one turn.
#[derive(Debug, Clone, Copy)]
pub struct CheckContext<'a> {
    /// The case; absent where a check drives a loop.
    pub case: Option<&'a EvalCase>,
    /// The session at that moment.
    pub session: &'a Session,
    /// The events of what is judged, in order.
    pub events: &'a [Event],
    /// The answer: the text of the last assistant message that has any.
    pub answer: &'a str,
    /// How it ended; none for an iteration in the middle of a loop.
    pub stop: Option<StopReason>,
    /// What it used.
    pub usage: Usage,
    /// How long it took; none in a replay, where time means nothing.
    pub wall: Option<Duration>,
    /// The loop's iterations so far, if there is a loop.
    pub iterations: &'a [IterationTrace],
}

impl CheckContext<'_> {
    /// The tool calls that were made, in order; unreadable ones are not among them.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.events.iter().flat_map(|event| &event.messages).flat_map(agent_core::ChatMessage::tool_calls)
    }
}

/// A pure, total judgment: the same context, the same outcome; no clock, no network, no panic.
pub trait Check: Send + Sync {
    /// Its name in reports; several checks of one name are all kept.
    fn name(&self) -> &str;

    /// Judges.
    fn check(&self, cx: &CheckContext<'_>) -> Outcome;
}

/// A judgment that takes time: another model, a program.
#[async_trait]
pub trait Scorer: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Judges. What goes wrong is an outcome too: [`Verdict::Error`](crate::Verdict::Error).
    async fn score(&self, cx: &CheckContext<'_>) -> Outcome;
}

macro_rules! forward {
    ($pointer:ty) => {
        impl<C: Check + ?Sized> Check for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn check(&self, cx: &CheckContext<'_>) -> Outcome {
                (**self).check(cx)
            }
        }

        #[async_trait]
        impl<C: Scorer + ?Sized> Scorer for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            async fn score(&self, cx: &CheckContext<'_>) -> Outcome {
                (**self).score(cx).await
            }
        }
    };
}

forward!(Box<C>);
forward!(Arc<C>);
