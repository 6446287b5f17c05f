//! One attempt at a trial: the agent runs, turn by turn, while a [`Watch`] judges.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use agent_core::{Agent, Event, RunContext, Session, StopReason, Update, Usage};
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::{
    faults::{panicked, retry_after, timed_out, trial_error},
    turns::{limits_of, session_of, turns_of},
    watch::Watch,
};
use crate::{Budget, CaseChecks, CheckOutcome, EvalCase, IterationTrace, Outcome, TrialError, Verdict, overall};

/// What an attempt needs; it owns it, so that it can run on any thread.
pub(super) struct Attempt {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) case: Arc<EvalCase>,
    pub(super) checks: Arc<CaseChecks>,
    pub(super) budget: Option<Budget>,
    pub(super) loop_name: Option<Arc<str>>,
    pub(super) timeout: Option<Duration>,
    pub(super) gold_scorers: bool,
    pub(super) wall: Wall,
    /// The first so many turns: nobody knows how they ended.
    pub(super) unknown_stops: usize,
}

/// Which time checks are told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wall {
    /// How long it takes.
    Is,
    /// How long it took.
    Was(Duration),
    /// None: it means nothing.
    None,
}

/// What an attempt came to.
#[derive(Debug, Default)]
pub(super) struct Attempted {
    pub(super) events: Vec<Event>,
    pub(super) iterations: Vec<IterationTrace>,
    pub(super) outcomes: Vec<CheckOutcome>,
    pub(super) answer: String,
    pub(super) usage: Usage,
    pub(super) judge_usage: Usage,
    pub(super) turns: Vec<usize>,
    pub(super) stops: Vec<StopReason>,
    pub(super) stop: Option<StopReason>,
    pub(super) error: Option<TrialError>,
    pub(super) wall: Duration,
    /// How long the service that failed asked to wait.
    pub(super) retry_after: Option<Duration>,
}

impl Attempted {
    /// The overall verdict. A run that failed is an error whatever was judged before.
    pub(super) fn verdict(&self) -> Verdict {
        if self.error.is_some() {
            return Verdict::Error;
        }
        overall(self.outcomes.iter().map(|outcome| outcome.outcome.verdict))
    }
}

impl Attempt {
    pub(super) async fn run(self) -> Attempted {
        let started = Instant::now();
        let cx = RunContext::new(limits_of(self.budget));
        let mut watch = Watch::new(&self, started);
        let mut session = session_of(&self.case);
        let turns = turns_of(&self.case);
        let mut reached = 0;
        for (turn, messages) in turns.iter().enumerate() {
            for message in messages {
                session.push(message.clone());
            }
            watch.begin_turn(turn, session.clone());
            let run = self.drive(&mut session, &cx, &mut watch);
            let ended = match self.timeout {
                None => Ok(run.await),
                Some(limit) => tokio::time::timeout_at(started + limit, run).await,
            };
            watch.seen.wall = started.elapsed();
            match ended {
                Ok(Ok(stop)) => watch.end_turn(stop),
                Ok(Err(error)) => watch.seen.error = Some(error),
                Err(_) => watch.seen.error = Some(timed_out(self.timeout)),
            }
            if watch.seen.error.is_some() {
                watch.seen.stop = None;
                return watch.seen;
            }
            reached += 1;
            watch.judge_turn(&session).await;
            if matches!(watch.seen.stop, Some(StopReason::BudgetExhausted | StopReason::Cancelled)) {
                break;
            }
        }
        for turn in reached..turns.len() {
            let outcome = Outcome::fail("the conversation ended before this turn");
            watch.seen.outcomes.push(CheckOutcome { check: "turn".to_owned(), turn: Some(turn), outcome });
        }
        watch.judge_whole(&session).await;
        watch.seen
    }

    /// Runs the agent to its end, and shows each event to the watch.
    async fn drive(
        &self,
        session: &mut Session,
        cx: &RunContext,
        watch: &mut Watch<'_>,
    ) -> Result<StopReason, TrialError> {
        let mut updates = self.agent.run(session, cx);
        loop {
            let next = AssertUnwindSafe(updates.next()).catch_unwind().await;
            match next.map_err(|panic| panicked(&*panic))? {
                Some(Ok(Update::Delta(_))) => (),
                Some(Ok(Update::Event(event))) => watch.see(event).await,
                Some(Ok(Update::Done(stop))) => return Ok(stop),
                Some(Err(error)) => {
                    watch.seen.retry_after = retry_after(&error);
                    return Err(trial_error(&error));
                }
                None => {
                    let message = "the agent's run has no end".to_owned();
                    return Err(TrialError { message, infrastructure: false, setup: false });
                }
            }
        }
    }
}
