use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Event,
    ParallelAgent, Result, Role, RunContext, Runner, SequentialAgent, Session, SessionStore, StopReason, Update,
    exit_loop,
    testing::{PairingClient, RecordingStore, assert_laws},
};
use futures::{StreamExt, stream, stream::BoxStream};
use proptest::{collection::vec, option, prelude::*};
use serde_json::json;

use crate::support::{
    FnClient, Log, asks, block_on, guarded, invalid_call, noted, session, text, thought, tokens, tool_call,
};

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
    vec(vec((part, 0..2u8), 0..4), 1..8)
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act =
        (any::<bool>(), vec(any::<bool>(), 0..3), option::weighted(0.4, 0..8usize), option::weighted(0.3, 0..8usize));
    vec(act.prop_map(|(words, answers, cut, cancel)| Act { words, answers, cut, cancel }), 1..8)
}

/// A model that gives these answers in turn, over and over. Ids are few, so that they are reused; each call has a
/// number of its own.
fn client(script: Vec<Vec<(Part, u8)>>, numbers: &Arc<AtomicUsize>) -> impl ChatClient + use<> {
    let (at, numbers) = (AtomicUsize::new(0), numbers.clone());
    let stream = move |_: ChatRequest| -> BoxStream<'static, Result<ChatUpdate>> {
        let at = at.fetch_add(1, SeqCst);
        let parts = script[at % script.len()].iter().map(|(part, id)| {
            let id = format!("c{id}");
            let arguments = json!({"n": numbers.fetch_add(1, SeqCst)});
            let call = |name| Content::ToolCall(tool_call(&id, name, arguments));
            match part {
                Part::Text => text("words"),
                Part::Thought => thought("hm"),
                Part::Look => call("look"),
                Part::Delete => call("del"),
                Part::Exit => call("exit_loop"),
                Part::Unknown => call("unknown"),
                Part::Invalid => invalid_call(&id, "look"),
            }
        });
        let response =
            ChatResponse { message: asks(parts), usage: tokens(1, 1), stop: StopReason::Completed, model: "m".into() };
        stream::iter([Ok(ChatUpdate::Done(response))]).boxed()
    };
    PairingClient::new(FnClient(stream))
}

fn scripted(name: &str, script: Vec<Vec<(Part, u8)>>, log: &Log, numbers: &Arc<AtomicUsize>) -> ChatAgent {
    let options = ChatAgentOptions { max_turns: 4.try_into().unwrap(), ..ChatAgentOptions::default() };
    ChatAgent::new(name, client(script, numbers), options)
        .tool(noted("look", log))
        .tool(guarded("del", log))
        .tool(exit_loop())
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

/// The calls that this message approves, as the log names them, if it answers what waits in order.
fn approved(message: &ChatMessage, session: &Session) -> Vec<String> {
    let answers = message.contents.iter().filter_map(|content| match content {
        Content::ApprovalResponse { approved, .. } => Some(*approved),
        _ => None,
    });
    let asked = session.open_approvals().into_iter().zip(answers);
    asked.filter(|(_, yes)| *yes).map(|(call, _)| format!("{} {}", call.name, call.arguments)).collect()
}

/// Lets all that happen to an agent, and checks what must hold whatever happens. Its models refuse unpaired calls, so
/// a run that fails is a broken law, too.
async fn exercise(agent: &dyn Agent, log: &Log, acts: &[Act]) {
    let mut session = session("go");
    let mut allowed = BTreeSet::new();
    for act in acts {
        if let Some(message) = message(act, &session) {
            allowed.extend(approved(&message, &session));
            session.push(message);
        }
        let cx = RunContext::default();
        let snapshot = session.clone();
        let before = serde_json::to_value(&snapshot).unwrap();
        let (mut folded, mut ended, mut when_cancelled) = (session.clone(), false, None);
        let mut run = agent.run(&mut session, &cx);
        for at in 0.. {
            if act.cancel == Some(at) {
                cx.cancel().cancel();
                when_cancelled = Some((cx.spent().model_calls, log.all()));
            }
            if act.cut == Some(at) {
                break;
            }
            let Some(update) = run.next().await else { break };
            assert!(!ended, "an update after the end");
            match update.unwrap() {
                Update::Delta(_) => (),
                Update::Event(event) => folded.apply(&event),
                Update::Done(_) => ended = true,
            }
        }
        drop(run);
        assert!(ended || act.cut.is_some(), "the run stopped without saying how it ended");
        assert_eq!(session, folded, "the session is not the fold of its events");
        assert_eq!(serde_json::to_value(&snapshot).unwrap(), before, "a snapshot changed");
        if let Some(before) = when_cancelled {
            assert_eq!((cx.spent().model_calls, log.all()), before, "a model was asked or a tool run after all");
        }
    }
    // However it stands, new words are answered, or a question is asked.
    session.push("and now?");
    assert_laws(agent, &mut session, &RunContext::default()).await;
    let ran = log.all();
    let deleted: Vec<_> = ran.iter().filter(|entry| entry.starts_with("del")).collect();
    assert!(deleted.iter().all(|entry| allowed.contains(*entry)), "{deleted:?} ran, {allowed:?} were approved");
    // No cut comes between what these tools do and its record.
    assert_eq!(ran.iter().collect::<BTreeSet<_>>().len(), ran.len(), "each call runs once: {ran:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_happens_to_a_run_the_session_is_sound(script in answers(), acts in acts()) {
        let log = Log::default();
        block_on(exercise(&scripted("a", script, &log, &Arc::default()), &log, &acts));
    }

    #[test]
    fn whatever_happens_to_branches_that_use_the_same_ids_the_session_is_sound(
        a in answers(), b in answers(), acts in acts()
    ) {
        let (log, numbers) = (Log::default(), Arc::default());
        let branch = |name, script| scripted(name, script, &log, &numbers);
        let parallel = ParallelAgent::new("p").branch(branch("a", a)).branch(branch("b", b));
        block_on(exercise(&parallel, &log, &acts));
    }

    #[test]
    fn whatever_happens_to_a_sequence_the_session_is_sound(a in answers(), b in answers(), acts in acts()) {
        let (log, numbers) = (Log::default(), Arc::default());
        let stage = |name, script| scripted(name, script, &log, &numbers);
        let sequence = SequentialAgent::new("s").then(stage("a", a)).finally(stage("z", b));
        block_on(exercise(&sequence, &log, &acts));
    }

    #[test]
    fn a_stored_session_is_the_replay_of_its_events_and_runs_as_one_in_memory(script in answers(), acts in acts()) {
        block_on(async {
            let (log, other) = (Log::default(), Log::default());
            let (store, agent) = (RecordingStore::new(), Arc::new(scripted("a", script.clone(), &log, &Arc::default())));
            let (runner, plain) = (Runner::new(agent, store.clone()), scripted("a", script, &other, &Arc::default()));
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
        Update::Event(event) => Update::Event(Event { id: uuid::Uuid::nil(), run: uuid::Uuid::nil(), ..event.clone() }),
        other => other.clone(),
    };
    updates.iter().map(strip).collect()
}
