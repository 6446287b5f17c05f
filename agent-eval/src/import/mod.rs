//! Sets of other tools.
//!
//! Each importer gives an [`EvalSet`] and a list of what it could not say in one: nothing is dropped in silence.
//! An imported set is not checked as a loaded one is; write it with [`EvalSet::save`] and load it.

mod adk;
mod bfcl;
mod datasets;
mod promptfoo;
mod pydantic;

use std::{collections::BTreeSet, fmt, path::Path, str::FromStr};

use agent_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

pub use self::{
    adk::adk,
    bfcl::bfcl,
    datasets::{deepeval, humaneval, inspect},
    promptfoo::promptfoo,
    pydantic::pydantic,
};
use crate::{
    BuildContext, CaseDefaults, EvalCase, EvalSet, Input, SCHEMA, case_checks,
    load::{
        read_text,
        tree::{Spot, Tree},
    },
    text::listed,
};

/// A set of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The set.
    pub set: EvalSet,
    /// What it does not say, or says differently.
    pub notes: Vec<Note>,
}

/// Something that a set of this project does not say, or says differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The case; none if it is about the whole set.
    pub case: Option<String>,
    /// What it is, and what became of it.
    pub what: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.case {
            Some(case) => write!(f, "case `{case}`: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Whose files can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// Google's Agent Development Kit: `.test.json`, `.evalset.json`, with the `test_config.json` beside it.
    Adk,
    /// Inspect: JSON lines, JSON or CSV.
    Inspect,
    /// promptfoo: YAML or JSON.
    Promptfoo,
    /// pydantic-evals: YAML or JSON.
    Pydantic,
    /// deepeval: goldens in JSON.
    Deepeval,
    /// The Berkeley Function Calling Leaderboard: questions, with the answers of the same name in the folder
    /// `possible_answer` beside them.
    Bfcl,
    /// JSON lines with a prompt, a solution and a test, as `HumanEval` has them.
    Humaneval,
}

impl ImportFormat {
    const ALL: [(&'static str, Self); 7] = [
        ("adk", Self::Adk),
        ("inspect", Self::Inspect),
        ("promptfoo", Self::Promptfoo),
        ("pydantic", Self::Pydantic),
        ("deepeval", Self::Deepeval),
        ("bfcl", Self::Bfcl),
        ("humaneval", Self::Humaneval),
    ];

    /// Imports a file, and what belongs to it. The set is named after the file, unless it has a name.
    ///
    /// # Errors
    /// A file that cannot be read, or is not of this format.
    pub fn import(self, path: impl AsRef<Path>) -> Result<Imported> {
        let path = path.as_ref();
        let text = read_text(path)?;
        let file = path.display().to_string();
        let beside = |name: &str| path.parent().map(|folder| folder.join(name)).filter(|path| path.is_file());
        match self {
            Self::Adk => {
                let config = beside("test_config.json").map(|path| read_text(&path)).transpose()?;
                adk(&file, &text, config.as_deref())
            }
            Self::Inspect => inspect(&file, &text),
            Self::Promptfoo => promptfoo(&file, &text),
            Self::Pydantic => pydantic(&file, &text),
            Self::Deepeval => deepeval(&file, &text),
            Self::Bfcl => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let answers = beside(&format!("possible_answer/{name}")).map(|path| read_text(&path)).transpose()?;
                bfcl(&file, &text, answers.as_deref())
            }
            Self::Humaneval => humaneval(&file, &text),
        }
    }
}

impl FromStr for ImportFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
        found.ok_or_else(|| {
            let known = listed(Self::ALL.map(|(name, _)| name));
            Error::new(ErrorKind::Invalid, format!("import from `{text}`; known are {known}"))
        })
    }
}

/// A set in the making.
struct Import {
    set: EvalSet,
    notes: Vec<Note>,
}

impl Import {
    /// An empty set, named after the file.
    fn new(file: &str) -> Self {
        let stem = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut import = Self {
            set: EvalSet {
                schema: SCHEMA.to_owned(),
                name: String::new(),
                description: String::new(),
                subject: None,
                allow_exec: false,
                defaults: CaseDefaults::default(),
                cases: Vec::new(),
            },
            notes: Vec::new(),
        };
        import.name(stem.split('.').next().unwrap_or_default());
        import
    }

    fn name(&mut self, name: &str) {
        self.set.name = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    }

    fn note(&mut self, case: Option<&str>, what: impl Into<String>) {
        self.notes.push(Note { case: case.map(str::to_owned), what: what.into() });
    }

    /// The id for a case: its own if it has one that is not taken, else one that counts.
    fn id(&self, wanted: Option<&str>) -> String {
        let taken = |id: &str| self.set.cases.iter().any(|case| case.id == id);
        let base = wanted.map(str::trim).filter(|id| !id.is_empty());
        let mut ids = base.map(str::to_owned).into_iter().chain((1..).filter_map(|number: usize| match base {
            Some(base) if number > 1 => Some(format!("{base}-{number}")),
            Some(_) => None,
            None => Some(format!("case-{number}")),
        }));
        ids.find(|id| !taken(id)).unwrap_or_default()
    }

    fn add(&mut self, case: EvalCase) {
        self.set.cases.push(case);
    }

    /// The set; cases that check nothing are noted.
    fn finish(mut self, file: &str) -> Result<Imported> {
        if self.set.cases.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, format!("import {file}: it has no cases")));
        }
        let lint = BuildContext { lint: true, ..BuildContext::default() };
        let mut allowed = self.set.clone();
        allowed.allow_exec = true;
        for case in &self.set.cases {
            if let Err(error) = case_checks(case, &allowed, &lint) {
                let what = error.to_string();
                let what = what.strip_prefix(&format!("case `{}`: ", case.id)).unwrap_or(&what).to_owned();
                self.notes.push(Note { case: Some(case.id.clone()), what });
            }
        }
        Ok(Imported { set: self.set, notes: self.notes })
    }
}

fn case(id: impl Into<String>, input: Input) -> EvalCase {
    EvalCase {
        id: id.into(),
        tags: BTreeSet::new(),
        split: None,
        group: None,
        input,
        state: Map::new(),
        expected: Vec::new(),
        expected_state: Map::new(),
        expected_calls: None,
        forbidden_tools: BTreeSet::new(),
        allowed_tools: None,
        budget: None,
        checks: Vec::new(),
        repeats: None,
        metadata: Map::new(),
        quarantine: None,
    }
}

fn json(file: &str, text: &str) -> Result<Value> {
    Ok(Tree::json(file, text, Spot { line: 1, column: 1 })?.value())
}

/// YAML; JSON if the file is named so.
fn yaml(file: &str, text: &str) -> Result<Value> {
    let is_json = Path::new(file).extension().is_some_and(|extension| extension == "json");
    if is_json { json(file, text) } else { Ok(Tree::yaml(file, text)?.value()) }
}

/// One JSON document a line.
fn json_lines(file: &str, text: &str) -> Result<Vec<Value>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(line, text)| Ok(Tree::json(file, text, Spot { line, column: 1 })?.value())).collect()
}

/// A field by its name in snake case, or the same in camel case; null is absent.
fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let camel = || {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let mut letters = word.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase().to_string()).unwrap_or_default();
            name + &first + letters.as_str()
        })
    };
    value.get(name).or_else(|| value.get(camel())).filter(|value| !value.is_null())
}

fn text_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    field(value, name)?.as_str()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    field(value, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text as it is, and any other value as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn not_of_the_format(file: &str, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("import {file}: {what}"))
}
