//! A writer of statements, and a loop around it until its statement can be run.

use std::{num::NonZeroU32, sync::Arc};

use agent_core::{ChatAgent, ChatAgentOptions, ChatClient, ChatOptions};
use agent_eval::{Check, CheckEvaluator, Outcome, check_fn};
use agent_loop::{ContextMode, LoopAgent, LoopOptions};

use super::{Database, check};
use crate::repeatable;

/// How statements are written.
#[derive(Debug, Clone)]
pub struct RefineOptions {
    /// How many statements there may be; 5 by default.
    pub max_iterations: NonZeroU32,
    /// How the model is to answer; [`repeatable`] by default.
    pub chat: ChatOptions,
}

impl Default for RefineOptions {
    fn default() -> Self {
        const CAP: NonZeroU32 = NonZeroU32::new(5).expect("not zero");
        Self { max_iterations: CAP, chat: repeatable() }
    }
}

/// The loop `refine`: a writer that turns a question into a statement, with a fresh context each time, until
/// [`explain`] lets the statement through. The last answer is in the state as `answer` too.
///
/// The writer is told the tables' names and not their columns, as if there were hundreds. It guesses, and learns from
/// the feedback.
pub fn refine(model: Arc<dyn ChatClient>, database: &Arc<Database>, options: RefineOptions) -> LoopAgent {
    let RefineOptions { max_iterations, chat } = options;
    let options = LoopOptions { max_iterations, context: ContextMode::Fresh, ..LoopOptions::default() };
    let explain = CheckEvaluator::new(explain(database.clone()));
    LoopAgent::new("refine", writer(model, database, chat), options).evaluator(explain)
}

fn writer(model: Arc<dyn ChatClient>, database: &Database, chat: ChatOptions) -> ChatAgent {
    let tables: Vec<&str> = database.table_names().collect();
    let instructions = format!(
        "You write SQLite. The database of a ferry line has the tables {}. \
         Answer with one SELECT statement in a ```sql block and nothing else.",
        tables.join(", ")
    );
    ChatAgent::new(
        "writer",
        model,
        ChatAgentOptions {
            instructions: instructions.into(),
            output_key: Some("answer".into()),
            chat,
            ..ChatAgentOptions::default()
        },
    )
}

/// Whether the answer's statement may be run, as [`check`] says: a check for an eval set that drives a loop as well.
///
/// It compiles the statement and runs nothing, which is done in less than a millisecond unless the statement is made to
/// take long; so it stays on its thread.
pub fn explain(database: Arc<Database>) -> impl Check {
    check_fn("explain", move |cx| match check(&database, cx.answer) {
        Ok(checked) => checked.feedback.map_or_else(Outcome::pass, Outcome::fail),
        Err(error) => Outcome::error(format!("{error:#}")),
    })
}
