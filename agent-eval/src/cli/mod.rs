//! The command line, for a program that has the subjects: a workspace's `cargo xtask eval`, say.

mod args;
mod asked;
mod bless;
mod cap;
mod codes;
mod compare;
mod exchange;
mod export;
mod gate;
mod import;
mod lint;
mod list;
mod place;
mod plan;
mod profile;
mod progress;
mod project;
mod report;
mod run;
mod score;
mod sets;
mod settings;
mod show;
mod stdout;
mod timeline;
mod trials;
mod verdict;

pub use args::EvalCommand;
pub use project::{ModelSource, Project};
