//! `cargo xtask eval`: the sets of `evals/`, and the agents that they evaluate.

mod models;

use std::{process::ExitCode, sync::Arc};

use agent_core::{ChatClient, Result};
use agent_eval::{EvalCommand, EvalSet, ModelSource, Project, Subject};
use agent_providers::client_for;

use models::Models;

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
        vec![]
    }

    fn subject(&self, name: &str, _set: &EvalSet, source: &ModelSource) -> Result<Option<Box<dyn Subject>>> {
        match name {
            _ => {
                let _ = Models::new(source)?;
                Ok(None)
            }
        }
    }

    fn client(&self, model: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>> {
        client_for(model, base_url)
    }
}
