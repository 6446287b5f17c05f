use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use agent_core::{
    Agent, AgentResponse, ChatMessage, Delta, Draft, Error, ErrorKind, Event, Limits, MemoryStore, ParallelAgent,
    Result, Role, RunContext, Runner, SequentialAgent, Session, SessionStore, StopReason, Stored, Update, Updates,
    agent_fn, agent_tool,
    testing::{RecordingStore, ScriptedAgent, ScriptedClient},
};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{Log, agent, answer, asks, call, collect, guarded, limited, noted, replies, set, told};

fn says(text: &str) -> Draft {
    Draft::message(ChatMessage::assistant(text))
}

fn go() -> ChatMessage {
    "go".into()
}

/// Runs to the end.
async fn fold(run: Updates<'_>) -> AgentResponse {
    AgentResponse::collect(run).await.unwrap()
}

/// A store that notes its appends and fails at one of them.
#[derive(Clone, Default)]
struct NotingStore {
    inner: MemoryStore,
    log: Log,
    appends: Arc<AtomicUsize>,
    fails_at: Option<usize>,
}

#[async_trait]
impl SessionStore for NotingStore {
    async fn load(&self, id: &str) -> Result<Stored> {
        self.inner.load(id).await
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        tokio::task::yield_now().await;
        if self.fails_at == Some(self.appends.fetch_add(1, SeqCst)) {
            return Err(Error::new(ErrorKind::Store, "the disk is full"));
        }
        let said = events.iter().flat_map(|event| &event.messages).map(ChatMessage::text);
        self.log.note(format!("stored {}", said.collect::<Vec<_>>().join(" ")));
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

/// An agent that notes what it does: a delta, then two steps.
fn stepper(log: &Log) -> impl Agent + use<> {
    let log = log.clone();
    agent_fn("a", move |session, out| {
        let log = log.clone();
        async move {
            log.note("begins");
            out.delta(Delta::Text("d".into())).await;
            for step in ["one", "two"] {
                out.record(session, says(step)).await;
                log.note(format!("goes on after {step}"));
            }
            Ok(StopReason::Completed)
        }
        .boxed()
    })
}

#[tokio::test]
async fn each_event_is_stored_then_shown_and_then_the_agent_goes_on() {
    let store = NotingStore::default();
    let log = store.log.clone();
    let mut run = Runner::new(stepper(&log), store).run("s", go(), RunContext::default());
    tokio::task::yield_now().await;
    assert_eq!(log.all().len(), 0, "nothing happens before the first poll");
    while let Some(update) = run.next().await {
        log.note(match update.unwrap() {
            Update::Delta(_) => "shown a delta".to_owned(),
            Update::Event(event) => format!("shown {}", event.messages[0].text()),
            Update::Done(stop) => stop.to_string(),
        });
        tokio::task::yield_now().await;
    }
    insta::assert_snapshot!(log.all().join("\n"), @"
    stored go
    begins
    shown a delta
    stored one
    shown one
    goes on after one
    stored two
    shown two
    goes on after two
    completed
    ");
}

#[tokio::test]
async fn a_failed_append_ends_the_run_and_the_agent_is_not_polled_again() {
    for fails_at in 0..3 {
        let store = NotingStore { fails_at: Some(fails_at), ..NotingStore::default() };
        let log = Log::default();
        let mut came = collect(Runner::new(stepper(&log), store.clone()).run("s", go(), RunContext::default())).await;
        let error = came.pop().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Store, "the disk is full"));
        let went_on = log.all().iter().filter(|entry| entry.starts_with("goes on")).count();
        assert_eq!(went_on, fails_at.saturating_sub(1), "{:?}", log.all());
        let shown: Vec<Event> =
            came.into_iter().filter_map(|u| if let Update::Event(e) = u.unwrap() { Some(e) } else { None }).collect();
        let stored = store.events("s", 0).await.unwrap();
        assert_eq!((stored.len(), &stored[stored.len().min(1)..]), (fails_at, &shown[..]), "what was seen is stored");
    }
}

#[tokio::test]
async fn another_writer_is_detected() {
    let store = MemoryStore::new();
    let runner = Runner::new(stepper(&Log::default()), store.clone());
    let mut run = runner.run("s", go(), RunContext::default());
    run.next().await.unwrap().unwrap();
    store.append("s", 1, &[crate::support::event("other", vec![], vec![])]).await.unwrap();
    let error = run.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(run.next().await.is_none());
    assert_eq!(store.load("s").await.unwrap().version, 2);
}

#[tokio::test]
async fn the_callers_words_are_stored_first_and_not_shown() {
    let store = RecordingStore::new();
    let runner = Runner::new(ScriptedAgent::new("a").says("hi").says("more"), store.clone());
    let cx = RunContext::default();
    let response = fold(runner.run("s", ChatMessage::user("hello"), cx.clone())).await;
    let stored = store.appended();
    assert_eq!((stored.len(), &stored[1..]), (2, &response.events[..]));
    let caller = &stored[0];
    assert_eq!((&*caller.author, &caller.messages[..], caller.run), (Event::CALLER, &["hello".into()][..], cx.id()));
    assert!(caller.id < stored[1].id, "ids rise");
    fold(runner.run("s", None, RunContext::default())).await;
    assert_eq!(store.appended().len(), 3, "nothing said, nothing stored");
}

#[tokio::test]
async fn replaying_the_stored_events_gives_the_session() {
    let log = Log::default();
    let store = RecordingStore::new();
    let client = replies([
        asks([call("c1", "look"), call("c2", "del")]),
        ChatMessage::assistant("ok"),
        ChatMessage::assistant("again"),
    ]);
    let runner = Runner::new(agent("a", &client).tool(noted("look", &log)).tool(guarded("del", &log)), store.clone());
    fold(runner.run("s", go(), RunContext::default())).await;
    fold(runner.run("s", ChatMessage::approve("c2"), RunContext::default())).await;
    fold(runner.run("s", ChatMessage::user("again"), RunContext::default())).await;
    let mut replayed = Session::new();
    store.appended().iter().for_each(|event| replayed.apply(event));
    let stored = store.load("s").await.unwrap();
    assert_eq!(stored, Stored { session: replayed, version: store.appended().len() as u64 });
    assert_eq!((stored.session.turn().number, log.all().len()), (1, 2));
}

#[tokio::test]
async fn temporary_keys_are_seen_during_the_run_and_not_stored() {
    let agent = agent_fn("a", |session, out| {
        async move {
            let before: Option<u32> = session.get("temp:n");
            out.record(session, Draft::state("temp:n", 1).set("n", 1).append("temp:l", 2)).await;
            out.record(session, Draft::state("temp:only", 1)).await;
            let (n, l): (Option<u32>, Option<Vec<u32>>) = (session.get("temp:n"), session.get("temp:l"));
            out.record(session, says(&format!("{before:?} {n:?} {l:?}")).remove("temp:n")).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let store = RecordingStore::new();
    let runner = Runner::new(agent, store.clone());
    for _ in 0..2 {
        let response = fold(runner.run("s", go(), RunContext::default())).await;
        assert_eq!(response.text(), "None Some(1) Some([2])");
        assert_eq!(response.events[0].state.len(), 3, "the caller sees them");
        assert_eq!(json!(store.load("s").await.unwrap().session.state()), json!({"n": 1}));
    }
    let changes: Vec<_> = store.appended().into_iter().flat_map(|event| event.state).collect();
    assert_eq!(changes, [set("n", 1), set("n", 1)]);
}

/// An agent that says so when it begins, and waits to be let go.
fn waiter(log: &Log, go_on: &Arc<Notify>) -> impl Agent + use<> {
    let (log, go_on) = (log.clone(), go_on.clone());
    agent_fn("a", move |session, out| {
        let (log, go_on) = (log.clone(), go_on.clone());
        async move {
            let words = session.pending().last().map(ChatMessage::text).unwrap_or_default();
            log.note(format!("begins {words}"));
            go_on.notified().await;
            out.record(session, says("done")).await;
            log.note(format!("ends {words}"));
            Ok(StopReason::Completed)
        }
        .boxed()
    })
}

#[tokio::test(start_paused = true)]
async fn a_session_has_one_run_at_a_time_and_others_wait_in_order() {
    let (log, go_on) = (Log::default(), Arc::new(Notify::new()));
    let runner = Runner::new(waiter(&log, &go_on), MemoryStore::new());
    let start = |id: &str, words: &str| {
        let run = runner.clone().run(id, ChatMessage::user(words), RunContext::default());
        tokio::spawn(AgentResponse::collect(run))
    };
    let mut tasks = vec![];
    for (id, words) in [("s", "1"), ("s", "2"), ("t", "other"), ("s", "3")] {
        tasks.push(start(id, words));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(log.all(), ["begins 1", "begins other"]);
    for _ in 0..4 {
        go_on.notify_waiters();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().stop, StopReason::Completed);
    }
    let of_s: Vec<String> = log.all().into_iter().filter(|entry| !entry.contains("other")).collect();
    assert_eq!(of_s, ["begins 1", "ends 1", "begins 2", "ends 2", "begins 3", "ends 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_can_be_cancelled_and_stores_nothing() {
    let (log, go_on) = (Log::default(), Arc::new(Notify::new()));
    let store = RecordingStore::new();
    let runner = Runner::new(waiter(&log, &go_on), store.clone());
    let mut first = runner.run("s", ChatMessage::user("1"), RunContext::default());
    assert!(first.next().now_or_never().is_none());
    let cancelled = RunContext::default();
    let timed = limited(Limits { wall: Some(Duration::from_secs(3)), ..Limits::default() });
    let second = runner.run("s", ChatMessage::user("2"), cancelled.clone());
    let third = runner.run("s", ChatMessage::user("3"), timed);
    let (second, third, ()) = tokio::join!(fold(second), fold(third), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancelled.cancel().cancel();
    });
    assert_eq!((second.stop, third.stop), (StopReason::Cancelled, StopReason::BudgetExhausted));
    assert_eq!(store.appended().len(), 1, "only the first caller's words");
    go_on.notify_one();
    assert_eq!(fold(first).await.stop, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_frees_the_session() {
    let (log, go_on) = (Log::default(), Arc::new(Notify::new()));
    let runner = Runner::new(waiter(&log, &go_on), MemoryStore::new());
    let mut first = runner.run("s", ChatMessage::user("1"), RunContext::default());
    assert!(first.next().now_or_never().is_none());
    let mut waits = runner.run("s", ChatMessage::user("dropped while it waits"), RunContext::default());
    assert!(waits.next().now_or_never().is_none());
    drop(waits);
    let second = tokio::spawn(AgentResponse::collect(runner.run("s", ChatMessage::user("2"), RunContext::default())));
    tokio::time::sleep(Duration::from_millis(1)).await;
    drop(first);
    tokio::time::sleep(Duration::from_millis(1)).await;
    go_on.notify_one();
    let response = tokio::time::timeout(Duration::from_secs(5), second).await.expect("the session is free");
    assert_eq!(response.unwrap().unwrap().stop, StopReason::Completed);
    assert_eq!(log.all(), ["begins 1", "begins 2", "ends 2"]);
}

#[tokio::test]
async fn a_run_that_was_read_to_its_end_frees_the_session_though_the_stream_is_kept() {
    let runner = Runner::new(ScriptedAgent::new("a").says("1").says("2"), MemoryStore::new());
    let mut first = runner.run("s", go(), RunContext::default());
    while !matches!(first.next().await.unwrap().unwrap(), Update::Done(_)) {}
    let second = tokio::time::timeout(Duration::from_secs(5), fold(runner.run("s", go(), RunContext::default())));
    assert_eq!(second.await.expect("the session is free").text(), "2");
    drop(first);
}

#[tokio::test]
async fn answers_are_checked_before_anything_is_stored() {
    let log = Log::default();
    let client = replies([asks([call("c1", "del"), call("c2", "del")]), ChatMessage::assistant("ok")]);
    let store = RecordingStore::new();
    let runner = Runner::new(agent("a", &client).tool(guarded("del", &log)), store.clone());
    fold(runner.run("s", go(), RunContext::default())).await;
    let stored = store.appended().len();
    let both = ChatMessage::new(Role::User, [answer("c1", true), answer("c1", false)]);
    let mut errors = vec![];
    for refused in [ChatMessage::approve("c9"), both, ChatMessage::reject("", "no id")] {
        let mut came = collect(runner.run("s", refused, RunContext::default())).await;
        assert_eq!(came.len(), 1);
        errors.push(told(&came.pop().unwrap().unwrap_err()));
        assert_eq!((store.appended().len(), log.all().len()), (stored, 0));
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    Invalid: answer to `c9`, which fits no open approval request; waiting for one answer each: `c1`, `c2`
    Invalid: answer to `c1`, which fits no open approval request; waiting for one answer each: `c2`
    Invalid: answer to ``, which fits no open approval request; waiting for one answer each: `c1`, `c2`
    ");
    let response = fold(runner.run("s", ChatMessage::approve("c1"), RunContext::default())).await;
    assert_eq!((response.stop, log.all().len()), (StopReason::AwaitingApproval, 1));
    let twice = collect(runner.run("s", ChatMessage::approve("c1"), RunContext::default())).await.pop().unwrap();
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Invalid);
    let response = fold(runner.run("s", ChatMessage::reject("c2", "no"), RunContext::default())).await;
    assert_eq!((response.text().as_str(), log.all().len()), ("ok", 1));
}

#[tokio::test]
async fn all_events_of_a_run_have_its_id() {
    let tool_agent = ScriptedAgent::new("helper").says("helped");
    let client = ScriptedClient::new().calls("c1", "helper", json!({"request": "r"})).says("ok");
    let chat = agent("chat", &client).tool(agent_tool(tool_agent));
    let both =
        ParallelAgent::new("p").branch(ScriptedAgent::new("x").says("x")).branch(ScriptedAgent::new("y").says("y"));
    let store = RecordingStore::new();
    let runner = Runner::new(SequentialAgent::new("s").then(chat).then(both), store.clone());
    let cx = RunContext::default();
    fold(runner.run("s", go(), cx.clone())).await;
    let events = store.appended();
    assert!(events.len() > 6);
    assert!(events.iter().all(|event| event.run == cx.id()));
    assert!(events.is_sorted_by(|a, b| a.id < b.id), "ids rise");
}

#[tokio::test]
async fn a_malformed_agent_is_a_contract_error() {
    struct Silent(agent_core::AgentInfo);
    impl Agent for Silent {
        fn info(&self) -> &agent_core::AgentInfo {
            &self.0
        }
        fn run<'a>(&'a self, _: &'a mut Session, _: &'a RunContext) -> Updates<'a> {
            futures::stream::empty().boxed()
        }
    }
    let runner = Runner::new(Silent(agent_core::AgentInfo::named("a")), MemoryStore::new());
    let error = collect(runner.run("s", go(), RunContext::default())).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contract);
}

#[tokio::test]
async fn a_run_can_be_taken_up_by_another_runner_on_the_same_store() {
    let log = Log::default();
    let store = MemoryStore::new();
    let runner = |client: &ScriptedClient| Runner::new(agent("a", client).tool(guarded("del", &log)), store.clone());
    fold(runner(&replies([asks([call("c1", "del")])])).run("s", go(), RunContext::default())).await;
    let later = runner(&replies([ChatMessage::assistant("ok")]));
    let response = fold(later.run("s", ChatMessage::approve("c1"), RunContext::default())).await;
    assert_eq!((response.text().as_str(), log.all().len()), ("ok", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_on_few_sessions_never_conflict() {
    let agent = agent_fn("a", |session, out| {
        async move {
            let n: u32 = session.get("n").unwrap_or_default();
            tokio::task::yield_now().await;
            out.record(session, Draft::state("n", n + 1)).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let store = MemoryStore::new();
    let runner = Runner::new(agent, store.clone());
    let tasks: Vec<_> = (0..200)
        .map(|i| tokio::spawn(AgentResponse::collect(runner.run(format!("s{}", i % 3), None, RunContext::default()))))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut counted = vec![];
    for id in ["s0", "s1", "s2"] {
        counted.push(store.load(id).await.unwrap().session.get::<u32>("n").unwrap());
    }
    assert_eq!(counted, [67, 67, 66]);
}
