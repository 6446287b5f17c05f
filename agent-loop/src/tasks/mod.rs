//! Agents that work in the background, tools to start and hear them, and an evaluator that waits for them.

mod done;
mod log;
mod registry;
mod tools;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Agent, Session, Tool};

pub use done::BackgroundDone;
pub use log::{TaskRecord, TaskStatus};

/// Agents that another agent can start in the background, each task on a session of its own.
///
/// A task shares the run's limits and its cancellation, and its tokens are reported by the events of the run that
/// started it; what hooks count within a run they count for each task. It ends with that run: once the run's
/// [`RunContext`](agent_core::RunContext) is dropped, what still runs is stopped. In the session's state is a record of
/// each task, so that a later run knows which tasks were lost. Each end is told once: by a tool's result or by the
/// feedback of [`BackgroundDone`], in the same event as its record.
///
/// ```
/// use std::time::Duration;
/// use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Session, StopReason, testing::{ScriptedAgent, ScriptedClient}};
/// use agent_loop::{BackgroundTasks, LoopAgent, LoopOptions};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let tasks = BackgroundTasks::new().agent(ScriptedAgent::new("scout").says("The pass is open."));
/// let model = ScriptedClient::new()
///     .calls("1", "task_start", json!({ "agent": "scout", "request": "Is the pass open?" }))
///     .says("I sent a scout.")
///     .says("We take the pass.");
/// let guide = ChatAgent::new("guide", model, ChatAgentOptions::default());
/// let guide = tasks.tools().into_iter().fold(guide, ChatAgent::tool);
/// let journey = LoopAgent::new("journey", guide, LoopOptions::default())
///     .evaluator(tasks.done(Duration::from_secs(60)));
///
/// let response = journey.ask(&mut Session::new(), "Which way?").await?;
/// assert_eq!((response.stop, response.text()), (StopReason::Completed, "We take the pass.".to_owned()));
/// # Ok::<_, agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct BackgroundTasks {
    agents: Vec<Arc<dyn Agent>>,
}

impl BackgroundTasks {
    /// No agents yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets tasks be given to this agent, by its name, which no other of them has; its description is shown to the
    /// model. An approval cannot be answered from outside: an agent that asks for one fails.
    pub fn agent(mut self, agent: impl Agent + 'static) -> Self {
        self.agents.push(Arc::new(agent));
        self
    }

    /// The tools `task_start`, `task_list`, `task_wait`, `task_results` and `task_cancel`.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::tools(&self.agents)
    }

    /// The evaluator that waits for tasks, at most so long in one iteration.
    pub fn done(&self, max_wait: Duration) -> BackgroundDone {
        BackgroundDone::new(max_wait)
    }

    /// The tasks of a session as its state has them, in the order in which they were started: for an application that
    /// shows them. Under the key `tasks` is a list that is only appended to: `{"start": {"id", "agent", "request",
    /// "run"}}` and `{"end": {"id", "status", "result"}}`. A task that has ended and was not told yet, or was lost, is
    /// [`Running`](TaskStatus::Running) here. None if the key holds something else.
    pub fn records(session: &Session) -> Option<Vec<TaskRecord>> {
        log::Log::of(session).ok().map(log::Log::into_records)
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<&str> = self.agents.iter().map(|agent| agent.info().name.as_str()).collect();
        f.debug_struct("BackgroundTasks").field("agents", &agents).finish()
    }
}
