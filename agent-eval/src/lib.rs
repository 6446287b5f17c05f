//! Evaluation of agents and loops, as a library to be used in tests: what fails and why, whether a loop's feedback
//! helps, which cap to set, and what a solved case costs.
//!
//! An [`EvalSet`] is a list of cases in a file or in code: what is said, and what is expected. A [`Subject`] makes the
//! agent of each trial. [`EvalSet::run`] runs every case as often as asked, judges each trial, and returns a
//! [`Report`].
//!
//! # Example
//!
//! A loop on trial. The set could be a file, loaded with [`EvalSet::load`]; the models here play a script.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_core::testing::ScriptedAgent;
//! use agent_eval::{EvalSet, ExitRules, ReportOptions, RunOptions, TextOptions, subject_fn};
//! use agent_loop::{CompletionMarker, LoopAgent};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let set: EvalSet = serde_json::from_value(serde_json::json!({
//!     "schema": "agent-eval/1",
//!     "name": "reports",
//!     "cases": [{
//!         "id": "weekly",
//!         "input": { "text": "Write the weekly report." },
//!         "checks": [{ "contains": { "all": ["DONE"] } }, { "stop": ["completed"] }],
//!     }],
//! }))?;
//! let subject = subject_fn(|_| {
//!     let worker = ScriptedAgent::new("worker").says("Half of it.").says("All of it. DONE");
//!     let agent = LoopAgent::new("work", worker, Default::default()).evaluator(CompletionMarker::new("DONE"));
//!     Box::pin(async { Ok(Arc::new(agent) as _) })
//! });
//! let report = ReportOptions { gates: vec!["pass_rate>=0.9".parse()?], ..Default::default() };
//!
//! let report = set.run(&subject, RunOptions { repeats: 3.try_into().ok(), report, ..Default::default() }).await?;
//!
//! let reports = &report.sets[0];
//! assert_eq!((reports.total.passed, reports.total.failed), (3, 0));
//! assert_eq!(reports.loops.as_ref().expect("a loop").pass_by, [0.0, 1.0]); // after one iteration, after two
//! assert_eq!(report.exit_code(&ExitRules::default()), 0);
//! println!("{}", report.to_text(&TextOptions::default()));
//! # Ok(())
//! # }
//! ```
//!
//! # What can be trusted
//!
//! - **No vacuous pass.** A case without a check, an empty set and zero repeats are errors. What was not judged
//!   ([`Verdict::Unscored`]) and what went wrong ([`Verdict::Error`]) never counts as a pass.
//! - **Nothing is lost.** Each trial is in the log as soon as it ends; a run that was killed [goes on](Resume), and its
//!   report equals that of an undisturbed one.
//! - **One verdict.** Text, JSON, JUnit, Markdown, HTML and the exit code come from [`Report::verdict`].
//! - **Evidence.** Intervals are over cases; a [baseline](Baseline) is compared in pairs; and the report says which
//!   drop so few cases could not show. The formulas and their sources are in [`stats`].
//!
//! # Loops
//!
//! Each iteration's draft is judged by the case's own checks, off-path: the [`LoopReport`] has the curve of passes by
//! iteration beside what simply asking again would have done, a recommended cap with the evidence for it, tokens, and
//! how often the loop's own evaluators were right. And any [`Check`] drives a loop: [`CheckEvaluator`].
//!
//! # On the command line
//!
//! A workspace with a program `xtask` has `cargo xtask eval` in ten lines, by the feature `cli`. The sets are in
//! `evals/`, in files or folders; a [`Project`] says which subject is whose:
//!
#![cfg_attr(feature = "cli", doc = "```no_run")]
#![cfg_attr(not(feature = "cli"), doc = "```text")]
//! # use std::sync::Arc;
//! # use agent_core::{ChatClient, Result};
//! # use agent_eval::{EvalSet, ModelSource, Project, Subject};
//! # fn my_agents(source: &ModelSource) -> Result<Box<dyn Subject>> { todo!() }
//! # fn my_client(model: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>> { todo!() }
//! struct Evals;
//!
//! impl Project for Evals {
//!     fn subjects(&self) -> Vec<&str> {
//!         vec!["my-agent"]
//!     }
//!     fn subject(&self, name: &str, _: &EvalSet, source: &ModelSource) -> Result<Option<Box<dyn Subject>>> {
//!         if name == "my-agent" { my_agents(source).map(Some) } else { Ok(None) }
//!     }
//!     fn client(&self, model: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>> {
//!         my_client(model, base_url)
//!     }
//! }
//!
//! #[derive(clap::Parser)]
//! enum Xtask {
//!     Eval(Box<agent_eval::EvalCommand>),
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::process::ExitCode {
//!     let Xtask::Eval(command) = clap::Parser::parse();
//!     command.run(&Evals).await
//! }
//! ```
//!
//! ```console
//! $ cargo xtask eval                                  # all sets, offline: recorded answers are replayed
//! $ cargo xtask eval sql -E 'tag(join)' --repeats 5   # some cases, more often
//! $ cargo xtask eval --live --model openai:gpt-5      # or with AGENT_MODEL in the environment
//! $ cargo xtask eval show latest sql::oldest-vessel   # what happened in a case
//! $ cargo xtask eval bless latest                     # what later runs are compared with
//! $ cargo xtask eval --gate 'pass_rate>=0.9' --gate 'sql: regression<=0.05'
//! $ cargo xtask eval --resume                         # go on with a run that was broken off
//! ```
//!
//! Each run is a folder in `target/evals`, with its log and its reports. `AGENT_MODEL` names the model that `--live` and
//! `--record` ask; a replay it does not change. `.config/agent-eval.toml` has settings with names, as the flags call
//! them, in `[profile.NAME]` for `--profile NAME` and in `[profile.default]` for all. `--help` has the rest, with the
//! exit codes.
//!
//! # Files
//!
//! Sets are read from YAML, JSON, JSON Lines, CSV and folders ([`SetFormat`]), with errors that name the line and the
//! remedy; [`import`] reads those of other tools, and [`export`] writes them.

mod check;
mod checks;
#[cfg(feature = "cli")]
mod cli;
pub mod export;
mod file;
mod filter;
pub mod import;
mod json;
mod load;
mod outcome;
mod process;
mod report;
mod run;
mod sandbox;
mod schemas;
mod set;
pub mod stats;
mod subject;
mod text;
mod traces;
mod trajectory;
mod trial;

pub use check::{Check, CheckContext, Scorer};
pub use checks::{
    BuildContext, BuiltCheck, CaseChecks, CheckEvaluator, CheckFn, CheckSpec, OneOrMany, case_checks, check_fn,
};
#[cfg(feature = "cli")]
pub use cli::{EvalCommand, ModelSource, Project};
pub use filter::{Filter, FilterError, Partition, Selection};
pub use load::SetFormat;
pub use outcome::{Outcome, Verdict, overall};
pub use report::{
    BASELINE_SCHEMA, Baseline, CaseBaseline, CaseReport, Comparison, Confusion, ExitRules, Failure, Gate, GateResult,
    GateVerdict, HtmlOptions, JudgeReport, Label, LoopReport, PassAt, REPORT_SCHEMA, Report, ReportBuilder,
    ReportOptions, RunVerdict, SetReport, Tally, TextOptions,
};
pub use run::{CaseFilter, CassetteMode, Progress, Resume, RunLog, RunOptions, SetRun, run_sets, score};
pub use sandbox::{Isolation, Sandbox, SandboxEnd, SandboxLimits, SandboxRun};
pub use schemas::{baseline_schema, case_schema, label_schema, log_schema, report_schema, set_schema};
pub use set::{
    ArgumentMode, Budget, CallMode, CaseDefaults, EvalCase, EvalSet, ExpectedCall, ExpectedCalls, FieldMatcher, Input,
    Quarantine, SCHEMA, Turn,
};
pub use subject::{SetupError, Subject, TrialSpec, subject_fn};
pub use trajectory::CallMatcher;
pub use trial::{CheckOutcome, IterationTrace, Manifest, Trial, TrialError, TrialKey};
