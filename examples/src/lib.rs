//! What the examples share: the command line, printing, stand-ins for a model, server-sent events, and the database that `sql_refine` asks.
//!
//! The examples themselves are in `src/bin`, one file each, to be read from top to bottom.

mod command_line;
#[cfg(doctest)]
mod guide;
mod own_sampling;
mod parrot;
mod printer;
mod scripted;
pub mod sql;
mod sse;

pub use command_line::{ModelArgs, exit, repeatable};
pub use parrot::Parrot;
pub use printer::{call_text, print_run};
pub use scripted::Script;
pub use sse::sse_event;

/// The program on the workspace's front page compiles, and its test passes.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
