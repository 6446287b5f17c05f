//! `evals/calls`: an agent with tools, and the calls that it makes.

#[cfg(test)]
mod tests;
mod tools;

use std::{num::NonZeroU32, sync::Arc};

use agent_core::{Agent, ChatAgent, ChatAgentOptions, ChatOptions, Error, ErrorKind, Result};
use agent_eval::{EvalCase, Subject, TrialSpec};
use async_trait::async_trait;
use serde_json::{Value, json};

use self::tools::tools;
use super::models::Models;

const INSTRUCTIONS: &str = "You are an assistant with tools. Call the tools that the request needs, all at once, and each \
                            call once. Then tell the user in one sentence what they said. If no tool fits, answer \
                            without them.";
const MAX_OUTPUT_TOKENS: u32 = 160;
/// The calls, an answer to their results, and one more.
const MAX_TURNS: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// The agents of `evals/calls`.
pub(crate) struct Calls {
    models: Models,
}

impl Calls {
    pub(crate) fn new(models: Models) -> Self {
        Self { models }
    }
}

#[async_trait]
impl Subject for Calls {
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        let names = tools_of(trial.case)?;
        let chat = ChatOptions {
            temperature: Some(0.0),
            seed: Some(u64::from(trial.key.repeat) + 1),
            max_output_tokens: Some(MAX_OUTPUT_TOKENS),
            ..ChatOptions::default()
        };
        let options = ChatAgentOptions {
            instructions: INSTRUCTIONS.into(),
            max_turns: MAX_TURNS,
            chat,
            ..ChatAgentOptions::default()
        };
        let agent = ChatAgent::new("assistant", self.models.client(trial), options);
        let chosen = tools().into_iter().filter(|tool| names.contains(&tool.spec().name));
        Ok(Arc::new(chosen.fold(agent, ChatAgent::tool)))
    }

    fn fingerprint(&self) -> Value {
        json!({ "model": self.models.name(), "temperature": 0, "max_output_tokens": MAX_OUTPUT_TOKENS, "max_turns": MAX_TURNS })
    }
}

/// The tools of a case, which its metadata name under `tools`.
fn tools_of(case: &EvalCase) -> Result<Vec<String>> {
    let names: Vec<String> =
        case.metadata.get("tools").cloned().and_then(|names| serde_json::from_value(names).ok()).unwrap_or_default();
    let known = tools();
    let unknown = names.iter().find(|name| known.iter().all(|tool| tool.spec().name != **name));
    let wrong = match unknown {
        Some(name) => format!("there is no tool `{name}`"),
        None if names.is_empty() => "it names none; list them under `metadata.tools`".to_owned(),
        None => return Ok(names),
    };
    Err(Error::new(ErrorKind::Invalid, format!("give the case `{}` its tools: {wrong}", case.id)))
}
