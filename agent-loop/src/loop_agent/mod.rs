//! The loop.

mod input;
mod judgment;
mod run;

use std::{fmt, sync::Arc};

use agent_core::{
    Agent, AgentInfo, Emitter, Error, ErrorKind, Result, RunContext, Session, StopReason, Updates, updates,
};
use tokio::task::consume_budget;

use crate::{LoopEvaluator, LoopOptions, outcome::Keys};

use self::run::Run;

/// An agent that runs another until nobody objects.
///
/// After each iteration the evaluators are asked in order. The first that is not satisfied decides: its feedback is
/// said, and the inner agent runs again. The run ends with a [`StopReason`]:
///
/// | end | when |
/// |---|---|
/// | `Completed` | all evaluators are satisfied, or the inner agent escalated |
/// | `IterationLimit` | the cap is reached and somebody still objects |
/// | `Halted` | an evaluator forbade to go on |
/// | `AwaitingApproval`, `Cancelled`, `BudgetExhausted` | the iteration ended so, or was interrupted; run the session again to go on |
/// | the inner agent's own | there are no evaluators |
///
/// [`LoopOutcome::of`](crate::LoopOutcome::of) reads from the session who decided and what each iteration cost.
pub struct LoopAgent {
    info: AgentInfo,
    name: Arc<str>,
    keys: Keys,
    inner: Box<dyn Agent>,
    options: LoopOptions,
    evaluators: Vec<Arc<dyn LoopEvaluator>>,
}

impl LoopAgent {
    /// The cap of a loop that sets none.
    pub const DEFAULT_MAX_ITERATIONS: u32 = 10;

    /// A loop of this name around an agent. The name is the author of the loop's messages, and where its record is
    /// kept: unique among the loops of a session.
    pub fn new(name: impl Into<String>, inner: impl Agent + 'static, options: LoopOptions) -> Self {
        let info = AgentInfo { name: name.into(), description: inner.info().description.clone() };
        Self {
            name: info.name.as_str().into(),
            keys: Keys::new(&info.name),
            info,
            inner: Box::new(inner),
            options,
            evaluators: Vec::new(),
        }
    }

    /// Adds an evaluator, asked after those that were added before. Guards come first.
    pub fn evaluator(mut self, evaluator: impl LoopEvaluator + 'static) -> Self {
        self.evaluators.push(Arc::new(evaluator));
        self
    }

    /// Adds evaluators, in order.
    pub fn evaluators(mut self, evaluators: impl IntoIterator<Item = Arc<dyn LoopEvaluator>>) -> Self {
        self.evaluators.extend(evaluators);
        self
    }

    async fn go(&self, session: &mut Session, out: Emitter) -> Result<StopReason> {
        self.check(out.cx())?;
        let mut run = Run::begin(self, session, &out).await?;
        loop {
            // An agent and evaluators that never wait would keep the thread from everyone else, timers included.
            consume_budget().await;
            if let Some(stop) = out.cx().interruption() {
                return run.end(session, stop).await;
            }
            if run.iteration > self.options.max_iterations.get() {
                return run.end_at_lowered_cap(session).await;
            }
            run.open_iteration(session).await;
            if let Some(stop) = run.iterate(session).await? {
                return run.end(session, stop).await;
            }
        }
    }

    fn check(&self, cx: &RunContext) -> Result<()> {
        let name = &self.info.name;
        let invalid = |problem: &str| Err(Error::new(ErrorKind::Invalid, format!("run loop `{name}`{problem}")));
        if cx.path().iter().any(|step| step.name == self.name) {
            return invalid(" inside a loop of the same name: they would share one record; rename one");
        }
        if Keys::are_ambiguous(name) {
            return invalid(": names that end in `:iterations` are the framework's; rename it");
        }
        Ok(())
    }
}

impl Agent for LoopAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.name.clone(), cx, |out| self.go(session, out))
    }
}

impl fmt::Debug for LoopAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let evaluators: Vec<&str> = self.evaluators.iter().map(LoopEvaluator::name).collect();
        f.debug_struct("LoopAgent")
            .field("name", &self.info.name)
            .field("inner", &self.inner.info().name)
            .field("options", &self.options)
            .field("evaluators", &evaluators)
            .finish_non_exhaustive()
    }
}
