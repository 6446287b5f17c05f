//! `cargo xtask eval`: the sets of `evals/`, and the agents that they evaluate.

mod calls;
mod models;
mod rust;
mod sim;
mod sql;
#[cfg(test)]
mod tests;

use std::{process::ExitCode, sync::Arc};

use agent_core::{ChatClient, Result};
use agent_eval::{EvalCommand, EvalSet, ModelSource, Project, Subject};
use agent_providers::client_for;

use calls::Calls;
use models::Models;
use rust::RustTasks;
use sim::Simulations;
use sql::Sql;

/// Runs the command, and gives its exit code.
pub(crate) fn run(command: EvalCommand) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(command.run(&Evals)),
        Err(error) => {
            eprintln!("error: start the runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The agents of this workspace's sets.
pub(crate) struct Evals;

impl Project for Evals {
    fn subjects(&self) -> Vec<&str> {
        vec!["calls", "rust", "sim", "sql"]
    }

    fn subject(&self, name: &str, set: &EvalSet, source: &ModelSource) -> Result<Option<Box<dyn Subject>>> {
        Ok(match name {
            "calls" => Some(Box::new(Calls::new(Models::new(source)?))),
            "rust" => Some(Box::new(RustTasks::new(set, source)?)),
            "sim" => Some(Box::new(Simulations)),
            "sql" => Some(Box::new(Sql::new(Models::new(source)?)?)),
            _ => None,
        })
    }

    fn client(&self, model: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>> {
        client_for(model, base_url)
    }
}
