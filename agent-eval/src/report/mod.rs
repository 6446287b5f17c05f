//! Reports: the data, and the ways to show it.

mod model;

pub use model::{
    CaseReport, Comparison, Confusion, Failure, GateResult, GateVerdict, JudgeReport, LoopReport, PassAt,
    REPORT_SCHEMA, Report, SetReport, Tally,
};
