use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Event, Result,
    Role, RunContext, Runner, Session, SessionStore, StopReason, Update, exit_loop,
    testing::{PairingClient, RecordingStore, assert_laws},
};
use futures::{StreamExt, stream, stream::BoxStream};
use proptest::{collection::vec, option, prelude::*};

use crate::support::{FnClient, Log, asks, block_on, call, guarded, invalid_call, noted, text, thought, tokens};

/// One part of a model's answer.
#[derive(Debug, Clone, Copy)]
enum Part {
    Text,
    Thought,
    Look,
    Delete,
    Exit,
    Unknown,
    Invalid,
}

/// What the caller does before a run, and what befalls the run.
#[derive(Debug, Clone)]
struct Act {
    words: bool,
    /// Whether the first so many open approvals are answered, and how.
    answers: Vec<bool>,
    /// After how many updates the stream is dropped.
    cut: Option<usize>,
    /// After how many updates the run is cancelled.
    cancel: Option<usize>,
}

fn answers() -> impl Strategy<Value = Vec<Vec<(Part, u8)>>> {
    let part = prop_oneof![
        3 => Just(Part::Text),
        1 => Just(Part::Thought),
        4 => Just(Part::Look),
        4 => Just(Part::Delete),
        1 => Just(Part::Exit),
        1 => Just(Part::Unknown),
        1 => Just(Part::Invalid),
    ];
    vec(vec((part, 0..3u8), 0..4), 1..8)
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (any::<bool>(), vec(any::<bool>(), 0..3), option::weighted(0.4, 0..8usize), option::weighted(0.3, 0..8usize));
    vec(act.prop_map(|(words, answers, cut, cancel)| Act { words, answers, cut, cancel }), 1..8)
}

/// A model that gives these answers in turn, over and over. Ids are few, so that they are reused.
fn client(script: Vec<Vec<(Part, u8)>>) -> impl agent_core::ChatClient {
    let at = AtomicUsize::new(0);
    let stream = move |_: ChatRequest| -> BoxStream<'static, Result<ChatUpdate>> {
        let at = at.fetch_add(1, SeqCst);
        let parts = script[at % script.len()].iter().map(|(part, id)| {
            let id = format!("c{id}");
            match part {
                Part::Text => text("words"),
                Part::Thought => thought("hm"),
                Part::Look => call(&id, "look"),
                Part::Delete => call(&id, "del"),
                Part::Exit => call(&id, "exit_loop"),
                Part::Unknown => call(&id, "unknown"),
                Part::Invalid => invalid_call(&id, "look"),
            }
        });
        let response =
            ChatResponse { message: asks(parts), usage: tokens(1, 1), stop: StopReason::Completed, model: "m".into() };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    };
    PairingClient::new(FnClient(stream))
}

fn scripted(script: Vec<Vec<(Part, u8)>>, log: &Log) -> ChatAgent {
    let options = ChatAgentOptions { max_turns: 4.try_into().unwrap(), ..ChatAgentOptions::default() };
    ChatAgent::new("a", client(script), options).tool(noted("look", log)).tool(guarded("del", log)).tool(exit_loop())
}

/// What the caller says, given what waits for an answer.
fn message(act: &Act, session: &Session) -> Option<ChatMessage> {
    let open = session.open_approvals();
    let answers = open.iter().zip(&act.answers).map(|(call, approved)| Content::ApprovalResponse {
        call_id: call.id.clone(),
        approved: *approved,
        reason: None,
    });
    let words = act.words.then(|| text("go on"));
    let contents: Vec<Content> = answers.chain(words).collect();
    (!contents.is_empty()).then(|| ChatMessage::new(Role::User, contents))
}

/// How often the session says that `del` was approved.
fn approved(session: &Session) -> usize {
    let yes = |content: &Content| matches!(content, Content::ApprovalResponse { approved: true, .. });
    session.messages().iter().flat_map(|message| message.contents.iter()).filter(|content| yes(content)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_happens_to_a_run_the_session_is_sound(script in answers(), acts in acts()) {
        block_on(async {
            let log = Log::default();
            let agent = scripted(script, &log);
            let mut session = Session::new();
            session.push("go");
            for act in &acts {
                if let Some(message) = message(act, &session) {
                    session.push(message);
                }
                let cx = RunContext::default();
                let snapshot = session.clone();
                let before = serde_json::to_value(&snapshot).unwrap();
                let (mut folded, mut ended) = (session.clone(), false);
                let mut run = agent.run(&mut session, &cx);
                for at in 0.. {
                    if act.cancel == Some(at) {
                        cx.cancel().cancel();
                    }
                    if act.cut == Some(at) {
                        break;
                    }
                    let Some(update) = run.next().await else { break };
                    assert!(!ended, "an update after the end");
                    // The client refuses unpaired calls: an error here is one.
                    match update.unwrap() {
                        Update::Delta(_) => (),
                        Update::Event(event) => folded.apply(&event),
                        Update::Done(stop) => {
                            ended = true;
                            assert!(act.cancel.is_none_or(|after| after > at) || stop != StopReason::TurnLimit);
                        }
                    }
                }
                drop(run);
                assert!(ended || act.cut.is_some(), "the run stopped without saying how it ended");
                assert_eq!(session, folded, "the session is not the fold of its events");
                assert_eq!(serde_json::to_value(&snapshot).unwrap(), before, "a snapshot changed");
            }
            // However it stands, new words are answered, or a question is asked.
            session.push("and now?");
            let updates = assert_laws(&agent, &mut session, &RunContext::default()).await;
            assert!(matches!(updates.last(), Some(Update::Done(_))));
            let deletions = log.all().iter().filter(|entry| *entry == "del").count();
            assert!(deletions <= approved(&session), "{deletions} deletions");
        });
    }

    #[test]
    fn a_stored_session_is_the_replay_of_its_events_and_runs_as_one_in_memory(script in answers(), acts in acts()) {
        block_on(async {
            let (log, other) = (Log::default(), Log::default());
            let (store, agent) = (RecordingStore::new(), Arc::new(scripted(script.clone(), &log)));
            let (runner, plain) = (Runner::new(agent, store.clone()), scripted(script, &other));
            let mut session = Session::new();
            let ask = |act: &Act, session: &Session| message(act, session).unwrap_or_else(|| "go".into());
            for act in &acts {
                let said = ask(act, &session);
                session.push(said.clone());
                let (cx, also) = (RunContext::default(), RunContext::default());
                let mut stored: Vec<Update> = vec![];
                let mut run = runner.run("s", said, cx.clone());
                let mut memory = plain.run(&mut session, &also);
                let mut came: Vec<Update> = vec![];
                for at in 0.. {
                    if act.cut == Some(at) {
                        break;
                    }
                    let Some(update) = run.next().await else { break };
                    stored.push(update.unwrap());
                    came.push(memory.next().await.unwrap().unwrap());
                }
                drop((run, memory));
                assert_eq!(stripped(&stored), stripped(&came));
                let kept = store.load("s").await.unwrap().session;
                let mut replayed = Session::new();
                store.appended().iter().for_each(|event| replayed.apply(event));
                assert_eq!(kept, replayed);
                // An event is stored before it is shown, so the store may be one event ahead of what was pulled.
                session = kept.clone();
            }
            assert_eq!(log.all(), other.all());
        });
    }
}

/// The updates without what differs from run to run.
fn stripped(updates: &[Update]) -> Vec<Update> {
    let strip = |update: &Update| match update {
        Update::Event(event) => {
            Update::Event(Event { id: uuid::Uuid::nil(), run: uuid::Uuid::nil(), ..event.clone() })
        }
        other => other.clone(),
    };
    updates.iter().map(strip).collect()
}
