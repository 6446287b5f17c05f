//! The set `sim`: writers without a model, whose hazards are known. What the report says of them can be compared with
//! the truth.

#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc};

use agent_core::{Agent, ChatMessage, Draft, Error, ErrorKind, Result, Role, StopReason, Usage, agent_fn};
use agent_eval::{EvalCase, Subject, TrialSpec};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use async_trait::async_trait;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What a good draft says; the cases expect it.
const GOOD: &str = "good";
const CAP: NonZeroU32 = NonZeroU32::new(5).expect("not zero");
/// What each draft costs.
const COST: Usage = Usage { input_tokens: 80, output_tokens: 20, cached_input_tokens: 0, reasoning_tokens: 0 };
/// The share of bad drafts that a lenient evaluator accepts.
const LENIENCE: f64 = 0.25;

/// A writer, as the metadata of a case describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Writer {
    /// The probability that a draft is good, after none was; the last value holds for all later drafts.
    hazard: Vec<f64>,
    drafts: BadDrafts,
    exit: Exit,
}

/// What bad drafts look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BadDrafts {
    /// Each is new.
    Fresh,
    /// Two of them, by turns.
    Alternating,
    /// Always the same.
    Same,
}

/// How good the loop's evaluator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Exit {
    /// It accepts the good drafts and no others.
    Right,
    /// It accepts nothing.
    Never,
    /// It accepts some bad drafts, too.
    Lenient,
}

impl Writer {
    fn of(case: &EvalCase) -> Result<Self> {
        let writer: Self = serde_json::from_value(Value::Object(case.metadata.clone())).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("read the writer of case `{}`", case.id)).with_source(error)
        })?;
        let is_chance = |hazard: &f64| (0.0..=1.0).contains(hazard);
        if writer.hazard.is_empty() || !writer.hazard.iter().all(is_chance) {
            let what = format!("read the writer of case `{}`: list chances from 0 to 1 in `hazard`", case.id);
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        Ok(writer)
    }

    /// The hazard of a draft, from 1.
    fn hazard_at(&self, draft: usize) -> f64 {
        self.hazard[draft.min(self.hazard.len()) - 1]
    }

    /// The text of a draft, from 1: a good one stays good.
    fn draft(&self, draft: usize, seed: u64) -> String {
        if (1..=draft).any(|draft| chance(seed, draft) < self.hazard_at(draft)) {
            return GOOD.to_owned();
        }
        match self.drafts {
            BadDrafts::Fresh => format!("bad {draft}"),
            BadDrafts::Alternating => format!("bad {}", draft % 2),
            BadDrafts::Same => "bad".to_owned(),
        }
    }

    fn accepts(&self, text: &str, iteration: usize, seed: u64) -> bool {
        match self.exit {
            Exit::Right => text == GOOD,
            Exit::Never => false,
            Exit::Lenient => text == GOOD || chance(!seed, iteration) < LENIENCE,
        }
    }
}

/// A number from 0 to 1 that is fixed by a trial's seed and a draft's number.
fn chance(seed: u64, draft: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(draft as u64);
    f64::from(rng.next_u32()) / (f64::from(u32::MAX) + 1.0)
}

/// The subject: a loop over the case's writer, seeded with the trial's seed.
pub(crate) struct Simulations;

#[async_trait]
impl Subject for Simulations {
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        let (writer, seed) = (Writer::of(trial.case)?, trial.seed);
        let exit = writer.clone();
        let writer = agent_fn("writer", move |session, out| {
            let drafts = session.messages().iter().filter(|message| message.role == Role::Assistant).count();
            let text = writer.draft(drafts + 1, seed);
            Box::pin(async move {
                out.record(session, Draft::message(ChatMessage::assistant(text)).usage(COST)).await;
                Ok(StopReason::Completed)
            })
        });
        let exit = evaluate_fn("exit", move |cx| {
            if exit.accepts(&cx.last.text(), cx.iteration as usize, seed) {
                LoopEvaluation::Satisfied
            } else {
                LoopEvaluation::feedback("not good")
            }
        });
        let options = LoopOptions { max_iterations: CAP, ..LoopOptions::default() };
        Ok(Arc::new(LoopAgent::new("refine", writer, options).evaluator(exit)))
    }

    fn fingerprint(&self) -> Value {
        json!({ "max_iterations": CAP, "lenience": LENIENCE })
    }
}
