//! Reports: the data, how it comes from trials, what it decides, and how it is written.

#![expect(clippy::cast_precision_loss, reason = "counts of trials and tokens are far below 2^53")]

mod baseline;
mod build;
mod compare;
mod confusion;
mod diagnoses;
mod gate;
mod gates;
mod html;
mod json;
mod judges;
mod junit;
mod labels;
mod loops;
mod markdown;
mod model;
mod row;
mod summary;
mod tally;
mod text;
mod verdict;
pub(crate) mod words;

pub use baseline::{BASELINE_SCHEMA, Baseline, CaseBaseline};
pub use build::{ReportBuilder, ReportOptions};
pub use confusion::Confusion;
pub use gate::Gate;
pub use html::HtmlOptions;
pub(crate) use json::Judged as JudgedReport;
pub use labels::Label;
pub use model::{
    CaseReport, Comparison, Failure, GateResult, GateVerdict, JudgeReport, LoopReport, PassAt, REPORT_SCHEMA, Report,
    SetReport, Tally,
};
pub use text::TextOptions;
pub use verdict::{ExitRules, RunVerdict};
