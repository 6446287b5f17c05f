//! The command line, as a program that has subjects runs it.

mod codes;
mod commands;
mod errors;
mod output;
mod profiles;
mod program;
mod resume;
mod support;
