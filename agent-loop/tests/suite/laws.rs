//! The laws of every run, for loops around all kinds of agents, cut and taken up anywhere.
//!
//! 256 scripts each by default; `PROPTEST_CASES=10000 cargo test -p agent-loop laws` for more.

use agent_core::{
    AgentExt, AgentResponse, ChatMessage, Content, Event, MemoryStore, Role, RunContext, Runner, Session, SessionStore,
    ToolCall, testing::assert_laws,
};
use proptest::prelude::*;

use crate::support::{block_on, cut, fold, show};

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

fn reload(session: &Session) -> Session {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
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
        block_on(async {
            for at in 0.. {
                if taken_up(&shape, &answers, at).await? {
                    return Ok(());
                }
            }
            unreachable!()
        })
        .map_err(|error: TestCaseError| error)?;
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
                prop_assert_eq!(&reload(&session), &session);
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

/// Cuts the first run at this update and goes on to the end; whether the first run had ended before.
async fn taken_up(shape: &Shape, answers: &[Answer], at: usize) -> Result<bool, TestCaseError> {
    let agent = shape.agent();
    let mut answers = answers.iter().copied();
    let mut session = Session::new();
    session.push("go");
    let cx = RunContext::default();
    let ended = cut(agent_core::Agent::run(&agent, &mut session, &cx), at).await;
    for _ in 0..RUNS {
        session = reload(&session);
        let response = match agent.complete(&mut session, &RunContext::default()).await {
            Ok(response) => response,
            Err(error) => return Err(TestCaseError::fail(format!("cut at {at}: {error:?}\n{}", lines(&session)))),
        };
        if !response.stop.is_suspended() {
            prop_assert_eq!(unpaired(&session), (vec![], vec![]), "cut at {}:\n{}", at, lines(&session));
            return Ok(ended);
        }
        for message in answer(&session.open_approvals(), &mut answers) {
            session.push(message);
        }
    }
    Err(TestCaseError::fail(format!("cut at {at}: the loop does not end:\n{}", lines(&session))))
}
