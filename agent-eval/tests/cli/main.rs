//! The command line, as a program that has subjects runs it.

mod codes;
mod program;
mod support;
