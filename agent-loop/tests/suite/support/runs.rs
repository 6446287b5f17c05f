use agent_core::{Agent, AgentExt, AgentResponse, Result, RunContext, Session, Update, Updates, testing::assert_laws};
use agent_loop::LoopOutcome;
use futures::StreamExt;

/// Runs to the end, with the laws of every run checked, in a context of its own.
pub(crate) async fn go(agent: &(impl Agent + ?Sized), session: &mut Session) -> AgentResponse {
    fold(assert_laws(agent, session, &RunContext::default()).await)
}

/// Runs to the end or to an error.
pub(crate) async fn try_go(agent: &(impl Agent + ?Sized), session: &mut Session) -> Result<AgentResponse> {
    agent.complete(session, &RunContext::default()).await
}

/// The response that these updates come to.
pub(crate) fn fold(updates: Vec<Update>) -> AgentResponse {
    let stop = match updates.last() {
        Some(Update::Done(stop)) => *stop,
        other => panic!("a run ended with {other:?}"),
    };
    let events: Vec<_> = updates
        .into_iter()
        .filter_map(|update| match update {
            Update::Event(event) => Some(event),
            Update::Delta(_) | Update::Done(_) => None,
        })
        .collect();
    let usage = events.iter().filter_map(|event| event.usage).sum();
    AgentResponse { events, usage, stop }
}

/// Takes so many updates of a run and drops it there, as a crash does: whether it had ended before.
pub(crate) async fn cut(mut run: Updates<'_>, after: usize) -> bool {
    for _ in 0..after {
        match run.next().await {
            Some(Ok(Update::Done(_))) => return true,
            Some(update) => drop(update.unwrap()),
            None => panic!("a run ended without `Done`"),
        }
    }
    false
}

/// The session as another process finds it.
pub(crate) fn reloaded(session: &Session) -> Session {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
}

pub(crate) fn outcome(session: &Session) -> LoopOutcome {
    LoopOutcome::of(session, "loop").unwrap()
}

/// For properties, which are no async functions: paused time, one thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(future)
}
