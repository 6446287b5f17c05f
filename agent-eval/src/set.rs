//! Eval sets: cases with what is expected of them.

use std::{collections::BTreeSet, num::NonZeroU32};

use agent_core::ChatMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::checks::CheckSpec;

/// The name and version of the file format.
pub const SCHEMA: &str = "agent-eval/1";

/// A named list of cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalSet {
    /// `agent-eval/1`.
    pub schema: String,
    /// The set's name, unique in a project: letters, digits, `_` and `-`.
    pub name: String,
    /// What it measures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Which agent the set is for, as the program that runs it names its agents; the set's own name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether the subject may run code that a model wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_exec: bool,
    /// What holds for every case that does not say otherwise.
    #[serde(default, skip_serializing_if = "CaseDefaults::is_empty")]
    pub defaults: CaseDefaults,
    /// The cases; their ids are unique.
    pub cases: Vec<EvalCase>,
}

impl EvalSet {
    /// The same set with other cases; its own are not copied.
    pub(crate) fn with_cases(&self, cases: Vec<EvalCase>) -> Self {
        let Self { schema, name, description, subject, allow_exec, defaults, .. } = self;
        Self {
            schema: schema.clone(),
            name: name.clone(),
            description: description.clone(),
            subject: subject.clone(),
            allow_exec: *allow_exec,
            defaults: defaults.clone(),
            cases,
        }
    }
}

/// What holds for every case of a set that does not say otherwise. Tags and checks are added to a case's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CaseDefaults {
    /// How often each case is run; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<NonZeroU32>,
    /// Tags of every case.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Checks of every case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckSpec>,
    /// The budget of a case that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl CaseDefaults {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One case: what is said to the agent, and what is expected of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalCase {
    /// Unique in its set and stable: runs are compared by it.
    pub id: String,
    /// For filters and for the report's groups.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Which part of the data it is, such as `dev` or `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Cases of one source (one document, one template) share a group: they are not independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What is said.
    pub input: Input,
    /// The session's state at the beginning.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub state: Map<String, Value>,
    /// The answer that is expected; several are alternatives. Compared as [`CheckSpec::Equals`] does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// State keys and the values that they must have at the end.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub expected_state: Map<String, Value>,
    /// The tool calls that are expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_calls: Option<ExpectedCalls>,
    /// Tools that must not be called.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forbidden_tools: BTreeSet<String>,
    /// If present, no other tools may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<BTreeSet<String>>,
    /// What the trial may spend; more is a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What else is checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckSpec>,
    /// How often it is run; the set's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<NonZeroU32>,
    /// Anything that the subject or a reader wants to know.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Known to fail for now: reported, and in no gate, until the day given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
}

/// What is said to the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// One user message.
    Text(String),
    /// A whole conversation, whose last message is the caller's. Messages as a session stores them.
    Messages(#[schemars(with = "Vec<Value>")] Vec<ChatMessage>),
    /// What the caller says turn by turn, each with what is expected of its answer.
    Turns(Vec<Turn>),
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What the caller says.
    pub say: String,
    /// The answer that is expected; several are alternatives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// The tool calls that are expected in this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_calls: Option<ExpectedCalls>,
    /// What else is checked of this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckSpec>,
}

/// Tool calls that are expected, and how they are compared with those that were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCalls {
    /// How the lists are compared.
    #[serde(default)]
    pub mode: CallMode,
    /// How arguments are compared, where a call does not say.
    #[serde(default)]
    pub arguments: ArgumentMode,
    /// The calls. None at all means that no tool may be called.
    pub calls: Vec<ExpectedCall>,
}

/// One expected call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// How they are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ArgumentMode>,
    /// Matchers of single fields, by JSON pointer (RFC 6901); they outweigh the mode for their fields.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub fields: std::collections::BTreeMap<String, FieldMatcher>,
}

/// How a list of calls is compared with the expected one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallMode {
    /// The same calls in the same order, and no others.
    #[default]
    Exact,
    /// The expected calls in their order; others may be between them.
    InOrder,
    /// The same calls in any order, and no others.
    AnyOrder,
    /// Each call made is an expected one; not all need be made.
    Subset,
    /// Each expected call is made; others may be too.
    Superset,
    /// The F1 of the longest common subsequence reaches this, from 0 to 1.
    F1(f64),
}

/// How a call's arguments are compared. Numbers are compared as numbers: 1 is 1.0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentMode {
    /// Equal.
    #[default]
    Exact,
    /// The expected fields are there and equal, in nested objects too; others may be there.
    Subset,
    /// Not looked at.
    Ignore,
    /// Equal at these JSON pointers; the rest is not looked at.
    Keys(Vec<String>),
}

/// How one field of a call's arguments is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldMatcher {
    /// Anything, but there.
    Any,
    /// A number this far from the given one at most.
    Near {
        /// The number.
        value: f64,
        /// The largest difference.
        tolerance: f64,
    },
    /// A string that the regular expression matches (anywhere; anchor it with `^` and `$`).
    Regex(String),
    /// One of these values.
    OneOf(Vec<Value>),
}

/// What a trial may spend; what is absent is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
    /// Input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Wall time in milliseconds. Not looked at in a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

/// Why a case is known to fail, and until when that is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quarantine {
    /// Why.
    pub reason: String,
    /// The last day on which it counts, as `YYYY-MM-DD` (UTC); after it the case is in the gates again.
    pub until: String,
}
