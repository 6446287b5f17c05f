//! Evaluation of agents and loops.

mod check;
mod checks;
mod outcome;
mod report;
mod run;
mod set;
pub mod stats;
mod subject;
mod trial;

pub use check::{Check, CheckContext, Scorer};
pub use checks::{CheckSpec, OneOrMany};
pub use outcome::{Outcome, Verdict, overall};
pub use report::{
    BASELINE_SCHEMA, Baseline, CaseBaseline, CaseReport, Comparison, Confusion, ExitRules, Failure, Gate, GateResult,
    GateVerdict, JudgeReport, LoopReport, PassAt, REPORT_SCHEMA, Report, ReportBuilder, ReportOptions, RunVerdict,
    SetReport, Tally,
};
pub use run::{CaseFilter, CassetteMode, Progress, Resume, RunLog, RunOptions, run_sets};
pub use set::{
    ArgumentMode, Budget, CallMode, CaseDefaults, EvalCase, EvalSet, ExpectedCall, ExpectedCalls, FieldMatcher, Input,
    Quarantine, SCHEMA, Turn,
};
pub use subject::{Subject, TrialSpec, subject_fn};
pub use trial::{CheckOutcome, IterationTrace, Manifest, Trial, TrialError, TrialKey};
