//! A todo list in the session's state, tools to keep it, and an evaluator that wants it done.

mod list;
mod tools;

use agent_core::Result;
use async_trait::async_trait;

use self::list::Todos;
use crate::{LoopContext, LoopEvaluation, LoopEvaluator};

pub use tools::todo_tools;

/// How many open todos a feedback lists.
const LISTED: usize = 50;

/// `todos_done`: satisfied when every todo is complete; otherwise the open ones are the feedback. It goes with
/// [`todo_tools`], which the agent is given.
///
/// An open todo of an earlier request counts too. If there is none for this request and none open, nothing vouches for
/// the work, and the agent is asked to write its todos first; [`allow_none`](Self::allow_none) is satisfied then.
///
/// ```
/// use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Session, StopReason, testing::ScriptedClient};
/// use agent_loop::{LoopAgent, LoopOptions, TodosDone, todo_tools};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedClient::new()
///     .calls("1", "todo_add", json!({ "titles": ["boil water", "brew"] }))
///     .says("The water is hot.")
///     .calls("2", "todo_complete", json!({ "ids": [1, 2] }))
///     .says("Tea is ready.");
/// let butler = ChatAgent::new("butler", model, ChatAgentOptions::default());
/// let butler = todo_tools().into_iter().fold(butler, ChatAgent::tool);
/// let tea = LoopAgent::new("tea", butler, LoopOptions::default()).evaluator(TodosDone::new());
///
/// let response = tea.ask(&mut Session::new(), "Tea, please.").await?;
/// assert_eq!((response.stop, response.text()), (StopReason::Completed, "Tea is ready.".to_owned()));
/// # Ok::<_, agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TodosDone {
    allow_none: bool,
}

impl TodosDone {
    /// Wants todos, and all of them complete.
    pub fn new() -> Self {
        Self::default()
    }

    /// A request without todos is fine.
    pub fn allow_none(mut self) -> Self {
        self.allow_none = true;
        self
    }
}

#[async_trait]
impl LoopEvaluator for TodosDone {
    fn name(&self) -> &'static str {
        "todos_done"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let todos = Todos::of(cx.session)?;
        let turn = cx.session.turn().number;
        let open: Vec<String> = todos.open().map(|(id, todo)| format!("- {id}: {}\n", todo.title)).collect();
        Ok(if !open.is_empty() {
            LoopEvaluation::feedback(format!(
                "These todos are still open:\n\n{}{}\nDo them, and complete each with `todo_complete` once it is done.",
                open[..open.len().min(LISTED)].concat(),
                if open.len() > LISTED { format!("- and {} more\n", open.len() - LISTED) } else { String::new() }
            ))
        } else if self.allow_none || todos.any_of(turn) {
            LoopEvaluation::Satisfied
        } else {
            LoopEvaluation::feedback(
                "There are no todos for this request. Write down what it takes with `todo_add`, do it, and complete \
                 each todo with `todo_complete` once it is done.",
            )
        })
    }
}
