//! The set `rust`: a writer of small functions, and a compiler with tests as the evaluator of its loop.

mod feedback;
mod forbidden;
mod grader;
mod task;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc};

use agent_core::{Agent, ChatAgent, ChatAgentOptions, ChatOptions, Error, ErrorKind, Result};
use agent_eval::{Check, CheckContext, EvalSet, Isolation, ModelSource, Outcome, Subject, TrialSpec};
use agent_loop::{ContextMode, LoopAgent, LoopEvaluation, LoopOptions, evaluate_async_fn};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use self::{grader::Grader, task::Task};
use super::models::Models;

const INSTRUCTIONS: &str = "You write one Rust function. Answer with the whole function in one ```rust block, and with \
                            nothing else: no explanation, no main, no tests. Only the standard library can be used.";
/// The writer has one draft and this many chances less one to repair it.
const MAX_ITERATIONS: NonZeroU32 = NonZeroU32::new(3).expect("not zero");
/// Tokens of one answer. The longest solution takes about half of it; a model that rambles is cut off.
const MAX_OUTPUT_TOKENS: u32 = 240;
const TEMPERATURE: f64 = 0.5;
/// What small models add though nobody asked: a program or tests of their own, an explanation after the code.
const STOP: [&str; 4] = ["fn main", "#[cfg(test)]", "#[test]", "```\n\n"];

/// The subject: its loop, and the check that all tests pass, the hidden ones too.
pub(crate) struct RustTasks {
    models: Models,
    grader: Arc<Grader>,
}

impl RustTasks {
    /// # Errors
    /// If the set does not allow that programs are run, or there is no compiler.
    pub(crate) fn new(set: &EvalSet, source: &ModelSource) -> Result<Self> {
        if !set.allow_exec {
            let what =
                format!("compile what a model writes for set `{}`: write `allow_exec: true` in the set", set.name);
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        Ok(Self { models: Models::new(source)?, grader: Arc::new(Grader::new()?) })
    }
}

#[async_trait]
impl Subject for RustTasks {
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        let task = Arc::new(Task::of(trial.case)?);
        let options = ChatAgentOptions {
            instructions: INSTRUCTIONS.into(),
            chat: ChatOptions {
                temperature: Some(TEMPERATURE),
                seed: Some(trial.key.repeat.into()),
                max_output_tokens: Some(MAX_OUTPUT_TOKENS),
                stop: STOP.map(str::to_owned).into(),
                ..ChatOptions::default()
            },
            ..ChatAgentOptions::default()
        };
        let writer = ChatAgent::new("writer", self.models.client(trial), options);
        let grader = self.grader.clone();
        let visible_tests = evaluate_async_fn("visible_tests", move |cx| {
            let (grader, task) = (grader.clone(), task.clone());
            Box::pin(async move {
                let grade = grader.grade(&task, &cx.last.text()).await?;
                Ok(grade.feedback.clone().map_or(LoopEvaluation::Satisfied, LoopEvaluation::feedback))
            })
        });
        let options =
            LoopOptions { max_iterations: MAX_ITERATIONS, context: ContextMode::Fresh, ..LoopOptions::default() };
        Ok(Arc::new(LoopAgent::new("code", writer, options).evaluator(visible_tests)))
    }

    fn fingerprint(&self) -> Value {
        json!({
            "model": self.models.name(),
            "temperature": TEMPERATURE,
            "max_output_tokens": MAX_OUTPUT_TOKENS,
            "stop": STOP,
            "max_iterations": MAX_ITERATIONS,
            "rustc": self.grader.version(),
            "isolation": Isolation::here().to_string(),
        })
    }

    fn check(&self, name: &str, _args: &Value) -> Result<Option<Arc<dyn Check>>> {
        Ok((name == "all_tests").then(|| Arc::new(AllTests(self.grader.clone())) as _))
    }
}

/// All tests pass, the hidden ones too. What the loop has graded already is not compiled again.
struct AllTests(Arc<Grader>);

impl Check for AllTests {
    fn name(&self) -> &'static str {
        "all_tests"
    }

    fn check(&self, cx: &CheckContext<'_>) -> Outcome {
        let Some(case) = cx.case else { return Outcome::unscored("there is no case, so there are no tests") };
        let grade = || Task::of(case).and_then(|task| self.0.grade_blocking(&task, cx.answer));
        // Most grades are there already; those that are not take seconds, in which others may have this thread's tasks.
        let many = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        match if many { block_in_place(grade) } else { grade() } {
            Ok(grade) => grade.failure.clone().map_or_else(Outcome::pass, Outcome::fail),
            Err(error) => Outcome::error(format!("{error:#}")),
        }
    }
}
