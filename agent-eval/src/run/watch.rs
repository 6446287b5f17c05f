//! What judges an attempt: its iterations as they end, its turns, and what it came to.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use agent_core::{ChatMessage, Content, Event, Role, Session, StopReason, Usage};
use agent_loop::{IterationRecord, LoopOutcome};
use futures::FutureExt;
use tokio::time::Instant;

use super::{
    attempt::{Attempt, Attempted, Wall},
    faults::{panicked, timed_out},
};
use crate::{BuiltCheck, CaseChecks, CheckContext, CheckOutcome, Input, IterationTrace, Outcome, Verdict, overall};

/// What is seen of an attempt while it goes on.
pub(super) struct Watch<'a> {
    attempt: &'a Attempt,
    started: Instant,
    pub(super) seen: Attempted,
    /// The session as of the last event.
    session: Session,
    turn: usize,
    /// The first event of the turn.
    turn_start: usize,
    /// The loop whose iterations are judged, once it is known.
    loop_name: Option<Arc<str>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(attempt: &'a Attempt, started: Instant) -> Self {
        let loop_name = attempt.loop_name.clone();
        let (seen, session) = Default::default();
        Self { attempt, started, seen, session, turn: 0, turn_start: 0, loop_name }
    }

    pub(super) fn begin_turn(&mut self, turn: usize, session: Session) {
        self.turn = turn;
        self.turn_start = self.seen.events.len();
        if self.attempt.checks.turns.len() > 1 {
            self.seen.turns.push(self.turn_start);
        }
        self.session = session;
        self.seen.iterations.clear();
    }

    pub(super) fn end_turn(&mut self, stop: StopReason) {
        self.seen.stop = Some(stop);
        if self.attempt.checks.turns.len() > 1 {
            self.seen.stops.push(stop);
        }
    }

    pub(super) async fn see(&mut self, event: Event) {
        self.seen.usage += event.usage.unwrap_or_default();
        let ended = IterationRecord::of(&event).filter(|(name, _)| self.watches(name, &event));
        if let Some((name, record)) = &ended {
            self.judge_iteration(name, record).await;
        }
        self.session.apply(&event);
        self.seen.events.push(event);
        if let (Some((name, _)), Some(trace)) = (ended, self.seen.iterations.last_mut()) {
            trace.accepted = LoopOutcome::of(&self.session, &name).is_some_and(|outcome| outcome.passed());
        }
    }

    /// Whether this is the loop to be judged. If none is named it is the outermost one that is seen first: what ends
    /// inside an iteration of another loop belongs to that one.
    fn watches(&mut self, name: &Arc<str>, event: &Event) -> bool {
        let outermost = || event.path.first().map_or_else(|| name.clone(), |step| step.name.clone());
        self.loop_name.get_or_insert_with(outermost) == name
    }

    /// Judges the draft as if the loop had stopped with it: on the session before the event that ends the iteration,
    /// which may forget its messages. What the loop goes on with does not change.
    async fn judge_iteration(&mut self, name: &str, record: &IterationRecord) {
        let before = LoopOutcome::of(&self.session, name).map_or(0, |outcome| outcome.iterations.len());
        let draft = answer_of(&self.seen.events[self.turn_start..]);
        self.seen.iterations.push(IterationTrace {
            iteration: u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1),
            gold: Verdict::Unscored,
            accepted: false,
            by: record.by.clone(),
            feedback: record.feedback.clone(),
            usage: record.usage,
            millis: record.millis,
            digest: record.digest,
            draft: draft.clone(),
        });
        let (turn, whole) = self.judges();
        let mut verdicts = Vec::new();
        let mut usage = Usage::default();
        for (checks, from) in [(turn, self.turn_start), (whole, 0)] {
            let cx = self.cx(&self.session, &draft, from, None);
            for check in checks.iter().filter(|check| self.judges_iterations(check)) {
                let outcome = outcome_of(check, &cx, self.attempt.timeout).await;
                verdicts.push(outcome.verdict);
                usage += outcome.usage;
            }
        }
        self.seen.judge_usage += usage;
        // What judges the end alone (a stop reason) has nothing to say of an iteration.
        let gold = overall(verdicts.into_iter().filter(|verdict| *verdict != Verdict::Unscored));
        if let Some(trace) = self.seen.iterations.last_mut() {
            trace.gold = gold;
        }
    }

    /// What judges the present turn, and what judges the whole: nothing, before the last turn.
    fn judges(&self) -> (&'a [BuiltCheck], &'a [BuiltCheck]) {
        let checks: &'a CaseChecks = &self.attempt.checks;
        let is_last = self.turn + 1 == checks.turns.len();
        (&checks.turns[self.turn], if is_last { &checks.whole } else { &[] })
    }

    fn judges_iterations(&self, check: &BuiltCheck) -> bool {
        match check {
            BuiltCheck::Check(_) => true,
            BuiltCheck::Scorer(_) => self.attempt.gold_scorers,
        }
    }

    pub(super) async fn judge_turn(&mut self, session: &Session) {
        let answer = answer_of(&self.seen.events[self.turn_start..]);
        let (checks, _) = self.judges();
        let turn = matches!(self.attempt.case.input, Input::Turns(_)).then_some(self.turn);
        let stop = self.seen.stop.filter(|_| self.turn >= self.attempt.unknown_stops);
        let cx = self.cx(session, &answer, self.turn_start, stop);
        let outcomes = judge(checks, &cx, turn, self.attempt.timeout).await;
        self.keep(outcomes);
    }

    pub(super) async fn judge_whole(&mut self, session: &Session) {
        self.seen.answer = answer_of(&self.seen.events);
        if self.seen.stop == Some(StopReason::BudgetExhausted) {
            let outcome = Outcome::fail("the run was ended because its budget was used up");
            self.seen.outcomes.push(CheckOutcome { check: "budget".to_owned(), turn: None, outcome });
        }
        let answer = self.seen.answer.clone();
        let cx = self.cx(session, &answer, 0, self.seen.stop);
        let outcomes = judge(&self.attempt.checks.whole, &cx, None, self.attempt.timeout).await;
        self.keep(outcomes);
    }

    fn keep(&mut self, outcomes: Vec<CheckOutcome>) {
        self.seen.judge_usage += outcomes.iter().map(|outcome| outcome.outcome.usage).sum();
        self.seen.outcomes.extend(outcomes);
    }

    fn cx<'b>(
        &'b self,
        session: &'b Session,
        answer: &'b str,
        from: usize,
        stop: Option<StopReason>,
    ) -> CheckContext<'b> {
        let events = &self.seen.events[from..];
        CheckContext {
            case: Some(&self.attempt.case),
            session,
            events,
            answer,
            stop,
            usage: events.iter().filter_map(|event| event.usage).sum(),
            wall: match self.attempt.wall {
                Wall::Is => Some(self.started.elapsed()),
                Wall::Was(wall) => Some(wall),
                Wall::None => None,
            },
            iterations: &self.seen.iterations,
        }
    }
}

/// What all of them say, in their order.
async fn judge(
    checks: &[BuiltCheck],
    cx: &CheckContext<'_>,
    turn: Option<usize>,
    timeout: Option<Duration>,
) -> Vec<CheckOutcome> {
    let mut outcomes = Vec::new();
    for check in checks {
        let outcome = outcome_of(check, cx, timeout).await;
        outcomes.push(CheckOutcome { check: check.name().to_owned(), turn, outcome });
    }
    outcomes
}

/// What it says. A panic is an error, whatever others say, and so is a scorer that takes too long.
async fn outcome_of(check: &BuiltCheck, cx: &CheckContext<'_>, timeout: Option<Duration>) -> Outcome {
    let outcome = AssertUnwindSafe(check.outcome(cx)).catch_unwind();
    let outcome = match timeout {
        None => Ok(outcome.await),
        Some(limit) => tokio::time::timeout(limit, outcome).await,
    };
    let mut outcome = match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Outcome::error(panicked(&*panic).message),
        Err(_) => Outcome::error(timed_out(timeout).message),
    };
    outcome.value = outcome.value.filter(|value| value.is_finite()); // JSON has no others
    outcome
}

/// The text of the last assistant message that has any.
fn answer_of(events: &[Event]) -> String {
    let has_text = |message: &&ChatMessage| {
        message.role == Role::Assistant
            && message.contents.iter().any(|part| matches!(part, Content::Text(text) if !text.is_empty()))
    };
    let mut messages = events.iter().rev().flat_map(|event| event.messages.iter().rev());
    messages.find(has_text).map(ChatMessage::text).unwrap_or_default()
}
