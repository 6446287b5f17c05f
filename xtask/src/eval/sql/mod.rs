//! `evals/sql`: the loop of the example `sql_refine`, and what its statements return.

mod same_rows;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc};

use agent_core::{Agent, ChatOptions, Error, ErrorKind, Result};
use agent_eval::{Check, Subject, TrialSpec};
use agent_examples::sql::{Database, FERRY, RefineOptions, refine};
use async_trait::async_trait;
use serde_json::{Value, json};

use self::same_rows::SameRows;
use super::models::Models;

/// Tokens of an answer: the longest reference has half as many.
const MAX_OUTPUT_TOKENS: u32 = 200;
/// So that repeats differ.
const TEMPERATURE: f64 = 0.7;
const CAP: NonZeroU32 = NonZeroU32::new(4).expect("not zero");

/// The agents of `evals/sql`.
pub(crate) struct Sql {
    models: Models,
    /// The one that the loop's checker knows.
    database: Arc<Database>,
    /// Those that its statements are judged on.
    judges: Arc<[Database]>,
}

impl Sql {
    pub(crate) fn new(models: Models) -> Result<Self> {
        Ok(Self { models, database: Arc::new(Database::ferry()?), judges: judges()? })
    }
}

fn judges() -> Result<Arc<[Database]>> {
    Ok(Arc::from([Database::ferry()?, Database::from_script(&second())?]))
}

fn second() -> String {
    [FERRY, include_str!("second.sql")].concat()
}

#[async_trait]
impl Subject for Sql {
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        let chat = ChatOptions {
            temperature: Some(TEMPERATURE),
            // The repeat's number and not the trial's seed: what is recorded answers a run of any seed.
            seed: Some(u64::from(trial.key.repeat) + 1),
            max_output_tokens: Some(MAX_OUTPUT_TOKENS),
            ..ChatOptions::default()
        };
        let options = RefineOptions { max_iterations: CAP, chat };
        Ok(Arc::new(refine(self.models.client(trial), &self.database, options)))
    }

    fn fingerprint(&self) -> Value {
        json!({
            "model": self.models.name(),
            "temperature": TEMPERATURE,
            "max_output_tokens": MAX_OUTPUT_TOKENS,
            "max_iterations": CAP,
        })
    }

    fn check(&self, name: &str, args: &Value) -> Result<Option<Arc<dyn Check>>> {
        match (name, args) {
            ("same_rows", Value::String(reference)) => {
                Ok(Some(Arc::new(SameRows::new(self.judges.clone(), reference)?)))
            }
            ("same_rows", _) => Err(Error::new(
                ErrorKind::Invalid,
                format!("compare with the rows of {args}; write one SELECT statement"),
            )),
            _ => Ok(None),
        }
    }
}
