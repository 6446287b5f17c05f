use std::sync::Arc;

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponse, Content, Event, Format, LoopStep, Reasoning, ReasoningEffort,
    Role, Session, StateChange, StopReason, ToolChoice, ToolResult, ToolSpec, Turn, Usage,
};
use proptest::{collection::vec, option, prelude::*};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::support::{
    answer, asks, call, event, invalid_call, request, result, session, set, text, thought, tool_call,
};

fn says(author: &str, words: &str) -> Event {
    event(author, vec![ChatMessage::assistant(words).by(author)], vec![])
}

fn turn(number: u64, start: usize) -> Turn {
    Turn { number, start }
}

#[test]
fn a_turn_begins_with_the_callers_first_words_after_an_agent_recorded_something() {
    let mut session = Session::new();
    let mut turns = vec![session.turn()];
    let mut push = |session: &mut Session, message: ChatMessage| {
        session.push(message);
        turns.push(session.turn());
    };
    push(&mut session, "hello".into());
    push(&mut session, "and".into());
    session.apply(&says("a", "hi"));
    push(&mut session, ChatMessage::approve("c1"));
    push(&mut session, "next".into());
    push(&mut session, "more".into());
    session.apply(&event("a", vec![], vec![]));
    push(&mut session, ChatMessage::system("be brief"));
    assert_eq!(turns, [turn(0, 0), turn(0, 0), turn(0, 0), turn(0, 0), turn(1, 4), turn(1, 4), turn(2, 6)]);
}

#[test]
fn an_event_by_the_caller_is_as_good_as_a_push() {
    let mut pushed = Session::new();
    pushed.apply(&says("a", "hi"));
    let mut applied = pushed.clone();
    for message in [ChatMessage::approve("c1"), "go on".into(), ChatMessage::system("now")] {
        applied.apply(&event(Event::CALLER, vec![message.clone()], vec![]));
        pushed.push(message);
    }
    assert_eq!(applied, pushed);
    assert_eq!(applied.turn(), turn(1, 2));
}

#[test]
fn words_and_an_answer_in_one_message_begin_a_turn() {
    let mut session = session("hello");
    session.apply(&event("a", vec![asks([request("c1", "t")])], vec![]));
    session.push(ChatMessage::new(Role::User, [answer("c1", true), text("and hurry")]));
    assert_eq!(session.turn(), turn(1, 2));
}

#[test]
fn a_seeded_answer_counts_as_recorded() {
    for seed in [ChatMessage::assistant("hi"), result("c1", "42")] {
        let mut session = session("hello");
        session.push(seed);
        assert_eq!(session.turn(), turn(0, 0));
        session.push("next");
        assert_eq!(session.turn(), turn(1, 2));
    }
}

#[test]
fn pending_are_the_messages_that_no_assistant_or_tool_wrote() {
    let mut session = Session::new();
    assert_eq!(session.pending(), []);
    session.push("a");
    session.push(ChatMessage::system("b"));
    assert_eq!(session.pending(), [ChatMessage::user("a"), ChatMessage::system("b")]);
    session.apply(&says("x", "c"));
    assert_eq!(session.pending(), []);
    session.apply(&event("loop", vec!["feedback".into()], vec![]));
    session.push(ChatMessage::approve("c1"));
    assert_eq!(session.pending(), [ChatMessage::user("feedback"), ChatMessage::approve("c1")]);
    session.apply(&event("x", vec![result("c1", "42")], vec![]));
    assert_eq!(session.pending(), []);
}

#[test]
fn an_approval_is_open_from_its_request_to_its_answer() {
    let mut session = session("hello");
    session.apply(&event("a", vec![asks([call("c1", "x"), call("c2", "y")])], vec![]));
    assert_eq!(session.open_approvals(), []);
    session.apply(&event("a", vec![asks([request("c1", "x"), request("c2", "y")])], vec![]));
    let (x, y) = (tool_call("c1", "x", json!({})), tool_call("c2", "y", json!({})));
    assert_eq!(session.open_approvals(), [x, y.clone()]);
    session.push(ChatMessage::reject("c1", "no"));
    assert_eq!(session.open_approvals(), [y]);
    session.apply(&event("a", vec![result("c2", "superseded")], vec![]));
    assert_eq!(session.open_approvals(), []);
}

#[test]
fn a_rewind_keeps_the_first_messages_and_the_state() {
    let mut session = session("a").with_state("k", 1);
    for words in ["b", "c"] {
        session.apply(&says("x", words));
    }
    let snapshot = session.clone();
    let step = Event { rewind: Some(1), ..event("x", vec!["again".into()], vec![set("k", 2)]) };
    session.apply(&step);
    assert_eq!(session.messages(), ["a".into(), ChatMessage::user("again")]);
    assert_eq!(session.get::<u32>("k"), Some(2));
    assert_eq!((snapshot.messages().len(), snapshot.get::<u32>("k")), (3, Some(1)));
}

#[test]
fn a_rewind_beyond_the_end_keeps_everything_and_one_before_the_turn_moves_its_start() {
    let mut session = session("a");
    session.apply(&says("x", "b"));
    session.push("c");
    session.apply(&Event { rewind: Some(9), ..event("x", vec![], vec![]) });
    assert_eq!((session.messages().len(), session.turn()), (3, turn(1, 2)));
    session.apply(&Event { rewind: Some(1), ..event("x", vec![], vec![]) });
    assert_eq!((session.messages().len(), session.turn()), (1, turn(1, 1)));
}

#[test]
fn state_is_set_appended_to_and_removed_in_order() {
    let append = |key: &str, value: Value| StateChange::Append { key: key.into(), value };
    let remove = |key: &str| StateChange::Remove { key: key.into() };
    let mut session = Session::new().with_state("text", "old").with_state("list", [1]);
    session.apply(&event(
        "x",
        vec![],
        vec![
            append("new", json!(1)),
            append("new", json!([2])),
            append("text", json!("now a list")),
            append("list", json!(2)),
            set("gone", 1),
            remove("gone"),
            remove("never there"),
            set("twice", 1),
            set("twice", 2),
        ],
    ));
    let expected = json!({"new": [1, [2]], "text": ["now a list"], "list": [1, 2], "twice": 2});
    assert_eq!(Value::Object(session.state().clone()), expected);
}

#[test]
fn get_reads_what_is_there_as_the_type_that_is_asked_for() {
    let session = Session::new().with_state("n", 7).with_state("turn", turn(1, 2));
    assert_eq!(session.get::<u8>("n"), Some(7));
    assert_eq!(session.get::<String>("n"), None);
    assert_eq!(session.get::<u8>("absent"), None);
    assert_eq!(session.get::<Turn>("turn"), Some(turn(1, 2)));
}

#[test]
fn a_clone_shares_the_history_and_is_a_snapshot() {
    let mut session = session("a").with_state("k", 1);
    let snapshot = session.clone();
    assert!(std::ptr::eq(session.messages(), snapshot.messages()));
    assert!(std::ptr::eq(session.state(), snapshot.state()));
    session.push("b");
    session.apply(&event("x", vec![], vec![set("k", 2)]));
    assert_eq!((snapshot.messages(), snapshot.get::<u32>("k")), (&["a".into()][..], Some(1)));
    assert_eq!((session.messages().len(), session.get::<u32>("k")), (2, Some(2)));
}

#[test]
fn an_answer_is_final_if_it_has_text_and_asks_for_nothing() {
    let table = [
        (vec![], false),
        (vec![ChatMessage::assistant("42")], true),
        (vec![ChatMessage::user("42")], false),
        (vec![asks([thought("hm"), text("42")])], true),
        (vec![asks([thought("hm")])], false),
        (vec![asks([text("wait"), call("c", "t")])], false),
        (vec![asks([text("wait"), invalid_call("c", "t")])], false),
        (vec![asks([text("may I?"), request("c", "t")])], false),
        (vec![ChatMessage::assistant("42"), ChatMessage::user("feedback")], false),
        (vec![ChatMessage::user("feedback"), ChatMessage::assistant("42")], true),
    ];
    for (messages, expected) in table {
        assert_eq!(event("a", messages.clone(), vec![]).is_final_response(), expected, "{messages:?}");
    }
}

#[test]
fn usage_adds_up_and_does_not_wrap() {
    let usage = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 };
    let sum: Usage = [usage, usage].into_iter().sum();
    assert_eq!(sum, Usage { input_tokens: 2, output_tokens: 4, cached_input_tokens: 6, reasoning_tokens: 8 });
    assert_eq!(sum.total(), 6);
    let full = Usage { input_tokens: u64::MAX, output_tokens: 1, ..Usage::default() };
    assert_eq!((full.total(), [full, full].into_iter().sum::<Usage>().input_tokens), (u64::MAX, u64::MAX));
}

fn returns<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value, "{text}");
}

fn all_contents() -> Vec<Content> {
    vec![
        text("t"),
        thought("r"),
        Content::Reasoning { text: "r".into(), signature: Some("s".into()) },
        Content::Data { mime_type: "image/png".into(), data: vec![0, 159, 255] },
        Content::Uri { mime_type: None, uri: "file:///a".into() },
        Content::Uri { mime_type: Some("text/plain".into()), uri: "file:///a".into() },
        Content::ToolCall(tool_call("c", "t", json!({"a": [1, null]}))),
        Content::ToolResult(ToolResult { call_id: "c".into(), contents: vec![text("no")], is_error: true }),
        invalid_call("c", "t"),
        Content::Native { provider: "p".into(), model: "m".into(), value: json!({"x": 1}) },
        request("c", "t"),
        answer("c", true),
        Content::ApprovalResponse { call_id: "c".into(), approved: false, reason: Some("why".into()) },
    ]
}

#[test]
fn everything_that_is_stored_comes_back() {
    let message = ChatMessage::new(Role::Assistant, all_contents()).by("a");
    let changes = vec![
        set("k", 1),
        StateChange::Append { key: "l".into(), value: json!(1) },
        StateChange::Remove { key: "k".into() },
    ];
    let full = Event {
        path: Arc::from([LoopStep { name: "loop".into(), iteration: 2 }]),
        rewind: Some(0),
        usage: Some(Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 }),
        escalate: true,
        ..event("a", vec![message.clone()], changes)
    };
    returns(&full);
    returns(&event("a", vec![], vec![]));
    let mut session = session("hello").with_state("k", json!({"a": 1}));
    session.apply(&full);
    session.push("next");
    returns(&session);
    for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
        returns(&ChatMessage::new(role, []));
    }
    let options = ChatOptions {
        temperature: Some(0.5),
        stop: vec!["end".into()],
        reasoning: Reasoning::Effort(ReasoningEffort::Low),
        tool_choice: ToolChoice::Tool("t".into()),
        format: Format::of::<u32>(),
        extra: Map::from_iter([("k".to_owned(), json!(1))]),
        ..ChatOptions::default()
    };
    returns(&options);
    let tool = ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({}), needs_approval: true };
    let messages = Arc::from([message.clone()]);
    returns(&ChatRequest { instructions: Some("i".into()), messages, tools: Arc::from([tool]), options });
    let usage = Usage::default();
    returns(&ChatResponse { message, usage, stop: StopReason::Length, model: "m".into() });
}

#[test]
fn every_stop_reason_has_a_name_of_its_own() {
    let all = [
        StopReason::Completed,
        StopReason::Escalated,
        StopReason::AwaitingApproval,
        StopReason::Length,
        StopReason::Filtered,
        StopReason::TurnLimit,
        StopReason::IterationLimit,
        StopReason::BudgetExhausted,
        StopReason::Halted,
        StopReason::Cancelled,
    ];
    all.iter().for_each(returns);
    let mut names: Vec<String> = all.iter().map(ToString::to_string).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len());
    let suspended: Vec<_> = all.into_iter().filter(|stop| stop.is_suspended()).collect();
    assert_eq!(suspended, [StopReason::AwaitingApproval, StopReason::BudgetExhausted, StopReason::Cancelled]);
}

#[test]
fn bytes_are_base64_in_json() {
    let data = Content::Data { mime_type: "image/png".into(), data: vec![0, 159, 255] };
    assert_eq!(serde_json::to_value(data).unwrap(), json!({"data": {"mime_type": "image/png", "data": "AJ//"}}));
    let broken = json!({"data": {"mime_type": "image/png", "data": "%"}});
    assert!(serde_json::from_value::<Content>(broken).is_err());
}

#[test]
fn fields_that_an_older_text_lacks_have_their_defaults() {
    let text = r#"{"id": "01900000-0000-7000-8000-000000000000", "run": "01900000-0000-7000-8000-000000000000",
        "author": "a", "messages": [{"role": "tool", "contents": [{"tool_result": {"call_id": "c", "contents": []}}]}]}"#;
    let read: Event = serde_json::from_str(text).unwrap();
    let message = ChatMessage::new(
        Role::Tool,
        [Content::ToolResult(ToolResult { call_id: "c".into(), contents: vec![], is_error: false })],
    );
    assert_eq!(read, Event { id: read.id, run: read.run, ..event("a", vec![message], vec![]) });
    assert_eq!(serde_json::from_str::<Usage>(r#"{"input_tokens": 1}"#).unwrap().total(), 1);
    assert_eq!(serde_json::from_str::<ChatOptions>("{}").unwrap(), ChatOptions::default());
}

#[test]
fn unknown_fields_of_a_newer_text_are_ignored() {
    let mut text = serde_json::to_value(says("a", "hi")).unwrap();
    text["later"] = json!({"x": 1});
    let read: Event = serde_json::from_value(text).unwrap();
    assert_eq!(read.messages, says("a", "hi").messages);
}

#[derive(Debug, Clone)]
struct Step {
    author: usize,
    rewind: Option<usize>,
    messages: Vec<usize>,
    state: Vec<(usize, usize, u8)>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        0..3usize,
        option::weighted(0.2, 0..8usize),
        vec(0..5usize, 0..3),
        vec((0..3usize, 0..3usize, any::<u8>()), 0..3),
    );
    vec(step.prop_map(|(author, rewind, messages, state)| Step { author, rewind, messages, state }), 0..20)
}

impl Step {
    fn event(&self) -> Event {
        let kinds = [
            ChatMessage::user("u"),
            ChatMessage::system("s"),
            ChatMessage::assistant("a"),
            result("c", "r"),
            ChatMessage::approve("c"),
        ];
        let state = self.state.iter().map(|(kind, key, value)| {
            let key = ["k", "l", "m"][*key].into();
            match kind {
                0 => StateChange::Set { key, value: json!(value) },
                1 => StateChange::Append { key, value: json!(value) },
                _ => StateChange::Remove { key },
            }
        });
        let author = [Event::CALLER, "a", "b"][self.author];
        let messages = self.messages.iter().map(|kind| kinds[*kind].clone()).collect();
        Event { rewind: self.rewind, ..event(author, messages, state.collect()) }
    }
}

/// A session as one would write it down from its description, without sharing.
#[derive(Debug, Default)]
struct Model {
    messages: Vec<ChatMessage>,
    state: std::collections::BTreeMap<String, Value>,
    number: u64,
    start: usize,
    recorded: bool,
}

impl Model {
    fn apply(&mut self, event: &Event) {
        if let Some(keep) = event.rewind {
            self.messages.truncate(keep);
            self.start = self.start.min(self.messages.len());
        }
        let by_caller = &*event.author == "user";
        self.recorded |= !by_caller;
        for message in &event.messages {
            let agents = matches!(message.role, Role::Assistant | Role::Tool);
            let only_answers = message.contents.iter().all(|c| matches!(c, Content::ApprovalResponse { .. }));
            if by_caller && agents {
                self.recorded = true;
            } else if by_caller && self.recorded && !only_answers {
                (self.number, self.start, self.recorded) = (self.number + 1, self.messages.len(), false);
            }
            self.messages.push(message.clone());
        }
        for change in &event.state {
            match change {
                StateChange::Set { key, value } => drop(self.state.insert(key.to_string(), value.clone())),
                StateChange::Append { key, value } => {
                    let mut list = match self.state.get(&**key) {
                        Some(Value::Array(list)) => list.clone(),
                        _ => vec![],
                    };
                    list.push(value.clone());
                    self.state.insert(key.to_string(), Value::Array(list));
                }
                StateChange::Remove { key } => drop(self.state.remove(&**key)),
            }
        }
    }
}

proptest! {
    #[test]
    fn a_session_is_the_fold_of_its_events_however_it_is_shared_or_stored(steps in steps(), at in 0..20usize) {
        let (mut session, mut other, mut model) = (Session::new(), Session::new(), Model::default());
        let mut snapshots = vec![];
        for (index, step) in steps.iter().enumerate() {
            let event = step.event();
            model.apply(&event);
            session.apply(&event);
            snapshots.push((session.clone(), serde_json::to_value(&session).unwrap()));
            let text = serde_json::to_string(&event).unwrap();
            other.apply(&serde_json::from_str(&text).unwrap());
            if index == at {
                other = serde_json::from_str(&serde_json::to_string(&other).unwrap()).unwrap();
            }
        }
        prop_assert_eq!(session.messages(), &model.messages[..]);
        prop_assert_eq!(session.turn(), turn(model.number, model.start));
        prop_assert_eq!(json!(session.state()), json!(model.state));
        prop_assert_eq!(session, other);
        for (snapshot, text) in snapshots {
            prop_assert_eq!(serde_json::to_value(&snapshot).unwrap(), text);
        }
    }
}

#[test]
fn the_turn_after_the_last_number_is_another_one() {
    let json = json!({ "turn": { "number": u64::MAX, "start": 7 }, "recorded": true });
    let mut session: Session = serde_json::from_value(json).unwrap();
    session.push("again");
    assert_eq!(session.turn(), turn(0, 0));
}
