//! Evaluation of agents and loops.

mod check;
mod checks;
mod filter;
pub mod import;
mod json;
mod load;
mod outcome;
mod report;
mod run;
mod set;
pub mod stats;
mod subject;
mod text;
mod trajectory;
mod trial;

pub use check::{Check, CheckContext, Scorer};
pub use checks::{
    BuildContext, BuiltCheck, CaseChecks, CheckEvaluator, CheckFn, CheckSpec, OneOrMany, case_checks, check_fn,
};
pub use filter::{Filter, FilterError, Partition, Selection};
pub use load::{SetFormat, case_schema, set_schema};
pub use outcome::{Outcome, Verdict, overall};
pub use report::{
    BASELINE_SCHEMA, Baseline, CaseBaseline, CaseReport, Comparison, Confusion, ExitRules, Failure, Gate, GateResult,
    GateVerdict, JudgeReport, LoopReport, PassAt, REPORT_SCHEMA, Report, ReportBuilder, ReportOptions, RunVerdict,
    SetReport, Tally, TextOptions,
};
pub use run::{CaseFilter, CassetteMode, Progress, Resume, RunLog, RunOptions, SetRun, run_sets};
pub use set::{
    ArgumentMode, Budget, CallMode, CaseDefaults, EvalCase, EvalSet, ExpectedCall, ExpectedCalls, FieldMatcher, Input,
    Quarantine, SCHEMA, Turn,
};
pub use subject::{Subject, TrialSpec, subject_fn};
pub use trajectory::CallMatcher;
pub use trial::{CheckOutcome, IterationTrace, Manifest, Trial, TrialError, TrialKey};
