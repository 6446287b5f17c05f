//! What a session's state knows of its tasks.

use std::{collections::BTreeMap, fmt};

use agent_core::{Error, ErrorKind, Result, Session, StateChange};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::numbers::check_stored;

/// Where the log is kept.
const KEY: &str = "tasks";

/// How a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Its end is not recorded.
    Running,
    /// Its agent did what was asked.
    Done,
    /// Its agent failed, or ended before its work was done.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The run that started it is gone, and with it whatever the task had come to.
    Lost,
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        })
    }
}

/// A task, as its session knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its number in the session, from 1.
    pub id: u64,
    /// The agent that works on it.
    pub agent: String,
    /// What the agent was asked.
    pub request: String,
    /// How it is.
    pub status: TaskStatus,
    /// What it came to, or why it did not; empty while it runs.
    pub result: String,
    /// The run that started it.
    pub run: Uuid,
}

/// One entry of the log. Entries are only appended, so calls that run at once lose nothing of each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    Start { id: u64, agent: String, request: String, run: Uuid },
    End { id: u64, status: TaskStatus, result: String },
}

impl From<Change> for StateChange {
    fn from(change: Change) -> Self {
        let value = serde_json::to_value(change).expect("a change of the log is serializable as JSON");
        Self::Append { key: KEY.into(), value }
    }
}

/// The log, folded.
#[derive(Debug, Default)]
pub(super) struct Log(BTreeMap<u64, TaskRecord>);

impl Log {
    pub(super) fn of(session: &Session) -> Result<Self> {
        let Some(log) = session.state().get(KEY) else { return Ok(Self::default()) };
        let log = Vec::<Change>::deserialize(log).map_err(|source| {
            let context = format!("read the tasks under the state key `{KEY}`, which holds something else");
            Error::new(ErrorKind::Invalid, context).with_source(source)
        })?;
        let mut tasks = BTreeMap::new();
        for change in log {
            match change {
                Change::Start { id, agent, request, run } => {
                    let (status, result) = (TaskStatus::Running, String::new());
                    tasks.insert(id, TaskRecord { id, agent, request, status, result, run });
                }
                Change::End { id, status, result } => {
                    if let Some(task) = tasks.get_mut(&id).filter(|task| task.status == TaskStatus::Running) {
                        (task.status, task.result) = (status, result);
                    }
                }
            }
        }
        let log = Self(tasks);
        check_stored(KEY, log.last_id())?;
        Ok(log)
    }

    pub(super) fn into_records(self) -> Vec<TaskRecord> {
        self.0.into_values().collect()
    }

    pub(super) fn last_id(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or_default()
    }
}
