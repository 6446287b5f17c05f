//! A trial's agent, once more.

use std::sync::atomic::{AtomicUsize, Ordering};

use agent_core::{Agent, AgentInfo, Event, RunContext, Session, StopReason, Update, Updates};
use futures::{StreamExt, stream};

use crate::Trial;

/// An agent that does what another one did: in each run the events of the next turn.
pub(super) struct Replayed {
    info: AgentInfo,
    turns: Vec<Vec<Event>>,
    next: AtomicUsize,
    /// How each turn ended, if the log says it.
    stops: Vec<StopReason>,
    /// How the last one ended.
    stop: StopReason,
}

impl Replayed {
    pub(super) fn of(trial: &Trial, stop: StopReason) -> Self {
        let starts = if trial.turns.is_empty() { vec![0] } else { trial.turns.clone() };
        let ends = starts.iter().copied().skip(1).chain([trial.events.len()]).collect::<Vec<_>>();
        let turns = starts.iter().zip(ends).map(|(start, end)| trial.events.get(*start..end).unwrap_or_default());
        let turns = turns.map(<[Event]>::to_vec);
        Self {
            info: AgentInfo::named("replayed"),
            turns: turns.collect(),
            next: 0.into(),
            stops: trial.stops.clone(),
            stop,
        }
    }
}

impl Agent for Replayed {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, _: &'a RunContext) -> Updates<'a> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let events = self.turns.get(turn).map(Vec::as_slice).unwrap_or_default();
        // Where the log does not say how an earlier turn ended, the conversation went on after it.
        let earlier = || self.stops.get(turn).copied().unwrap_or(StopReason::Completed);
        let stop = if turn + 1 < self.turns.len() { earlier() } else { self.stop };
        let events = events.iter().map(|event| {
            session.apply(event);
            Ok(Update::Event(event.clone()))
        });
        stream::iter(events.chain([Ok(Update::Done(stop))]).collect::<Vec<_>>()).boxed()
    }
}
