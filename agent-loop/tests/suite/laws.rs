//! The laws of every run, for loops around all kinds of agents, cut and taken up anywhere.
//!
//! 256 scripts each by default; `PROPTEST_CASES=10000 cargo test -p agent-loop laws` for more.

use agent_core::{
    Agent, AgentExt, AgentResponse, ChatMessage, Content, Event, Limits, MemoryStore, Role, RunContext, Runner,
    Session, SessionStore, StopReason, ToolCall, Update, testing::assert_laws,
};
use futures::StreamExt;
use proptest::prelude::*;

use crate::support::{block_on, cut, fold, reloaded, show};

mod shapes;

use shapes::{Answer, Shape, answers, looped};

/// More runs than any script needs: each call that is asked about suspends one run at most.
const RUNS: usize = 200;

/// Answers what the session waits for, each call in its own way.
fn answer(open: &[ToolCall], answers: &mut impl Iterator<Item = Answer>) -> Vec<ChatMessage> {
    let mut said = Vec::new();
    for call in open {
        match answers.next().unwrap_or_default() {
            Answer::Approve => said.push(ChatMessage::approve(&call.id)),
            Answer::Reject => said.push(ChatMessage::reject(&call.id, "no")),
            Answer::LeaveOpen if open.len() > 1 => (),
            Answer::LeaveOpen | Answer::SpeakOn => said.push("rather this".into()),
            Answer::ApproveAndSpeakOn => said.extend([ChatMessage::approve(&call.id), "and this".into()]),
        }
    }
    if said.is_empty() { vec![ChatMessage::approve(&open[0].id)] } else { said }
}

fn approves(message: &ChatMessage) -> bool {
    message.contents.iter().any(|content| matches!(content, Content::ApprovalResponse { approved: true, .. }))
}

/// The ids of this turn's calls without a result, and of results without a call. A call from before may still be open:
/// its agent closes it when it runs again.
fn unpaired(session: &Session) -> (Vec<String>, Vec<String>) {
    let (mut open, mut orphans) = (Vec::new(), Vec::new());
    for (at, message) in session.messages().iter().enumerate() {
        for content in message.contents.iter() {
            match content {
                Content::ToolCall(ToolCall { id, .. }) | Content::InvalidToolCall { id, .. } => {
                    open.push((at, id.clone()));
                }
                Content::ToolResult(result) => match open.iter().position(|(_, id)| *id == result.call_id) {
                    Some(at) => drop(open.remove(at)),
                    None => orphans.push(result.call_id.clone()),
                },
                _ => (),
            }
        }
    }
    let start = session.turn().start;
    (open.into_iter().filter(|(at, _)| *at >= start).map(|(_, id)| id).collect(), orphans)
}

fn lines(session: &Session) -> String {
    session.messages().iter().map(show).collect::<Vec<_>>().join("\n")
}

/// The events without what differs from run to run: ids.
fn unstamped(response: &AgentResponse) -> AgentResponse {
    let plain = |event: &Event| Event { id: uuid::Uuid::nil(), run: uuid::Uuid::nil(), ..event.clone() };
    AgentResponse { events: response.events.iter().map(plain).collect(), ..response.clone() }
}

proptest! {
    /// The session is the fold of the events, one `Done` and last, ids rise, paths, snapshots; and a run that is
    /// folded is the run that was streamed. An approved call runs once at most.
    #[test]
    fn every_run_keeps_the_laws((shape, answers) in (looped(), answers())) {
        let (streaming, folding) = (shape.agent(), shape.agent());
        let mut answers = answers.into_iter();
        let (mut one, mut two) = (Session::new(), Session::new());
        let (mut words, mut approved) = (vec![ChatMessage::user("go")], 0);
        block_on(async {
            for _ in 0..RUNS {
                words.drain(..).for_each(|message| { one.push(message.clone()); two.push(message); });
                let streamed = fold(assert_laws(&streaming, &mut one, &RunContext::default()).await);
                let folded = folding.complete(&mut two, &RunContext::default()).await.unwrap();
                prop_assert_eq!(unstamped(&streamed), unstamped(&folded));
                prop_assert_eq!(&one, &two);
                if !streamed.stop.is_suspended() {
                    prop_assert_eq!(unpaired(&one), (vec![], vec![]), "{}", lines(&one));
                    let paid = one.get::<Vec<String>>("pay").unwrap_or_default();
                    prop_assert!(paid.len() <= approved, "an approved call ran again:\n{}", lines(&one));
                    return Ok(());
                }
                words = answer(&one.open_approvals(), &mut answers);
                approved += words.iter().filter(|message| approves(message)).count();
            }
            Err(TestCaseError::fail(format!("the loop does not end:\n{}", lines(&one))))
        })
        .map_err(|error: TestCaseError| error)?;
    }

    /// Dropped at every update and taken up elsewhere: the model accepts every request, and the loop ends.
    #[test]
    fn a_run_that_is_cut_anywhere_leaves_a_session_that_goes_on((shape, answers) in (looped(), answers())) {
        block_on(everywhere(&shape, &answers, Cut::Drop))?;
    }

    /// The same for a run that is cancelled at every update.
    #[test]
    fn a_run_that_is_cancelled_anywhere_leaves_a_session_that_goes_on((shape, answers) in (looped(), answers())) {
        block_on(everywhere(&shape, &answers, Cut::Cancel))?;
    }

    /// The same for a run whose model or tool calls are used up anywhere.
    #[test]
    fn a_run_that_is_out_of_calls_leaves_a_session_that_goes_on((shape, answers) in (looped(), answers())) {
        block_on(everywhere(&shape, &answers, Cut::ModelCalls))?;
        block_on(everywhere(&shape, &answers, Cut::ToolCalls))?;
    }

    /// What a store has is what its events come to, whatever was cut.
    #[test]
    fn stored_events_replay_to_the_stored_session(
        (shape, answers, cuts) in (looped(), answers(), prop::collection::vec(0..12_usize, 0..4))
    ) {
        let store = MemoryStore::new();
        let runner = Runner::new(shape.agent(), store.clone());
        let (mut answers, mut cuts) = (answers.into_iter(), cuts.into_iter());
        block_on(async {
            let mut words = Some(ChatMessage::user("go"));
            for _ in 0..RUNS {
                let message = words.take();
                let run = runner.run("s", message.clone(), RunContext::default());
                let stop = match cuts.next() {
                    Some(at) => {
                        cut(run, at).await;
                        words = message.filter(|_| at == 0); // not polled, not stored
                        None
                    }
                    None => Some(AgentResponse::collect(run).await.unwrap().stop),
                };
                let session = store.load("s").await.unwrap().session;
                let mut replayed = Session::new();
                store.events("s", 0).await.unwrap().iter().for_each(|event| replayed.apply(event));
                prop_assert_eq!(&session, &replayed);
                prop_assert_eq!(&reloaded(&session), &session);
                match stop {
                    Some(stop) if !stop.is_suspended() => return Ok(()),
                    Some(_) => {
                        let said = answer(&session.open_approvals(), &mut answers);
                        let contents = said.iter().flat_map(|message| message.contents.iter().cloned());
                        words = Some(ChatMessage::new(Role::User, contents));
                    }
                    None => (),
                }
            }
            Err(TestCaseError::fail("the loop does not end"))
        })
        .map_err(|error: TestCaseError| error)?;
    }
}

/// How a run is cut short.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Drop,
    Cancel,
    ModelCalls,
    ToolCalls,
}

/// Cuts the first run later and later, and each time goes on to the end, until there is nothing left to cut.
async fn everywhere(shape: &Shape, answers: &[Answer], how: Cut) -> Result<(), TestCaseError> {
    for at in 0.. {
        let agent = shape.agent();
        let mut session = Session::new();
        session.push("go");
        let whole = cut_short(&agent, &mut session, how, at).await;
        if let Err(wrong) = go_on(&agent, session, answers).await {
            return Err(TestCaseError::fail(format!("{how:?} at {at}: {wrong}")));
        }
        if whole {
            return Ok(());
        }
    }
    unreachable!()
}

/// Runs the agent and cuts it short there; whether the run was whole all the same.
async fn cut_short(agent: &dyn Agent, session: &mut Session, how: Cut, at: usize) -> bool {
    let calls = u32::try_from(at).ok();
    let limits = match how {
        Cut::Drop | Cut::Cancel => Limits::default(),
        Cut::ModelCalls => Limits { model_calls: calls, ..Limits::default() },
        Cut::ToolCalls => Limits { tool_calls: calls, ..Limits::default() },
    };
    let cx = RunContext::new(limits);
    match how {
        Cut::Drop => cut(agent.run(session, &cx), at).await,
        Cut::ModelCalls | Cut::ToolCalls => {
            agent.complete(session, &cx).await.unwrap().stop != StopReason::BudgetExhausted
        }
        Cut::Cancel => {
            let mut run = agent.run(session, &cx);
            for _ in 0..at {
                if let Some(Ok(Update::Done(_))) = run.next().await {
                    return true;
                }
            }
            cx.cancel().cancel();
            AgentResponse::collect(run).await.unwrap();
            false
        }
    }
}

/// Goes on to the end: what went wrong, if anything.
async fn go_on(agent: &dyn Agent, mut session: Session, answers: &[Answer]) -> Result<(), String> {
    let mut answers = answers.iter().copied();
    for _ in 0..RUNS {
        session = reloaded(&session);
        let run = agent.complete(&mut session, &RunContext::default()).await;
        let response = run.map_err(|error| format!("{error:?}\n{}", lines(&session)))?;
        if !response.stop.is_suspended() {
            let left = unpaired(&session);
            return if left == (vec![], vec![]) { Ok(()) } else { Err(format!("{left:?}\n{}", lines(&session))) };
        }
        for message in answer(&session.open_approvals(), &mut answers) {
            session.push(message);
        }
    }
    Err(format!("the loop does not end:\n{}", lines(&session)))
}
