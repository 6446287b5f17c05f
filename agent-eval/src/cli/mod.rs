//! The command line, for a program that has the subjects: a workspace's `cargo xtask eval`, say.

mod project;

pub use project::{ModelSource, Project};
