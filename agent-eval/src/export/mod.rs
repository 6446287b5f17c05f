//! Sets for other tools.
//!
//! Each exporter gives the text of a file and a list of what that file cannot say: nothing is dropped in silence.
//! Sets for this project itself are written by [`EvalSet::save`].

mod adk;
mod inspect;
mod promptfoo;

use std::{fmt, str::FromStr};

use agent_core::{Error, ErrorKind, Result};
use serde_json::Value;

pub use self::{adk::adk, inspect::inspect, promptfoo::promptfoo};
use crate::{EvalCase, EvalSet, Input, import::Note, text::listed};

/// A set as another tool reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The text of the file.
    pub text: String,
    /// What it does not say, or says differently.
    pub notes: Vec<Note>,
}

/// Whose files can be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Google's Agent Development Kit: an `.evalset.json`.
    Adk,
    /// Inspect: samples as JSON lines.
    Inspect,
    /// promptfoo: a configuration in YAML.
    Promptfoo,
}

impl ExportFormat {
    const ALL: [(&'static str, Self); 3] =
        [("adk", Self::Adk), ("inspect", Self::Inspect), ("promptfoo", Self::Promptfoo)];

    /// The set in this format.
    ///
    /// # Errors
    /// If the text cannot be written.
    pub fn export(self, set: &EvalSet) -> Result<Exported> {
        match self {
            Self::Adk => adk(set),
            Self::Inspect => inspect(set),
            Self::Promptfoo => promptfoo(set),
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, format)| format == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for ExportFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
        found.ok_or_else(|| {
            let known = listed(Self::ALL.map(|(name, _)| name));
            Error::new(ErrorKind::Invalid, format!("export to `{text}`; known are {known}"))
        })
    }
}

/// An export in the making.
#[derive(Debug, Default)]
struct Export {
    notes: Vec<Note>,
}

impl Export {
    fn note(&mut self, case: &EvalCase, what: impl Into<String>) {
        self.notes.push(Note { case: Some(case.id.clone()), what: what.into() });
    }

    fn note_all(&mut self, what: impl Into<String>) {
        self.notes.push(Note { case: None, what: what.into() });
    }

    /// The cases whose input can be said, with what holds for all cases of the set put in; what cannot be said of
    /// them is noted. `says` are the fields and the kinds of input that the format has.
    fn cases(&mut self, set: &EvalSet, says: &[&str]) -> Vec<EvalCase> {
        let mut cases = Vec::new();
        for case in &set.cases {
            let mut case = case.clone();
            case.tags.extend(set.defaults.tags.iter().cloned());
            case.checks.extend(set.defaults.checks.iter().cloned());
            case.budget = case.budget.or(set.defaults.budget);
            case.repeats = case.repeats.or(set.defaults.repeats);
            let kind = match &case.input {
                Input::Messages(_) if !says.contains(&"messages") => Some("a conversation with a history"),
                Input::Turns(_) if !says.contains(&"turns") => Some("a conversation of several turns"),
                Input::Text(_) | Input::Messages(_) | Input::Turns(_) => None,
            };
            if let Some(kind) = kind {
                self.note(&case, format!("it is {kind}, and is left out"));
                continue;
            }
            self.note_fields(&case, says);
            cases.push(case);
        }
        cases
    }

    /// Every field is looked at here, so that one that comes new cannot be forgotten.
    fn note_fields(&mut self, case: &EvalCase, says: &[&str]) {
        let EvalCase {
            id: _,
            input: _,
            tags,
            split,
            group,
            state,
            expected,
            expected_state,
            expected_calls,
            forbidden_tools,
            allowed_tools,
            budget,
            checks,
            repeats,
            metadata,
            quarantine,
        } = case;
        let is_empty = [
            ("tags", tags.is_empty()),
            ("split", split.is_none()),
            ("group", group.is_none()),
            ("state", state.is_empty()),
            ("expected", expected.is_empty()),
            ("expected_state", expected_state.is_empty()),
            ("expected_calls", expected_calls.is_none()),
            ("forbidden_tools", forbidden_tools.is_empty()),
            ("allowed_tools", allowed_tools.is_none()),
            ("budget", budget.is_none()),
            ("checks", checks.is_empty()),
            ("repeats", repeats.is_none()),
            ("metadata", metadata.is_empty()),
            ("quarantine", quarantine.is_none()),
        ];
        let unsaid: Vec<&str> = is_empty
            .iter()
            .filter(|(name, is_empty)| !is_empty && !says.contains(name))
            .map(|(name, _)| *name)
            .collect();
        if !unsaid.is_empty() {
            self.note(case, format!("left out are {}", listed(unsaid)));
        }
    }

    fn finish(self, text: String) -> Exported {
        Exported { text, notes: self.notes }
    }
}

/// A document as YAML.
fn yaml(document: &Value) -> Result<String> {
    serde_saphyr::to_string(document)
        .map_err(|error| Error::new(ErrorKind::Invalid, "write a set as YAML").with_source(error))
}
