//! Scripted agents, evaluators and runs that the tests share.

mod agents;
mod evaluators;
mod judging;
mod models;
mod runs;
mod show;

pub(crate) use agents::{Count, acts, boom, chat, escalates, gated, says, spends, tool_call, tool_turn};
pub(crate) use evaluators::{Log, judge, never, noted, scripted, until};
pub(crate) use judging::{Passes, digest_of};
pub(crate) use models::{ClientFn, client_fn, response};
pub(crate) use runs::{block_on, cut, fold, go, outcome, reloaded, try_go};
pub(crate) use show::{said, show, user_words};

use std::num::NonZeroU32;

use agent_core::{Session, Usage};
use agent_loop::{ContextMode, LoopOptions};

/// A session in which the caller said this.
pub(crate) fn asked(text: &str) -> Session {
    let mut session = Session::new();
    session.push(text);
    session
}

pub(crate) fn tokens(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

pub(crate) fn cap(max: u32) -> LoopOptions {
    LoopOptions { max_iterations: NonZeroU32::new(max).unwrap(), ..LoopOptions::default() }
}

pub(crate) fn fresh(max: u32) -> LoopOptions {
    LoopOptions { context: ContextMode::Fresh, ..cap(max) }
}
