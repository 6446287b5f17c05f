//! One after the other.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Agent, AgentInfo, Draft, Emitter, Result, RunContext, Session, StopReason, Updates, updates};

/// Agents that run one after the other on one session.
///
/// The first end that is not [`Completed`](StopReason::Completed) stops the sequence, which ends with it. A
/// [final stage](Self::finally) runs however the others ended.
///
/// The sequence keeps its place under `sequence:<name>` while it runs or is suspended, so running the session again
/// in the same turn goes on with the agent that was interrupted.
pub struct SequentialAgent {
    info: AgentInfo,
    author: Arc<str>,
    key: Arc<str>,
    stages: Vec<Box<dyn Agent>>,
    last: Option<Box<dyn Agent>>,
}

/// Where a sequence stands.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Place {
    turn: u64,
    /// The stage to run next; the final stage comes after the last.
    next: usize,
    /// How the others ended, once the final stage is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<StopReason>,
}

impl SequentialAgent {
    /// An empty sequence, which is done at once. The name is unique among the agents of a session.
    pub fn new(name: impl Into<String>) -> Self {
        let info = AgentInfo::named(name);
        let key = format!("sequence:{}", info.name).into();
        Self { author: info.name.as_str().into(), info, key, stages: Vec::new(), last: None }
    }

    /// Adds a stage that runs after the others, if they completed.
    pub fn then(mut self, agent: impl Agent + 'static) -> Self {
        self.stages.push(Box::new(agent));
        self
    }

    /// Sets the stage that runs last however the others ended, unless they are
    /// [suspended](StopReason::is_suspended). If it completes, the end of the others stays the end. It is where a
    /// loop's outcome is told: it runs after a cap as after a success.
    pub fn finally(mut self, agent: impl Agent + 'static) -> Self {
        self.last = Some(Box::new(agent));
        self
    }

    async fn go(&self, session: &mut Session, out: Emitter) -> Result<StopReason> {
        let mut place = self.begin(session, &out).await;
        let mut recorded = session.state().contains_key(&*self.key);
        let stop = loop {
            let Some((agent, is_final)) = self.stage(place) else { break place.end.unwrap_or(StopReason::Completed) };
            if out.cx().cancel().is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            let stop = out.relay(agent.run(session, out.cx()), |_| ()).await?;
            if stop.is_suspended() {
                return Ok(stop);
            }
            place = match (is_final, stop) {
                (true, StopReason::Completed) => break place.end.unwrap_or(StopReason::Completed),
                (true, stop) => break stop,
                (false, StopReason::Completed) => Place { next: place.next + 1, ..place },
                (false, stop) => Place { next: self.stages.len(), end: Some(stop), ..place },
            };
            if self.stage(place).is_some() {
                out.record(session, Draft::state(self.key.clone(), place)).await;
                recorded = true;
            }
        };
        if recorded {
            out.record(session, Draft::default().remove(self.key.clone())).await;
        }
        Ok(stop)
    }

    /// Where to begin: an interrupted run of this turn goes on, a stale record is removed.
    async fn begin(&self, session: &mut Session, out: &Emitter) -> Place {
        let turn = session.turn().number;
        let place: Option<Place> = session.get(&self.key);
        if let Some(place) = place.filter(|place| place.turn == turn && place.next <= self.stages.len()) {
            return place;
        }
        if session.state().contains_key(&*self.key) {
            out.record(session, Draft::default().remove(self.key.clone())).await;
        }
        Place { turn, next: 0, end: None }
    }

    /// The agent at a place, and whether it is the final stage.
    fn stage(&self, place: Place) -> Option<(&dyn Agent, bool)> {
        match self.stages.get(place.next) {
            Some(agent) => Some((&**agent, false)),
            None => self.last.as_ref().map(|agent| (&**agent, true)),
        }
    }
}

impl Agent for SequentialAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.author.clone(), cx, |out| self.go(session, out))
    }
}

impl fmt::Debug for SequentialAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<_> = self.stages.iter().map(|agent| &agent.info().name).collect();
        let last = self.last.as_ref().map(|agent| &agent.info().name);
        f.debug_struct("SequentialAgent")
            .field("name", &self.info.name)
            .field("stages", &stages)
            .field("finally", &last)
            .finish_non_exhaustive()
    }
}
