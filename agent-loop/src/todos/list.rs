//! The list, as a log of changes under the state key `todos`.

use std::collections::BTreeMap;

use agent_core::{Error, ErrorKind, Result, Session, ToolOutput};
use serde::{Deserialize, Serialize};

use crate::numbers::check_stored;

/// Where the log is kept.
const KEY: &str = "todos";

/// One entry of the log. Entries are only appended, so calls that run at once, each on the same snapshot of the
/// session, lose nothing of each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// New todos, for the request of this turn.
    Add { turn: u64, items: Vec<Item> },
    /// These are done.
    Complete { ids: Vec<u64> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) title: String,
}

impl Change {
    /// A tool's output that commits this change.
    pub(super) fn with(self, text: String) -> ToolOutput {
        ToolOutput::text(text).append(KEY, self)
    }
}

/// One todo.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Todo {
    pub(super) title: String,
    pub(super) done: bool,
    turn: u64,
}

/// The log, folded; todos by id.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Todos(BTreeMap<u64, Todo>);

impl Todos {
    pub(super) fn of(session: &Session) -> Result<Self> {
        let Some(log) = session.state().get(KEY) else { return Ok(Self::default()) };
        let log = Vec::<Change>::deserialize(log).map_err(|source| {
            let context = format!("read the todos under the state key `{KEY}`, which holds something else");
            Error::new(ErrorKind::Invalid, context).with_source(source)
        })?;
        let mut todos = BTreeMap::new();
        for change in log {
            match change {
                Change::Add { turn, items } => {
                    todos.extend(items.into_iter().map(|Item { id, title }| (id, Todo { title, done: false, turn })));
                }
                Change::Complete { ids } => {
                    for id in ids {
                        todos.entry(id).and_modify(|todo| todo.done = true);
                    }
                }
            }
        }
        let todos = Self(todos);
        check_stored(KEY, todos.last_id())?;
        Ok(todos)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Todo)> {
        self.0.iter().map(|(id, todo)| (*id, todo))
    }

    pub(super) fn open(&self) -> impl Iterator<Item = (u64, &Todo)> {
        self.iter().filter(|(_, todo)| !todo.done)
    }

    pub(super) fn any_of(&self, turn: u64) -> bool {
        self.iter().any(|(_, todo)| todo.turn == turn)
    }

    /// What a model is shown: all of this request's, and open ones of earlier ones.
    pub(super) fn shown(&self, turn: u64) -> String {
        let line = |(id, todo): (u64, &Todo)| {
            (todo.turn == turn || !todo.done)
                .then(|| format!("- [{}] {id}: {}", if todo.done { 'x' } else { ' ' }, todo.title))
        };
        let lines: Vec<String> = self.iter().filter_map(line).collect();
        if lines.is_empty() { "There are no todos.".to_owned() } else { lines.join("\n") }
    }

    /// The ids among these that are no todo's.
    pub(super) fn unknown(&self, ids: &[u64]) -> Vec<u64> {
        ids.iter().copied().filter(|id| !self.0.contains_key(id)).collect()
    }

    /// The highest id; 0 if there is none.
    pub(super) fn last_id(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or_default()
    }
}
