//! Built-in checks, as a set's file names them.

mod adapters;
mod build;
mod command;
mod compose;
mod json;
mod judge;
mod text;
mod trace;

use std::{collections::BTreeSet, path::PathBuf};

use agent_core::StopReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    adapters::{CheckEvaluator, CheckFn, check_fn},
    build::{BuildContext, BuiltCheck, CaseChecks, case_checks},
};
use crate::{Budget, ExpectedCalls};

/// A check as a set's file writes it, such as `contains: {all: [apple]}`. Texts are those of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckSpec {
    /// The answer is one of these texts, white space at both ends apart.
    Equals(OneOrMany),
    /// The answer contains these texts.
    Contains {
        /// All of these.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        all: Vec<String>,
        /// At least one of these, if any are given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        any: Vec<String>,
        /// None of these.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        none: Vec<String>,
        /// Whether upper and lower case are the same.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ignore_case: bool,
    },
    /// The answer begins with this text.
    StartsWith(String),
    /// The answer ends with this text, white space apart.
    EndsWith(String),
    /// The regular expression matches somewhere in the answer.
    Regex(String),
    /// The check does not hold.
    Not(Box<CheckSpec>),
    /// All of these hold.
    AllOf(Vec<CheckSpec>),
    /// At least one of these holds.
    AnyOf(Vec<CheckSpec>),
    /// The answer is JSON; a Markdown fence around it is tolerated.
    Json,
    /// The answer is JSON of this schema (draft 2020-12).
    JsonSchema(Value),
    /// The answer is JSON that has this value at this pointer (RFC 6901).
    JsonPointer {
        /// The pointer.
        pointer: String,
        /// The value.
        value: Value,
    },
    /// A number in the answer (the last one, or the one at a JSON pointer) is this near.
    Number {
        /// The number.
        value: f64,
        /// The largest difference.
        #[serde(default)]
        tolerance: f64,
        /// Where it is, if the answer is JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pointer: Option<String>,
    },
    /// The normalized edit similarity (1 - Levenshtein distance / longer length, in characters) reaches `at_least`.
    EditSimilarity {
        /// The text to compare with.
        expected: String,
        /// From 0 to 1.
        at_least: f64,
    },
    /// The ROUGE-1 F1 (overlap of words; Lin 2004) reaches `at_least`.
    Rouge1 {
        /// The text to compare with.
        expected: String,
        /// From 0 to 1.
        at_least: f64,
    },
    /// These calls were made.
    Calls(ExpectedCalls),
    /// None of these tools was called.
    ForbiddenTools(BTreeSet<String>),
    /// No other tool than these was called.
    AllowedTools(BTreeSet<String>),
    /// Not more was spent.
    Budget(Budget),
    /// No tool was called twice with the same arguments.
    NoDuplicateCalls,
    /// State keys have these values at the end.
    StateEquals(#[schemars(with = "Map<String, Value>")] Map<String, Value>),
    /// The run ended for one of these reasons, such as `completed`.
    Stop(#[schemars(with = "Vec<String>")] Vec<StopReason>),
    /// The loop took at most so many iterations.
    MaxIterations(u32),
    /// A program exits with 0; it reads the answer from standard input. Only in sets that allow it.
    Command {
        /// The program: a path, or a name to look up in `PATH`.
        program: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// Where to run it, relative to the set's file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dir: Option<PathBuf>,
        /// How long it may take, in milliseconds; a minute if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Another model judges the answer by a rubric.
    Judge {
        /// What a good answer is.
        rubric: String,
        /// How often it is asked; the majority decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<u32>,
    },
    /// A check that the subject brings, by its name.
    Custom {
        /// Its name.
        name: String,
        /// What it wants to know.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        args: Value,
    },
}

/// One text, or several alternatives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}
