//! What the caller says in a case, turn by turn.

use agent_core::{ChatMessage, Limits, Session};

use crate::{Budget, EvalCase, Input};

/// The session that a case begins with.
pub(super) fn session_of(case: &EvalCase) -> Session {
    case.state.iter().fold(Session::new(), |session, (key, value)| session.with_state(key.clone(), value))
}

/// What is said before each run of the agent; at least one turn.
pub(crate) fn turns_of(case: &EvalCase) -> Vec<Vec<ChatMessage>> {
    match &case.input {
        Input::Text(text) => vec![vec![ChatMessage::user(text)]],
        Input::Messages(messages) => vec![messages.clone()],
        Input::Turns(turns) => turns.iter().map(|turn| vec![ChatMessage::user(&turn.say)]).collect(),
    }
}

/// What a run may spend.
pub(super) fn limits_of(budget: Option<Budget>) -> Limits {
    let Budget { turns, tool_calls, tokens, wall_ms } = budget.unwrap_or_default();
    let wall = wall_ms.map(std::time::Duration::from_millis);
    let model_calls = turns.or(Limits::default().model_calls);
    Limits { model_calls, tool_calls, tokens, wall }
}
