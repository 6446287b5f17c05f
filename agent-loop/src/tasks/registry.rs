//! The tasks of a run that are, or were, at work.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use agent_core::{Agent, AgentResponse, RunContext, Session, StopReason, Update, Usage};
use futures_util::StreamExt;
use tokio::{sync::Notify, task::AbortHandle};
use uuid::Uuid;

use super::log::{Log, TaskRecord, TaskStatus};
use crate::{numbers::Numbers, text::describe};

/// Where a run keeps its tasks; all sessions of a run share it.
const TASKS: Uuid = Uuid::from_bytes(*b"tasks of the run");

/// A run's tasks. The run's scratch owns it, and tasks work in a context with other scratch: so it goes with the run,
/// and stops what still works.
#[derive(Default)]
pub(super) struct Registry {
    numbers: Numbers,
    tasks: Mutex<HashMap<u64, Live>>,
    /// How long the session was when a call told the end of a task, by the task's run and id.
    told_at: Mutex<HashMap<(Uuid, u64), usize>>,
    /// Rung at each end.
    ended: Notify,
}

struct Live {
    handle: Option<AbortHandle>,
    end: Option<End>,
    /// Tokens that no event reports yet.
    usage: Usage,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) status: TaskStatus,
    pub(super) result: String,
}

impl End {
    fn lost() -> Self {
        let result = "The run that started it is gone, and with it whatever it had come to. Start it again if it is \
                      still needed.";
        Self { status: TaskStatus::Lost, result: result.to_owned() }
    }

    fn failed(result: impl Into<String>) -> Self {
        Self { status: TaskStatus::Failed, result: result.into() }
    }
}

/// A session's tasks at a moment.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// At work.
    pub(super) running: Vec<TaskRecord>,
    /// Ended, and not told yet; the records say how.
    pub(super) news: Vec<TaskRecord>,
    /// Told before.
    pub(super) told: Vec<TaskRecord>,
}

impl Registry {
    pub(super) fn of(run: &RunContext) -> Arc<Self> {
        run.scratch(TASKS)
    }

    /// Starts a task and returns its id.
    pub(super) fn start(self: &Arc<Self>, agent: Arc<dyn Agent>, request: String, log: &Log, run: &RunContext) -> u64 {
        let id = self.numbers.take(log.last_id(), 1);
        self.lock().insert(id, Live { handle: None, end: None, usage: Usage::default() });
        let mut report = Report { registry: Arc::downgrade(self), id, end: None };
        let run = run.in_background();
        let work = async move {
            let end = work(&*agent, request, &run, &report).await;
            report.end.get_or_insert(end);
        };
        let handle = tokio::spawn(work).abort_handle();
        if let Some(live) = self.lock().get_mut(&id) {
            live.handle = Some(handle);
        }
        id
    }

    /// Sorts a session's tasks by how they are now.
    pub(super) fn sort(&self, log: Log, run: &RunContext) -> Tasks {
        let (mut sorted, live) = (Tasks::default(), self.lock());
        for task in log.into_records() {
            if task.status != TaskStatus::Running {
                sorted.told.push(task);
                continue;
            }
            let end = match live.get(&task.id).filter(|_| task.run == run.id()) {
                Some(live) => live.end.clone(),
                None => Some(End::lost()),
            };
            match end {
                Some(End { status, result }) => sorted.news.push(TaskRecord { status, result, ..task }),
                None => sorted.running.push(task),
            }
        }
        sorted
    }

    /// Whether a call may tell the end of a task; no if another call of the same answer does. Calls of one answer see
    /// the session at the same length.
    pub(super) fn may_tell(&self, task: &TaskRecord, session: &Session) -> bool {
        let at = session.messages().len();
        lock(&self.told_at).insert((task.run, task.id), at) != Some(at)
    }

    /// Takes the tokens that these tasks used and no event reports yet.
    pub(super) fn take_usage<'a>(&self, tasks: impl IntoIterator<Item = &'a TaskRecord>, run: &RunContext) -> Usage {
        let mut live = self.lock();
        let mine = tasks.into_iter().filter(|task| task.run == run.id());
        mine.filter_map(|task| live.get_mut(&task.id).map(|live| std::mem::take(&mut live.usage))).sum()
    }

    /// Stops a task; nothing if it has ended.
    pub(super) fn cancel(&self, id: u64) {
        let end = End { status: TaskStatus::Cancelled, result: "It was cancelled.".to_owned() };
        self.finish(id, end);
        let handle = self.lock().get(&id).and_then(|live| live.handle.clone());
        if let Some(handle) = handle {
            handle.abort();
        }
    }

    /// Waits until `look` finds something; it looks now, and after each end of a task.
    pub(super) async fn wait_for<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable(); // before looking, so that no end between is missed
            if let Some(found) = look() {
                return found;
            }
            ended.await;
        }
    }

    fn finish(&self, id: u64, end: End) {
        if let Some(live) = self.lock().get_mut(&id) {
            live.end.get_or_insert(end);
        }
        self.ended.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Live>> {
        lock(&self.tasks)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.values().filter_map(|live| live.handle.as_ref()).for_each(AbortHandle::abort);
    }
}

/// Tells the registry what a task uses and how it ends, a panic included.
struct Report {
    registry: Weak<Registry>,
    id: u64,
    end: Option<End>,
}

impl Report {
    fn used(&self, usage: Usage) {
        if let Some(registry) = self.registry.upgrade()
            && let Some(live) = registry.lock().get_mut(&self.id)
        {
            live.usage += usage;
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.finish(self.id, self.end.take().unwrap_or_else(|| End::failed("It panicked.")));
        }
    }
}

async fn work(agent: &dyn Agent, request: String, run: &RunContext, report: &Report) -> End {
    let mut session = Session::new();
    session.push(request);
    let mut updates = agent.run(&mut session, run);
    let mut response = AgentResponse { events: Vec::new(), usage: Usage::default(), stop: StopReason::Completed };
    let end = loop {
        let update = tokio::select! {
            biased;
            update = updates.next() => update,
            stop = run.interrupted() => break Ok(stop),
        };
        match update {
            None => return End::failed("It stopped without saying how it ended."),
            Some(Err(error)) => break Err(error),
            Some(Ok(Update::Delta(_))) => (),
            Some(Ok(Update::Event(event))) => {
                report.used(event.usage.unwrap_or_default());
                response.events.push(event);
            }
            Some(Ok(Update::Done(stop))) => break Ok(stop),
        }
    };
    match end {
        Ok(StopReason::Completed | StopReason::Escalated) => {
            let text = Some(response.text()).filter(|text| !text.is_empty());
            End { status: TaskStatus::Done, result: text.unwrap_or_else(|| "It said nothing.".to_owned()) }
        }
        Ok(StopReason::Cancelled) => End { status: TaskStatus::Cancelled, result: "The run was cancelled.".to_owned() },
        Ok(stop) => End::failed(format!("It did not finish: {stop}.")),
        Err(error) => End::failed(format!("It failed: {}.", describe(&error))),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
