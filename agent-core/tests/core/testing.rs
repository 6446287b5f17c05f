use agent_core::{
    Agent, AgentExt, AgentInfo, ChatClient, ChatMessage, ChatRequest, ChatUpdate, Content, Draft, Error, ErrorKind,
    Event, LoopStep, Role, RunContext, Session, SessionStore, StopReason, Stored, Update, Updates, agent_fn,
    testing::{PairingClient, RecordingStore, ScriptedAgent, ScriptedClient, assert_laws},
    updates,
};
use futures::{FutureExt, StreamExt, stream};
use serde_json::json;
use uuid::Uuid;

use crate::support::{
    answer, asks, call, event, invalid_call, request, result, session, show, text, thought, tokens, told,
};

type Yields = Box<dyn Fn(&RunContext) -> Vec<Update> + Send + Sync>;

/// An agent that yields what it is told to, and applies the events that it is told to.
struct Raw {
    info: AgentInfo,
    yields: Yields,
    applies: bool,
}

impl Raw {
    fn new(yields: impl Fn(&RunContext) -> Vec<Update> + Send + Sync + 'static) -> Self {
        Self { info: AgentInfo::named("raw"), yields: Box::new(yields), applies: true }
    }
}

impl Agent for Raw {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        let yields = (self.yields)(cx);
        for update in &yields {
            if let Update::Event(event) = update
                && self.applies
            {
                session.apply(event);
            }
        }
        stream::iter(yields.into_iter().map(Ok)).boxed()
    }
}

fn stamped(cx: &RunContext) -> Event {
    Event { run: cx.id(), path: cx.path().clone(), ..event("raw", vec![ChatMessage::assistant("hi")], vec![]) }
}

fn done() -> Update {
    Update::Done(StopReason::Completed)
}

async fn laws(agent: &dyn Agent) {
    assert_laws(agent, &mut session("go"), &RunContext::default()).await;
}

#[tokio::test]
async fn a_lawful_run_is_returned_as_it_was() {
    let agent = Raw::new(|cx| vec![Update::Event(stamped(cx)), done()]);
    let mut session = session("go");
    let updates = assert_laws(&agent, &mut session, &RunContext::default()).await;
    assert_eq!((updates.len(), session.messages().len()), (2, 2));
}

#[tokio::test]
#[should_panic = "the session is not the fold of its events"]
async fn a_change_without_an_event_breaks_a_law() {
    laws(&agent_fn("a", |session, _| {
        session.push("behind your back");
        async { Ok(StopReason::Completed) }.boxed()
    }))
    .await;
}

#[tokio::test]
#[should_panic = "the session is not the fold of its events"]
async fn an_event_that_was_not_applied_breaks_a_law() {
    laws(&Raw { applies: false, ..Raw::new(|cx| vec![Update::Event(stamped(cx)), done()]) }).await;
}

#[tokio::test]
#[should_panic = "without saying how it ended"]
async fn a_run_without_an_end_breaks_a_law() {
    laws(&Raw::new(|cx| vec![Update::Event(stamped(cx))])).await;
}

#[tokio::test]
#[should_panic = "after the end"]
async fn a_second_end_breaks_a_law() {
    laws(&Raw::new(|_| vec![done(), done()])).await;
}

#[tokio::test]
#[should_panic = "after the end"]
async fn an_event_after_the_end_breaks_a_law() {
    laws(&Raw::new(|cx| vec![done(), Update::Event(stamped(cx))])).await;
}

#[tokio::test]
#[should_panic = "of another run"]
async fn an_event_of_another_run_breaks_a_law() {
    laws(&Raw::new(|cx| vec![Update::Event(Event { run: Uuid::now_v7(), ..stamped(cx) }), done()])).await;
}

#[tokio::test]
#[should_panic = "without an author"]
async fn an_event_without_an_author_breaks_a_law() {
    laws(&Raw::new(|cx| vec![Update::Event(Event { author: "".into(), ..stamped(cx) }), done()])).await;
}

#[tokio::test]
#[should_panic = "do not rise"]
async fn ids_that_do_not_rise_break_a_law() {
    laws(&Raw::new(|cx| {
        let (first, second) = (stamped(cx), stamped(cx));
        vec![Update::Event(second), Update::Event(first), done()]
    }))
    .await;
}

#[tokio::test]
#[should_panic = "do not rise"]
async fn one_event_twice_breaks_a_law() {
    laws(&Raw::new(|cx| {
        let event = stamped(cx);
        vec![Update::Event(event.clone()), Update::Event(event), done()]
    }))
    .await;
}

#[tokio::test]
#[should_panic = "an event from outside"]
async fn an_event_from_outside_of_the_loop_breaks_a_law() {
    let agent = Raw::new(|cx| vec![Update::Event(Event { path: [].into(), ..stamped(cx) }), done()]);
    let cx = RunContext::default().enter(LoopStep { name: "loop".into(), iteration: 1 });
    assert_laws(&agent, &mut session("go"), &cx).await;
}

#[tokio::test]
#[should_panic = "the run failed after 0 updates"]
async fn a_failed_run_keeps_no_laws() {
    laws(&agent_fn("a", |_, _| async { Err(Error::new(ErrorKind::Store, "broken")) }.boxed())).await;
}

#[tokio::test]
async fn a_scripted_agent_does_a_step_of_its_script_in_each_run() {
    let draft = Draft::message(ChatMessage::assistant("x")).set("k", 1);
    let agent = ScriptedAgent::new("a").says("hi").escalates().turn(draft, StopReason::Length);
    let clone = agent.clone();
    let mut session = session("go");
    let cx = RunContext::default();
    let mut stops = vec![];
    for events in [1, 1, 1] {
        let response = clone.complete(&mut session, &cx).await.unwrap();
        assert_eq!(response.events.len(), events);
        stops.push((response.text(), response.events[0].escalate, response.stop));
    }
    assert_eq!(
        stops,
        [
            ("hi".to_owned(), false, StopReason::Completed),
            (String::new(), true, StopReason::Escalated),
            ("x".to_owned(), false, StopReason::Length),
        ]
    );
    insta::assert_snapshot!(told(&agent.complete(&mut session, &cx).await.unwrap_err()), @"Contract: run `a` once more: its script has no more steps");
    assert_eq!((agent.runs(), clone.runs(), session.messages().len()), (4, 4, 3));
}

#[tokio::test]
async fn a_scripted_model_answers_from_its_script_and_keeps_the_requests() {
    let client = ScriptedClient::new()
        .says("one two")
        .calls("c1", "look", json!({"a": 1}))
        .reply(ChatMessage::assistant("x"), tokens(1, 2));
    let ask = |words: &str| ChatRequest { messages: [ChatMessage::user(words)].into(), ..ChatRequest::default() };
    let mut answers = vec![];
    for words in ["1", "2", "3"] {
        let updates: Vec<_> = client.clone().stream(ask(words)).map(|update| update.unwrap()).collect().await;
        let Some(ChatUpdate::Done(response)) = updates.last() else { panic!("no end") };
        answers.push(format!("{} {:?} {}", show([&response.message]), response.usage.total(), updates.len()));
        assert_eq!(response.stop, StopReason::Completed);
    }
    insta::assert_snapshot!(answers.join("\n"), @r#"
    assistant: one two 0 3
    assistant: call c1 look {"a":1} 0 1
    assistant: x 3 2
    "#);
    let past = client.stream(ask("4")).next().await.unwrap().unwrap_err();
    insta::assert_snapshot!(told(&past), @"Contract: answer request 4: the script has no more answers");
    assert_eq!(client.requests(), ["1", "2", "3", "4"].map(ask));
}

/// What the client says to this conversation.
async fn refused(messages: Vec<ChatMessage>) -> String {
    let inner = ScriptedClient::new().says("ok");
    let client = PairingClient::new(inner.clone());
    let request = ChatRequest { messages: messages.into(), ..ChatRequest::default() };
    let updates: Vec<_> = client.stream(request).collect().await;
    match updates.into_iter().next_back().unwrap() {
        Ok(ChatUpdate::Done(_)) => "accepted".to_owned(),
        Ok(other) => panic!("no end: {other:?}"),
        Err(error) => {
            assert_eq!(inner.requests().len(), 0, "the inner client was asked");
            told(&error)
        }
    }
}

#[tokio::test]
async fn a_pairing_client_refuses_what_strict_services_refuse() {
    let user = || ChatMessage::user("go");
    let called = || asks([call("c1", "t")]);
    let parts = |role, contents: Vec<Content>| ChatMessage::new(role, contents);
    let table = vec![
        ("a plain request", vec![user()]),
        ("a conversation", vec![ChatMessage::system("s"), user(), ChatMessage::assistant("a"), user()]),
        ("a call with its result", vec![user(), called(), result("c1", "r")]),
        (
            "two calls, results in any order",
            vec![user(), asks([call("c1", "t"), call("c2", "t")]), result("c2", "r"), result("c1", "r"), user()],
        ),
        ("an id used again", vec![user(), called(), result("c1", "r"), called(), result("c1", "r")]),
        (
            "one id twice in an answer",
            vec![user(), asks([call("c1", "t"), call("c1", "t")]), result("c1", "r"), result("c1", "r")],
        ),
        ("thoughts", vec![user(), asks([thought("hm")]), user()]),
        ("nothing", vec![]),
        ("a call without a result", vec![user(), called()]),
        ("one result of two", vec![user(), asks([call("c1", "t"), call("c2", "t")]), result("c1", "r")]),
        ("words between call and result", vec![user(), called(), user(), result("c1", "r")]),
        ("a result nobody asked for", vec![user(), result("c1", "r")]),
        ("a result twice", vec![user(), called(), result("c1", "r"), result("c1", "r")]),
        ("a result of another id", vec![user(), called(), result("c2", "r")]),
        ("a result before its call", vec![user(), result("c1", "r"), called()]),
        ("an unreadable call without a result", vec![user(), asks([invalid_call("c1", "t")])]),
        ("an approval request", vec![user(), asks([request("c1", "t")])]),
        ("an approval", vec![parts(Role::User, vec![text("go"), answer("c1", true)])]),
        ("a call by the caller", vec![parts(Role::User, vec![call("c1", "t")]), result("c1", "r")]),
        ("a result by the assistant", vec![user(), called(), asks(result("c1", "r").contents.to_vec())]),
        ("words by a tool", vec![user(), parts(Role::Tool, vec![text("r")])]),
        ("an empty message", vec![user(), asks([])]),
    ];
    let mut told = vec![];
    for (what, messages) in table {
        told.push(format!("{what}: {}", refused(messages).await));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    a plain request: accepted
    a conversation: accepted
    a call with its result: accepted
    two calls, results in any order: accepted
    an id used again: accepted
    one id twice in an answer: accepted
    thoughts: accepted
    nothing: Contract: request without a message
    a call without a result: Contract: calls ["c1"] have no result
    one result of two: Contract: calls ["c2"] have no result
    words between call and result: Contract: message 2 comes before the results of ["c1"]
    a result nobody asked for: Contract: message 1 answers `c1`, which is not open
    a result twice: Contract: message 3 answers `c1`, which is not open
    a result of another id: Contract: message 2 answers `c2`, which is not open
    a result before its call: Contract: message 1 answers `c1`, which is not open
    an unreadable call without a result: Contract: calls ["c1"] have no result
    an approval request: Contract: message 1 holds an approval
    an approval: Contract: message 0 holds an approval
    a call by the caller: Contract: message 0 of role User holds ToolCall(ToolCall { id: "c1", name: "t", arguments: Object {} })
    a result by the assistant: Contract: message 2 comes before the results of ["c1"]
    words by a tool: Contract: message 1 of role Tool holds Text("r")
    an empty message: Contract: message 1 is empty
    "#);
}

#[tokio::test]
async fn a_recording_store_keeps_what_was_appended_in_order() {
    let store = RecordingStore::new();
    let events: Vec<Event> = (0..3).map(|i| event("a", vec![ChatMessage::user(i.to_string())], vec![])).collect();
    store.append("x", 0, &events[..2]).await.unwrap();
    store.clone().append("y", 0, &events[2..]).await.unwrap();
    assert_eq!(store.append("x", 0, &events).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(store.appended(), events);
    assert_eq!(store.events("x", 1).await.unwrap(), events[1..2]);
    assert_eq!(
        (store.list().await.unwrap(), store.load("x").await.unwrap().version),
        (vec!["x".to_owned(), "y".to_owned()], 2)
    );
    store.delete("x").await.unwrap();
    assert_eq!((store.load("x").await.unwrap(), store.appended().len()), (Stored::default(), 3));
}

#[tokio::test]
async fn an_updates_body_keeps_the_laws_with_deltas_between() {
    struct Chatty(AgentInfo);
    impl Agent for Chatty {
        fn info(&self) -> &AgentInfo {
            &self.0
        }
        fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
            updates("chatty", cx, |out| async move {
                for i in 0..5 {
                    out.delta(agent_core::Delta::Reasoning(i.to_string())).await;
                    out.record(session, Draft::state("i", i)).await;
                }
                Ok(StopReason::Completed)
            })
        }
    }
    let mut session = session("go");
    let came = assert_laws(&Chatty(AgentInfo::named("chatty")), &mut session, &RunContext::default()).await;
    assert_eq!((came.len(), session.get::<u32>("i")), (11, Some(4)));
}
