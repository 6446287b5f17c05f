//! The files' JSON Schemas, for editors and for readers in other languages. `schemas/` of this crate has them.

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use crate::{Baseline, EvalCase, EvalSet, Label, Manifest, Trial, report::JudgedReport};

/// The JSON Schema of a set's file: `schemas/eval-set.json`.
pub fn set_schema() -> Value {
    schema_for!(EvalSet).to_value()
}

/// The JSON Schema of a case, a file in a set's folder or a line of a JSONL file: `schemas/eval-case.json`.
pub fn case_schema() -> Value {
    schema_for!(EvalCase).to_value()
}

/// The JSON Schema of a line of a run's log, the manifest or a trial: `schemas/run-line.json`.
pub fn log_schema() -> Value {
    schema_for!(LogLine).to_value()
}

/// The JSON Schema of what [`Report::to_json`](crate::Report::to_json) writes: `schemas/report.json`.
pub fn report_schema() -> Value {
    schema_for!(JudgedReport<'_>).to_value()
}

/// The JSON Schema of a baseline: `schemas/baseline.json`.
pub fn baseline_schema() -> Value {
    schema_for!(Baseline).to_value()
}

/// The JSON Schema of a line of a file of labels: `schemas/label.json`.
pub fn label_schema() -> Value {
    schema_for!(Label).to_value()
}

/// A line of a run's log: the manifest first, then trials.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is wanted")]
enum LogLine {
    Manifest(Box<Manifest>),
    Trial(Box<Trial>),
}

/// Tokens that were used; what is absent is 0.
#[derive(JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
#[expect(clippy::struct_field_names, reason = "they are the file's")]
pub(crate) struct Usage {
    /// Tokens of the requests, cached ones included.
    input_tokens: u64,
    /// Tokens of the answers, thoughts included.
    output_tokens: u64,
    /// Those of `input_tokens` that the service had in its cache.
    cached_input_tokens: u64,
    /// Those of `output_tokens` that were thoughts.
    reasoning_tokens: u64,
}

/// How a run ended.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "stands in for the type of `agent-core`, which has no schema")]
pub(crate) enum StopReason {
    Completed,
    Escalated,
    AwaitingApproval,
    Length,
    Filtered,
    TurnLimit,
    IterationLimit,
    BudgetExhausted,
    Halted,
    Cancelled,
}

/// What was committed to the session at once, as sessions are stored.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "stands in for the type of `agent-core`, which has no schema")]
pub(crate) struct Event {
    /// A version 7 UUID: it carries the time.
    id: String,
    /// The run that it belongs to.
    run: String,
    /// The agent that recorded it.
    author: String,
    /// Which iteration of which loop, outermost first.
    #[serde(default)]
    path: Vec<LoopStep>,
    /// How many messages are kept, if others were taken back.
    #[serde(default)]
    rewind: Option<usize>,
    /// The messages that were added.
    #[serde(default)]
    messages: Vec<Value>,
    /// The changes of the state.
    #[serde(default)]
    state: Vec<Value>,
    /// What it used.
    #[serde(default)]
    usage: Option<Usage>,
    /// Whether the enclosing loop is to end.
    #[serde(default)]
    escalate: bool,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "stands in for the type of `agent-core`, which has no schema")]
struct LoopStep {
    name: String,
    iteration: u32,
}
