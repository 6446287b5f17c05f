//! H: loops through a runner and a store.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use agent_core::{
    AgentResponse, ChatMessage, Delta, Draft, Error, ErrorKind, Event, MemoryStore, Result, RunContext, Runner,
    Session, SessionStore, StopReason, Stored, Update, agent_fn,
    testing::{RecordingStore, ScriptedClient},
};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOutcome, evaluate_fn};
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::json;

use crate::support::{Count, Log, acts, boom, cap, chat, cut, fold, fresh, gated, never, outcome, said, says, until};

async fn run(runner: &Runner, message: impl Into<Option<ChatMessage>>) -> Result<AgentResponse> {
    AgentResponse::collect(runner.run("s", message, RunContext::default())).await
}

fn replay(events: &[Event]) -> Session {
    let mut session = Session::new();
    for event in events {
        session.apply(event);
    }
    session
}

/// H1
#[tokio::test]
async fn an_event_is_stored_then_shown_then_the_loop_goes_on() {
    let log = Log::default();
    let (store, told) = (RecordingStore::new(), log.clone());
    let inner = agent_fn("w", move |session, out| {
        let told = told.clone();
        Box::pin(async move {
            out.delta(Delta::Text("s".into())).await;
            out.record(session, Draft::message(ChatMessage::assistant("said"))).await;
            told.add("resumed");
            Ok(StopReason::Completed)
        })
    });
    let runner = Runner::new(LoopAgent::new("loop", inner, cap(2)).evaluator(never()), store.clone());
    let mut run = runner.run("s", ChatMessage::user("go"), RunContext::default());
    let (mut shown, mut deltas) = (0, 0);
    while let Some(update) = run.next().await {
        match update.unwrap() {
            Update::Event(event) => {
                shown += 1;
                assert_eq!(store.appended().len(), shown + 1, "stored before shown, and nothing more; + the caller's");
                assert_eq!(*store.appended().last().unwrap(), event);
                if &*event.author == "w" {
                    assert_eq!(log.get().len(), event.path[0].iteration as usize - 1, "not resumed yet");
                }
            }
            Update::Delta(_) => deltas += 1,
            Update::Done(stop) => assert_eq!(stop, StopReason::IterationLimit),
        }
    }
    assert_eq!((shown, deltas, log.get().len()), (5, 2, 2));
}

/// A store whose n-th append (from 1) fails.
#[derive(Clone)]
struct Failing {
    inner: RecordingStore,
    left: Arc<AtomicU32>,
}

#[async_trait]
impl SessionStore for Failing {
    async fn load(&self, id: &str) -> Result<Stored> {
        self.inner.load(id).await
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        if self.left.fetch_sub(1, SeqCst) == 1 {
            return Err(Error::new(ErrorKind::Store, "append"));
        }
        self.inner.append(id, expected, events).await
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        self.inner.events(id, from).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.inner.list().await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.inner.delete(id).await
    }
}

/// H2: at each append of a loop; the next run goes on from what is stored.
#[tokio::test]
async fn a_failed_append_ends_the_run_and_what_was_shown_is_what_is_stored() {
    for options in [cap(3), fresh(3)] {
        for failing in 1..=8 {
            let store = Failing { inner: RecordingStore::new(), left: Arc::new(AtomicU32::new(failing)) };
            let (inner, runs) = says("w");
            let runner = Runner::new(LoopAgent::new("loop", inner, options).evaluator(until(3)), store.clone());
            let mut stream = runner.run("s", ChatMessage::user("go"), RunContext::default());
            let mut shown = Vec::new();
            let error = loop {
                match stream.next().await.unwrap() {
                    Ok(Update::Event(event)) => shown.push(event),
                    Ok(update) => panic!("append {failing}: {update:?}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Store);
            let ran = runs.get();
            assert!(stream.next().await.is_none());
            drop(stream);
            assert_eq!(runs.get(), ran);
            let stored: Vec<Event> = store.inner.appended().into_iter().filter(|e| &*e.author != "user").collect();
            assert_eq!(stored, shown, "append {failing}");
            let again = (failing == 1).then(|| ChatMessage::user("go"));
            assert_eq!(run(&runner, again).await.unwrap().stop, StopReason::Completed);
            assert_eq!(outcome(&store.load("s").await.unwrap().session).iterations.len(), 3);
        }
    }
}

/// H3
#[tokio::test]
async fn the_stored_events_replay_to_the_session() {
    for options in [cap(3), fresh(3)] {
        let store = MemoryStore::new();
        let client =
            ScriptedClient::new().says("1").calls("c", "pay", json!({})).says("2").says("3").says("4").says("5");
        let inner = chat("a", &client).tool(gated("pay").0);
        let runner = Runner::new(LoopAgent::new("loop", inner, options).evaluator(until(3)), store.clone());
        assert_eq!(run(&runner, ChatMessage::user("buy")).await.unwrap().stop, StopReason::AwaitingApproval);
        assert_eq!(run(&runner, ChatMessage::approve("c")).await.unwrap().stop, StopReason::Completed);
        let events = store.events("s", 0).await.unwrap();
        let session = store.load("s").await.unwrap().session;
        assert_eq!(replay(&events), session);
        let written: Vec<Event> =
            events.iter().map(|e| serde_json::from_str(&serde_json::to_string(e).unwrap()).unwrap()).collect();
        assert_eq!(replay(&written), session);
        assert!(LoopOutcome::of(&session, "loop").unwrap().passed());
    }
}

/// D3: a forged answer is not stored, and the session is as usable as before.
#[tokio::test]
async fn a_forged_answer_is_not_stored() {
    let store = RecordingStore::new();
    let client = ScriptedClient::new().calls("c", "pay", json!({})).says("paid");
    let (pay, paid) = gated("pay");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(pay), cap(3)).evaluator(until(1));
    let runner = Runner::new(agent, store.clone());
    run(&runner, ChatMessage::user("buy")).await.unwrap();
    let stored = store.appended();
    assert_eq!(run(&runner, ChatMessage::approve("x")).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!((store.appended(), paid.get()), (stored, 0));
    assert_eq!(run(&runner, ChatMessage::approve("c")).await.unwrap().stop, StopReason::Completed);
    assert_eq!(paid.get(), 1);
}

/// H4
#[tokio::test]
async fn a_second_run_of_a_session_waits_for_the_loop() {
    let store = MemoryStore::new();
    let agent = LoopAgent::new("loop", says("w").0, cap(2)).evaluator(until(2));
    let runner = Runner::new(agent, store.clone());
    let (one, two) = tokio::join!(run(&runner, ChatMessage::user("one")), run(&runner, ChatMessage::user("two")));
    assert_eq!((one.unwrap().stop, two.unwrap().stop), (StopReason::Completed, StopReason::Completed));
    let session = store.load("s").await.unwrap().session;
    assert_eq!(said(&session), ["user: one", "w: 1", "loop: f1", "w: 2", "user: two", "w: 3", "loop: f1", "w: 4"]);
}

/// H4
#[tokio::test]
async fn another_process_in_the_session_is_a_conflict() {
    let store = MemoryStore::new();
    let make = || Runner::new(LoopAgent::new("loop", says("w").0, cap(3)).evaluator(never()), store.clone());
    let (ours, theirs) = (make(), make());
    let mut slow = ours.run("s", ChatMessage::user("go"), RunContext::default());
    slow.next().await.unwrap().unwrap();
    assert_eq!(run(&theirs, None).await.unwrap().stop, StopReason::IterationLimit);
    let error = loop {
        match slow.next().await.unwrap() {
            Ok(update) => assert!(!matches!(update, Update::Done(_))),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

/// H5
#[tokio::test]
async fn temporary_keys_live_over_the_passes_of_a_run_and_no_longer() {
    let store = RecordingStore::new();
    let (inner, _) =
        acts("w", |run| (vec![Draft::state("temp:runs", run).set("runs", run)], Ok(StopReason::Completed)));
    let agent = LoopAgent::new("loop", inner, fresh(3)).evaluator(evaluate_fn("e", |cx| {
        assert_eq!(cx.session.get("temp:runs"), Some(cx.iteration));
        LoopEvaluation::feedback("f")
    }));
    let runner = Runner::new(agent, store.clone());
    let shown = run(&runner, ChatMessage::user("go")).await.unwrap();
    let temporary = |event: &Event| event.state.iter().any(|change| change.key().starts_with("temp:"));
    assert_eq!(shown.events.iter().filter(|event| temporary(event)).count(), 3);
    assert!(!store.appended().iter().any(temporary));
    let session = store.load("s").await.unwrap().session;
    assert_eq!((session.get::<u32>("runs"), session.state().contains_key("temp:runs")), (Some(3), false));
}

/// H6
#[tokio::test]
async fn all_events_of_a_run_carry_its_id() {
    let inner = LoopAgent::new("inner", says("w").0, cap(2)).evaluator(never());
    let store = RecordingStore::new();
    let runner = Runner::new(LoopAgent::new("loop", inner, cap(2)).evaluator(never()), store.clone());
    let cx = RunContext::default();
    let id = cx.id();
    AgentResponse::collect(runner.run("s", ChatMessage::user("go"), cx)).await.unwrap();
    assert!(store.appended().iter().all(|event| event.run == id));
    let ids: Vec<_> = store.appended().iter().map(|event| event.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

/// D6 through a store: a run that is dropped at any update goes on with `None`.
#[tokio::test]
async fn a_crash_at_any_update_goes_on_from_the_store() {
    for at in 0.. {
        let store = MemoryStore::new();
        let (inner, _) = says("w");
        let runner = Runner::new(LoopAgent::new("loop", inner, cap(3)).evaluator(until(3)), store.clone());
        if cut(runner.run("s", ChatMessage::user("go"), RunContext::default()), at).await {
            break;
        }
        let message = (at == 0).then(|| ChatMessage::user("go"));
        assert_eq!(run(&runner, message).await.unwrap().stop, StopReason::Completed, "cut at {at}");
        let session = store.load("s").await.unwrap().session;
        assert_eq!(outcome(&session).iterations.len(), 3, "cut at {at}");
        assert_eq!(replay(&store.events("s", 0).await.unwrap()), session);
    }
}

/// E4 through a store.
#[tokio::test]
async fn after_an_error_the_finished_iterations_are_stored() {
    let store = MemoryStore::new();
    let (inner, runs) = acts("w", |run| (vec![], if run == 2 { Err(boom()) } else { Ok(StopReason::Completed) }));
    let runner = Runner::new(LoopAgent::new("loop", inner, cap(3)).evaluator(never()), store.clone());
    assert_eq!(run(&runner, ChatMessage::user("go")).await.unwrap_err().to_string(), "boom");
    let stored = outcome(&store.load("s").await.unwrap().session);
    assert_eq!((stored.stop, stored.iterations.len()), (None, 1));
    assert_eq!(run(&runner, None).await.unwrap().stop, StopReason::IterationLimit);
    assert_eq!(runs.get(), 4);
}

/// A new request through a runner begins anew (C4), and its own words are said once (B1).
#[tokio::test]
async fn a_conversation_of_loops_goes_on() {
    let store = MemoryStore::new();
    let count = Count::default();
    let seen = count.clone();
    let agent = LoopAgent::new("loop", says("w").0, fresh(2)).evaluator(evaluate_fn("e", move |cx| {
        seen.up();
        assert_eq!(cx.request.len(), 1);
        if cx.is_last { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback("f") }
    }));
    let runner = Runner::new(agent, store.clone());
    for text in ["one", "two"] {
        let updates: Vec<Update> =
            runner.run("s", ChatMessage::user(text), RunContext::default()).map(Result::unwrap).collect().await;
        assert_eq!(fold(updates).stop, StopReason::Completed);
    }
    let session = store.load("s").await.unwrap().session;
    let note = "loop: ## Feedback\n\n- f";
    assert_eq!(said(&session), ["user: one", note, "w: 2", "user: two", note, "w: 4"]);
    assert_eq!(count.get(), 4);
}
