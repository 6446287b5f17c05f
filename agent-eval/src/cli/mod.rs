//! The command line, for a program that has the subjects: a workspace's `cargo xtask eval`, say.

mod args;
mod bless;
mod codes;
mod gate;
mod lint;
mod list;
mod place;
mod plan;
mod profile;
mod progress;
mod project;
mod report;
mod run;
mod sets;
mod settings;
mod verdict;

pub use args::EvalCommand;
pub use project::{ModelSource, Project};
