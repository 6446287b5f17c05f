//! A session's events, in order, with what a reader wants to know of each.

use std::collections::HashMap;

use agent_core::{Event, LoopStep, Session, ToolCall, Usage};
use agent_loop::{IterationRecord, LoopOutcome};
use uuid::Uuid;

use super::{
    format,
    part::{Calls, Part, Repeat, is_loop_list, parts},
};

#[derive(Debug)]
pub(super) struct Timeline {
    /// The session's id.
    pub(super) id: String,
    /// When it began, in milliseconds since 1970.
    pub(super) start: Option<u64>,
    pub(super) steps: Vec<Step>,
    /// How the loops went, as the state has it at the end.
    pub(super) loops: Vec<(String, LoopOutcome)>,
    /// The calls that wait for the caller's answer.
    pub(super) waiting: Vec<ToolCall>,
    pub(super) usage: Usage,
    pub(super) runs: usize,
}

/// One event.
#[derive(Debug)]
pub(super) struct Step {
    /// From 1.
    pub(super) number: usize,
    pub(super) event: Event,
    /// Milliseconds since the session began; none if the id carries no time.
    pub(super) offset: Option<i64>,
    /// Set if the event is the first of a run: which, from 1.
    pub(super) begins_run: Option<usize>,
    /// The iteration that it ends.
    pub(super) ends: Option<LoopStep>,
    pub(super) parts: Vec<Part>,
}

impl Timeline {
    pub(super) fn of(id: String, events: Vec<Event>) -> Self {
        let start = events.iter().find_map(|event| format::millis_of(event.id));
        let usage = events.iter().filter_map(|event| event.usage).sum();
        let mut reader = Reader::default();
        let steps = events.into_iter().map(|event| reader.step(event, start)).collect();
        let session = reader.session;
        Self { id, start, steps, loops: loops(&session), waiting: session.open_approvals(), usage, runs: reader.runs }
    }

    /// How long it took, in milliseconds.
    pub(super) fn millis(&self) -> u64 {
        let last = self.steps.iter().filter_map(|step| step.offset).max();
        last.and_then(|last| u64::try_from(last).ok()).unwrap_or_default()
    }

    pub(super) fn repeats(&self) -> usize {
        self.steps.iter().filter(|step| step.repeats()).count()
    }
}

impl Step {
    /// Whether it says or does something that was there before.
    pub(super) fn repeats(&self) -> bool {
        self.parts.iter().any(|part| part.repeat.is_some())
    }
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    session: Session,
    number: usize,
    run: Option<Uuid>,
    runs: usize,
    calls: Calls,
    /// For each thing that could repeat: the first event that has it, and how often it was there.
    seen: HashMap<String, (usize, usize)>,
}

impl Reader {
    fn step(&mut self, event: Event, start: Option<u64>) -> Step {
        self.number += 1;
        let begins_run = (self.run != Some(event.run)).then(|| {
            self.run = Some(event.run);
            self.runs += 1;
            self.runs
        });
        let messages = self.session.messages().len();
        self.session.apply(&event);
        let mut parts = parts(&event, messages, &self.session, &mut self.calls);
        for part in &mut parts {
            part.repeat = part.sameness.take().and_then(|same| self.see(same));
        }
        let ends = IterationRecord::of(&event).map(|(name, _)| {
            let iterations = LoopOutcome::of(&self.session, &name).map_or(0, |outcome| outcome.iterations.len());
            LoopStep { name, iteration: u32::try_from(iterations).unwrap_or(u32::MAX) }
        });
        let time = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        let offset = format::millis_of(event.id).zip(start).map(|(at, start)| time(at) - time(start));
        Step { number: self.number, event, offset, begins_run, ends, parts }
    }

    fn see(&mut self, same: String) -> Option<Repeat> {
        let (first, times) = self.seen.entry(same).or_insert((self.number, 0));
        *times += 1;
        (*times > 1).then_some(Repeat { first: *first, times: *times })
    }
}

/// How long iterations took together, in milliseconds.
pub(super) fn took(iterations: &[IterationRecord]) -> u64 {
    iterations.iter().fold(0, |sum, record| sum.saturating_add(record.millis))
}

fn loops(session: &Session) -> Vec<(String, LoopOutcome)> {
    let names = session.state().keys().filter_map(|key| key.strip_prefix("loop:").filter(|_| !is_loop_list(key)));
    names.filter_map(|name| Some((name.to_owned(), LoopOutcome::of(session, name)?))).collect()
}
