//! Ids and events that are hard to keep.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{ChatMessage, Content, Event, LoopStep, Role, StateChange, ToolCall, ToolResult, Usage};

pub(super) fn said(text: &str) -> Event {
    event(vec![ChatMessage::user(text)], vec![])
}

fn event(messages: Vec<ChatMessage>, state: Vec<StateChange>) -> Event {
    Event {
        id: Uuid::now_v7(),
        run: Uuid::nil(),
        author: Event::CALLER.into(),
        path: Arc::from([]),
        rewind: None,
        messages,
        state,
        usage: None,
        escalate: false,
    }
}

/// In byte order, without repetition.
pub(super) fn odd_ids() -> Vec<String> {
    let long = "long-id/".repeat(500);
    let noise = noise(4000);
    let ids = [
        "",
        " ",
        ".",
        "..",
        "/",
        "/a",
        "../a",
        "a",
        "A",
        "a ",
        "a/b",
        "a\\b",
        "a/../b",
        "a%",
        "a%2fb",
        "a_",
        "ab",
        "a.b",
        "a\0",
        "a\0b",
        "\0",
        "a\n",
        "%",
        "%61",
        "~",
        "con",
        "nul",
        "é",
        "e\u{301}",
        "É",
        "日本語",
        "🦀",
        "\u{202e}a",
        "'; drop table sessions; --",
        "\"a\"",
        "a.jsonl",
        "-rf",
        "*",
        "?",
        &long,
        &long[1..],
        &(long.clone() + "x"),
        &long.to_uppercase(),
        &noise,
        &noise[..3999],
    ];
    BTreeSet::from(ids.map(str::to_owned)).into_iter().collect()
}

/// Text of so many bytes that cannot be compressed by much.
fn noise(len: usize) -> String {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)); // Numerical Recipes'
    let numbers = std::iter::successors(Some(1_u32), next);
    numbers.map(|state| char::from(b' ' + (state >> 24) as u8 % 95)).take(len).collect()
}

/// Events that together use every field and every variant.
pub(super) fn full_events() -> Vec<Event> {
    let call = |id: &str| ToolCall { id: id.to_owned(), name: "look_up".to_owned(), arguments: odd_json() };
    let text = |text: &str| Content::Text(text.to_owned());
    let contents = [
        text("\u{0} \u{7f} \r\n \u{2028} \u{feff} \\ \" é e\u{301} 日本語 🦀 \u{202e}"),
        text(""),
        Content::Reasoning { text: "hm".to_owned(), signature: Some("signed".to_owned()) },
        Content::Reasoning { text: String::new(), signature: None },
        Content::Data { mime_type: "image/png".to_owned(), data: (0..=255).collect() },
        Content::Data { mime_type: String::new(), data: vec![] },
        Content::Uri { mime_type: Some("text/html".to_owned()), uri: "https://example.org/?a=b#c".to_owned() },
        Content::Uri { mime_type: None, uri: "file:///a".to_owned() },
        Content::ToolCall(call("1")),
        Content::InvalidToolCall {
            id: "2".to_owned(),
            name: "look_up".to_owned(),
            raw: "{\"a\": [1, ".to_owned(),
            why: "cut".to_owned(),
        },
        Content::Native { provider: "p".to_owned(), model: "m".to_owned(), value: odd_json() },
        Content::ApprovalRequest(call("3")),
        Content::ApprovalResponse { call_id: "3".to_owned(), approved: true, reason: None },
        Content::ApprovalResponse { call_id: "3".to_owned(), approved: false, reason: Some("no".to_owned()) },
    ];
    let result = ToolResult { call_id: "1".to_owned(), contents: contents[..6].to_vec(), is_error: true };
    let (key, other) = (Arc::<str>::from("loop:é/\u{0}"), Arc::<str>::from(""));
    let set = |key: &Arc<str>, value| StateChange::Set { key: key.clone(), value };
    let add = |key: &Arc<str>, value| StateChange::Append { key: key.clone(), value };
    let step = |name: &str, iteration| LoopStep { name: name.into(), iteration };
    let usage = Usage { input_tokens: u64::MAX, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 };
    let bare = || Event { author: "agent".into(), run: Uuid::now_v7(), ..event(vec![], vec![]) };
    vec![
        Event { messages: vec![ChatMessage::new(Role::Assistant, contents).by("agent 🦀")], ..bare() },
        Event { messages: vec![ChatMessage::new(Role::Tool, [Content::ToolResult(result)])], ..bare() },
        bare(),
        event(vec![ChatMessage::system("one"), ChatMessage::user("two"), ChatMessage::new(Role::User, [])], vec![]),
        Event { state: vec![set(&key, odd_json()), set(&other, json!([])), add(&other, Value::Null)], ..bare() },
        Event { state: vec![add(&key, json!(1)), StateChange::Remove { key: other.clone() }], ..bare() },
        Event { path: Arc::from([step("outer", 1), step("inner", u32::MAX)]), usage: Some(usage), ..bare() },
        Event { usage: Some(Usage::default()), escalate: true, ..bare() },
        Event { rewind: Some(3), messages: vec![ChatMessage::assistant("kept three")], ..bare() },
        Event { rewind: Some(0), ..bare() },
    ]
}

fn odd_json() -> Value {
    json!({
        "": null, "a\u{0}b": [true, false, [], {}], "text": "\u{1f}\"\\/",
        "numbers": [0, -1, u64::MAX, i64::MIN, 0.1 + 0.2, -0.0, 5e-324, f64::MAX, 1.0, 31.245_270_191_439_438],
    })
}
