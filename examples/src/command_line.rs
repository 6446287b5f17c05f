//! How every example is told which model to ask, and how it ends.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use agent_core::{ChatClient, ChatOptions, Result, StopReason};
use agent_providers::{CassetteMode, Recorded, client_for};
use anstream::eprintln;
use clap::Args;

use crate::{Script, own_sampling::OwnSampling};

/// Which model to ask. Without `--model` the example replays answers that it carries, offline.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// Ask this model, such as `openai:gpt-5`, instead of replaying recorded answers.
    #[arg(long, value_name = "PROVIDER:NAME", env = "AGENT_MODEL")]
    model: Option<String>,
    /// Where the model's service is, such as `http://127.0.0.1:8080/v1`.
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// Add the model's answers to this cassette.
    #[arg(long, value_name = "FILE", requires = "model")]
    record: Option<PathBuf>,
}

impl ModelArgs {
    /// Whether a real model is asked.
    pub fn is_live(&self) -> bool {
        self.model().is_some()
    }

    /// A variable that is set to nothing is as one that is not set.
    fn model(&self) -> Option<&str> {
        self.model.as_deref().filter(|model| !model.is_empty())
    }

    /// The same, but for the model of this name, if there is one.
    pub fn or(&self, model: Option<String>) -> Self {
        Self { model: model.or_else(|| self.model.clone()), ..self.clone() }
    }

    /// The model that was asked for, else one that replays a case of the cassette in `text`.
    ///
    /// # Errors
    /// If there is no such model (the known services are listed), or a cassette cannot be used.
    pub fn recorded(&self, text: &str, case: &str) -> Result<Arc<dyn ChatClient>> {
        self.client_or(case, || Ok(Recorded::replay(text)?.replay_trial(case, 0)))
    }

    /// The model that was asked for, else the [`Script`] in `text`.
    ///
    /// # Errors
    /// As [`recorded`](Self::recorded).
    pub fn scripted(&self, text: &str, case: &str) -> Result<Arc<dyn ChatClient>> {
        self.client_or(case, || Script::parse(text))
    }

    /// The model that was asked for, else the [`Script`] in `text`, [in order](Script::in_order).
    ///
    /// # Errors
    /// As [`recorded`](Self::recorded).
    pub fn in_order(&self, text: &str, case: &str) -> Result<Arc<dyn ChatClient>> {
        self.client_or(case, || Ok(Script::parse(text)?.in_order()))
    }

    /// The model that was asked for, else this one; `case` is what its answers are recorded as.
    ///
    /// # Errors
    /// As [`recorded`](Self::recorded), and those of `offline`.
    pub fn client_or<C: ChatClient + 'static>(
        &self,
        case: &str,
        offline: impl FnOnce() -> Result<C>,
    ) -> Result<Arc<dyn ChatClient>> {
        match self.real(case)? {
            Some(client) => Ok(client),
            None => Ok(Arc::new(offline()?)),
        }
    }

    fn real(&self, case: &str) -> Result<Option<Arc<dyn ChatClient>>> {
        let Some(model) = self.model() else { return Ok(None) };
        let client = client_for(model, self.base_url.as_deref())?;
        let Some(file) = &self.record else {
            // A server of one's own takes the options that answers were recorded with; it may be compared with them.
            let own = model.starts_with("openai-compatible:");
            return Ok(Some(if own { client } else { Arc::new(OwnSampling(client)) }));
        };
        let cassette = Recorded::open(file, CassetteMode::RecordMissing)?;
        Ok(Some(Arc::new(cassette.trial(case, 0, client))))
    }

    /// Says whose answers these are.
    pub fn headline(&self, client: &dyn ChatClient) -> String {
        let offline = if self.is_live() { "" } else { ", offline" };
        format!("model: {}{offline}", client.model())
    }
}

/// The same question gets the same answer, where a service can do so; other live services sample as they do.
pub fn repeatable() -> ChatOptions {
    ChatOptions { temperature: Some(0.0), seed: Some(1), max_output_tokens: Some(200), ..ChatOptions::default() }
}

/// Ends a program: code 0 if its work is done or waits for the user, 1 if a run ended otherwise, 2 after an error,
/// which is printed with its causes.
pub fn exit(end: Result<StopReason>) -> ExitCode {
    match end {
        Ok(StopReason::Completed | StopReason::AwaitingApproval) => ExitCode::SUCCESS,
        Ok(
            StopReason::Escalated
            | StopReason::Length
            | StopReason::Filtered
            | StopReason::TurnLimit
            | StopReason::IterationLimit
            | StopReason::BudgetExhausted
            | StopReason::Halted
            | StopReason::Cancelled,
        ) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
