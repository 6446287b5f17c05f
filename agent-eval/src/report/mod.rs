//! Reports: the data, how it comes from trials, and what it decides.

#![expect(clippy::cast_precision_loss, reason = "counts of trials and tokens are far below 2^53")]

mod baseline;
mod build;
mod compare;
mod diagnoses;
mod gates;
mod judges;
mod loops;
mod model;
mod tally;
mod verdict;

pub use baseline::{BASELINE_SCHEMA, Baseline, CaseBaseline};
pub use build::{ReportBuilder, ReportOptions};
pub use gates::Gate;
pub use model::{
    CaseReport, Comparison, Confusion, Failure, GateResult, GateVerdict, JudgeReport, LoopReport, PassAt,
    REPORT_SCHEMA, Report, SetReport, Tally,
};
pub use verdict::{ExitRules, RunVerdict};
