use agent_core::{ChatResponse, Content, StopReason, ToolCall, Usage};
use serde_json::{Value, json};

use super::{map, reader};
use crate::{
    ProviderError,
    answer::{Answer, read_whole},
    cases,
};

use StopReason::{Completed, Filtered, Length};

#[test]
fn a_request_says_what_it_is_asked_to_or_what_it_cannot() {
    let item = json!({ "type": "redacted_thinking", "data": "EmwK" });
    let requests =
        cases::render("anthropic", "claude-test", &item, |request| map::body(request, "claude-test", "anthropic"));
    insta::assert_snapshot!(requests);
}

/// The answer of a stream of these events, the message's start and end around them.
fn read(events: &[Value], stop_reason: &str) -> Result<ChatResponse, ProviderError> {
    let start = json!({ "type": "message_start", "message": { "usage": null } });
    let stop = json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason } });
    let end = json!({ "type": "message_stop" });
    let events = [&start].into_iter().chain(events).chain([&stop, &end]);
    let pieces = events.map(|event| format!("data: {event}\n\n"));
    read_whole(reader(), Answer::new("anthropic", "claude-test"), pieces)
}

fn block(index: u64, block: &Value, deltas: &[Value]) -> Vec<Value> {
    let start = json!({ "type": "content_block_start", "index": index, "content_block": block });
    let deltas = deltas.iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    [start].into_iter().chain(deltas).chain([json!({ "type": "content_block_stop", "index": index })]).collect()
}

#[test]
fn each_reason_to_stop_is_one_of_ours() {
    let reasons = [
        "end_turn",
        "stop_sequence",
        "tool_use",
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
        "refusal",
        "new",
    ];
    let expected = [Completed, Completed, Completed, Length, Length, Length, Filtered, Completed];
    assert_eq!(reasons.map(|reason| read(&[], reason).unwrap().stop), expected);
}

#[test]
fn thoughts_that_are_only_a_signature_are_apart_from_those_before() {
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let sign = |proof: &str| json!({ "type": "signature_delta", "signature": proof });
    let words = json!({ "type": "thinking_delta", "thinking": "Hm." });
    let events = [block(0, &thinking, &[words, sign("a")]), block(1, &thinking, &[sign("b")])].concat();
    let thoughts = |text: &str, proof: &str| Content::Reasoning { text: text.into(), signature: Some(proof.into()) };
    assert_eq!(&*read(&events, "end_turn").unwrap().message.contents, [thoughts("Hm.", "a"), thoughts("", "b")]);
}

#[test]
fn a_block_of_the_services_own_is_kept_for_replay_with_its_input() {
    let search = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let piece = |json: &str| json!({ "type": "input_json_delta", "partial_json": json });
    let events = block(0, &search, &[piece("{\"query\":"), piece("\"x\"}")]);
    let value = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": { "query": "x" } });
    let expected = Content::Native { provider: "anthropic".into(), model: "claude-test".into(), value };
    assert_eq!(&*read(&events, "end_turn").unwrap().message.contents, [expected]);
}

#[test]
fn arguments_may_come_with_the_block_and_cut_ones_are_invalid() {
    let whole = json!({ "type": "tool_use", "id": "a", "name": "f", "input": { "x": 1 } });
    let cut = json!({ "type": "tool_use", "id": "b", "name": "f", "input": {} });
    let piece = json!({ "type": "input_json_delta", "partial_json": "{\"x\":" });
    let response = read(&[block(0, &whole, &[]), block(1, &cut, &[piece])].concat(), "max_tokens").unwrap();
    let call = Content::ToolCall(ToolCall { id: "a".into(), name: "f".into(), arguments: json!({ "x": 1 }) });
    let invalid = Content::InvalidToolCall {
        id: "b".into(),
        name: "f".into(),
        raw: "{\"x\":".into(),
        why: "the arguments were cut off by the output limit".into(),
    };
    assert_eq!((&*response.message.contents, response.stop), (&[call, invalid][..], StopReason::Length));
}

#[test]
fn counts_are_cumulative_and_those_of_the_cache_are_part_of_the_input() {
    let counts = |usage: Value| json!({ "type": "message_delta", "delta": {}, "usage": usage });
    let events = [
        counts(
            json!({ "input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 1 }),
        ),
        counts(json!({ "output_tokens": 20, "input_tokens": null })),
    ];
    let usage = Usage { input_tokens: 15, output_tokens: 20, cached_input_tokens: 5, reasoning_tokens: 0 };
    assert_eq!(read(&events, "end_turn").unwrap().usage, usage);
}

#[test]
fn ids_that_come_again_are_told_apart() {
    use agent_core::{ChatMessage, ChatRequest, Role, ToolResult};
    let call = || Content::ToolCall(ToolCall { id: "call:0".into(), name: "f".into(), arguments: json!({}) });
    let result = || Content::ToolResult(ToolResult { call_id: "call:0".into(), contents: vec![], is_error: false });
    let round = || [ChatMessage::new(Role::Assistant, [call()]), ChatMessage::new(Role::Tool, [result()])];
    let messages = [ChatMessage::user("Go.")].into_iter().chain(round()).chain(round()).collect();
    let body = map::body(&ChatRequest { messages, ..ChatRequest::default() }, "m", "anthropic").unwrap();
    let ids = body["messages"].as_array().unwrap()[1..].iter().map(|message| {
        let block = &message["content"][0];
        block["id"].as_str().or(block["tool_use_id"].as_str()).unwrap()
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["call_0", "call_0", "call_0_2", "call_0_2"]);
}
