//! Side by side.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures_util::{StreamExt, stream::FuturesUnordered};
use serde::{Deserialize, Serialize};

use crate::{
    Agent, AgentInfo, Draft, Emitter, Error, ErrorKind, Event, Result, RunContext, Session, StopReason, Update,
    Updates, emitter::next_update, updates,
};

/// Agents that run at once, each on a fork of the session; their events are committed to the session as they come.
///
/// A branch sees the session as it was when the branches began, and what it recorded itself. Branches have names of
/// their own, and so have their loops. A branch's rewind stays in its fork.
///
/// All branches run to their ends, and the end of the whole is, in this order of precedence:
/// [`Cancelled`](StopReason::Cancelled), [`BudgetExhausted`](StopReason::BudgetExhausted),
/// [`AwaitingApproval`](StopReason::AwaitingApproval), [`Escalated`](StopReason::Escalated), the first other end in
/// branch order, [`Completed`](StopReason::Completed). An error ends all branches.
///
/// The ends of finished branches are kept under `parallel:<name>` while it runs or is suspended, so running the
/// session again in the same turn runs the others only.
pub struct ParallelAgent {
    info: AgentInfo,
    author: Arc<str>,
    key: Arc<str>,
    branches: Vec<Box<dyn Agent>>,
}

/// Which branches have finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Ends {
    turn: u64,
    ends: BTreeMap<usize, StopReason>,
}

impl ParallelAgent {
    /// No branches, which is done at once. The name is unique among the agents of a session.
    pub fn new(name: impl Into<String>) -> Self {
        let info = AgentInfo::named(name);
        let key = format!("parallel:{}", info.name).into();
        Self { author: info.name.as_str().into(), info, key, branches: Vec::new() }
    }

    /// Adds a branch.
    pub fn branch(mut self, agent: impl Agent + 'static) -> Self {
        self.branches.push(Box::new(agent));
        self
    }

    async fn go(&self, session: &mut Session, out: Emitter) -> Result<StopReason> {
        self.check_branches()?;
        let mut done = self.begin(session, &out).await;
        let mut stored = session.state().contains_key(&*self.key).then(|| done.clone());
        let mut ends = done.ends.clone();
        let mut forks: Vec<(usize, Session, RunContext)> = (0..self.branches.len())
            .filter(|at| !ends.contains_key(at))
            .map(|at| (at, session.clone(), out.cx().in_branch()))
            .collect();
        let mut runs: FuturesUnordered<_> =
            forks.iter_mut().map(|(at, fork, cx)| next(*at, self.branches[*at].run(fork, cx))).collect();
        while let Some((at, update, rest)) = runs.next().await {
            match update? {
                Update::Done(stop) => {
                    ends.insert(at, stop);
                    if !stop.is_suspended() {
                        done.ends.insert(at, stop);
                        if !runs.is_empty() {
                            self.keep(session, &out, &done, &mut stored).await;
                        }
                    }
                    continue;
                }
                Update::Event(event) => out.commit(session, Event { rewind: None, ..event }).await,
                Update::Delta(delta) => out.delta(delta).await,
            }
            runs.push(next(at, rest));
        }
        drop(runs);
        let stop = whole(ends.into_values());
        if stop.is_suspended() {
            self.keep(session, &out, &done, &mut stored).await;
        } else if stored.is_some() {
            out.record(session, Draft::default().remove(self.key.clone())).await;
        }
        Ok(stop)
    }

    /// What has finished already: an interrupted run of this turn goes on, a stale record is removed.
    async fn begin(&self, session: &mut Session, out: &Emitter) -> Ends {
        let turn = session.turn().number;
        let known: Option<Ends> = session.get(&self.key);
        let fits = |known: &Ends| known.turn == turn && known.ends.keys().all(|at| *at < self.branches.len());
        if let Some(known) = known.filter(fits) {
            return known;
        }
        if session.state().contains_key(&*self.key) {
            out.record(session, Draft::default().remove(self.key.clone())).await;
        }
        Ends { turn, ends: BTreeMap::new() }
    }

    /// Records what has finished, if that is news.
    async fn keep(&self, session: &mut Session, out: &Emitter, done: &Ends, stored: &mut Option<Ends>) {
        if !done.ends.is_empty() && stored.as_ref() != Some(done) {
            *stored = Some(done.clone());
            out.record(session, Draft::state(self.key.clone(), done)).await;
        }
    }

    fn check_branches(&self) -> Result<()> {
        let names: Vec<&str> = self.branches.iter().map(|branch| branch.info().name.as_str()).collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            None => Ok(()),
            Some((_, twice)) => {
                let name = &self.info.name;
                let context = format!("parallel agent `{name}` has two branches named `{twice}`; rename one");
                Err(Error::new(ErrorKind::Invalid, context))
            }
        }
    }
}

/// The branch's next update, with the branch's number and the rest of its run.
async fn next(at: usize, mut run: Updates<'_>) -> (usize, Result<Update>, Updates<'_>) {
    let update = next_update(&mut run).await;
    (at, update, run)
}

fn whole(ends: impl Iterator<Item = StopReason>) -> StopReason {
    let rank = |stop| match stop {
        StopReason::Cancelled => 0,
        StopReason::BudgetExhausted => 1,
        StopReason::AwaitingApproval => 2,
        StopReason::Escalated => 3,
        StopReason::Length
        | StopReason::Filtered
        | StopReason::TurnLimit
        | StopReason::IterationLimit
        | StopReason::Halted => 4,
        StopReason::Completed => 5,
    };
    ends.min_by_key(|stop| rank(*stop)).unwrap_or(StopReason::Completed) // the first of the least, in branch order
}

impl Agent for ParallelAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.author.clone(), cx, |out| self.go(session, out))
    }
}

impl fmt::Debug for ParallelAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let branches: Vec<_> = self.branches.iter().map(|agent| &agent.info().name).collect();
        f.debug_struct("ParallelAgent")
            .field("name", &self.info.name)
            .field("branches", &branches)
            .finish_non_exhaustive()
    }
}
