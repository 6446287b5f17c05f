//! `cargo xtask eval`: the sets of `evals/`, and the agents that they evaluate.

mod models;
mod rust;
mod sim;

use std::sync::Arc;

use agent_core::{ChatClient, Result};
use agent_eval::{CassetteMode, EvalSet, ModelSource, Project, RunOptions, SetRun, Subject, TextOptions};
use agent_providers::client_for;

use rust::RustTasks;
use sim::Simulations;

/// The agents of this workspace's sets.
pub(crate) struct Evals;

impl Project for Evals {
    fn subjects(&self) -> Vec<&str> {
        vec!["rust", "sim"]
    }

    fn subject(&self, name: &str, set: &EvalSet, source: &ModelSource) -> Result<Option<Box<dyn Subject>>> {
        match name {
            "rust" => Ok(Some(Box::new(RustTasks::new(set, source)?))),
            "sim" => Ok(Some(Box::new(Simulations))),
            _ => Ok(None),
        }
    }

    fn client(&self, model: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>> {
        client_for(model, base_url)
    }
}

/// Runs the eval sets of `evals/`.
#[derive(Debug, clap::Args)]
pub(crate) struct Eval {
    /// Sets to run; all if none is named.
    sets: Vec<String>,
    #[arg(long)]
    case: Vec<String>,
    #[arg(long)]
    live: bool,
    #[arg(long)]
    record: bool,
    #[arg(long, env = "AGENT_MODEL")]
    model: Option<String>,
    #[arg(long)]
    base_url: Option<String>,
}

impl Eval {
    pub(crate) fn run(self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(self.evaluate()).map_err(|error| format!("{error:#}"))
    }

    async fn evaluate(self) -> agent_core::Result<()> {
        let cassettes = match (self.live, self.record) {
            (true, _) => CassetteMode::Live,
            (_, true) => CassetteMode::Record,
            _ => CassetteMode::Replay,
        };
        let mut folders: Vec<_> =
            std::fs::read_dir("evals").expect("evals/").flatten().map(|entry| entry.path()).collect();
        folders.sort();
        let mut sets = Vec::new();
        for dir in folders.into_iter().filter(|dir| dir.join("set.yaml").exists()) {
            let set = EvalSet::load(&dir)?;
            if !self.sets.is_empty() && !self.sets.contains(&set.name) {
                continue;
            }
            let source =
                ModelSource { model: self.model.clone(), base_url: self.base_url.clone(), cassettes, dir: dir.clone() };
            let name = set.subject.clone().unwrap_or_else(|| set.name.clone());
            let subject = Evals.subject(&name, &set, &source)?.expect("a known subject");
            sets.push((set, subject, dir));
        }
        let runs: Vec<SetRun<'_>> = sets
            .iter()
            .map(|(set, subject, dir)| SetRun { set, subject: subject.as_ref(), dir: Some(dir.clone()) })
            .collect();
        let options = RunOptions {
            cases: self.case,
            cassettes,
            concurrency: std::num::NonZeroUsize::MIN,
            ..RunOptions::default()
        };
        let report = agent_eval::run_sets(&runs, options).await?;
        println!("{}", report.to_text(&TextOptions::default()));
        Ok(())
    }
}
