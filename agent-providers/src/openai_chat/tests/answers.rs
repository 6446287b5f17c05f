//! What compatible services do beside the common stream.

use agent_core::{ChatRequest, ChatResponse, Content, StopReason, ToolCall};
use serde_json::{Value, json};

use crate::{
    ProviderError,
    answer::{Answer, Reader, read_whole},
    openai_chat::{
        map::{Flavor, body},
        reader,
    },
};

/// The answer of a stream of these chunks.
fn read(chunks: &[Value]) -> Result<ChatResponse, ProviderError> {
    let pieces = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    read_whole(reader(), Answer::new("openai-compatible@here", "m"), pieces)
}

#[expect(clippy::needless_pass_by_value, reason = "the calls read better")]
fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

#[expect(clippy::needless_pass_by_value, reason = "the calls read better")]
fn call(call: Value) -> Value {
    delta(json!({ "tool_calls": [call] }))
}

fn contents(chunks: &[Value]) -> Vec<Content> {
    read(chunks).unwrap().message.contents.to_vec()
}

pub(super) fn tool_call(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
}

#[test]
fn only_the_first_of_several_choices_is_read() {
    let choices = json!({ "choices": [
        { "index": 1, "delta": { "content": "B" }, "finish_reason": "length" },
        { "index": 0, "delta": { "content": "A" }, "finish_reason": "stop" },
    ] });
    let response = read(&[choices]).unwrap();
    assert_eq!((response.message.text().as_str(), response.stop), ("A", StopReason::Completed));
}

#[test]
fn a_new_id_and_name_begin_a_call_though_the_index_repeats() {
    let chunks = [
        call(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{}" } })),
        call(json!({ "index": 0, "id": "b", "function": { "name": "g", "arguments": "{\"x\"" } })),
        call(json!({ "index": 0, "function": { "arguments": ":1}" } })),
        finish("tool_calls"),
    ];
    assert_eq!(contents(&chunks), [tool_call("a", "f", json!({})), tool_call("b", "g", json!({ "x": 1 }))]);
}

#[test]
fn calls_without_an_index_are_told_apart_by_id_and_name() {
    let chunks = [
        call(json!({ "id": "a", "function": { "name": "f", "arguments": "{\"x\":" } })),
        call(json!({ "function": { "arguments": "1}" } })),
        call(json!({ "id": "b", "function": { "name": "f", "arguments": "{" } })),
        call(json!({ "id": "b", "function": { "name": "f", "arguments": "}" } })),
        call(json!({ "function": { "name": "g", "arguments": "{}" } })),
        finish("stop"),
    ];
    let expected =
        [tool_call("a", "f", json!({ "x": 1 })), tool_call("b", "f", json!({})), tool_call("call_2", "g", json!({}))];
    assert_eq!(contents(&chunks), expected);
}

#[test]
fn arguments_may_be_missing_or_an_object() {
    let chunks = [
        call(json!({ "index": 0, "id": "a", "function": { "name": "f" } })),
        call(json!({ "index": 1, "id": "b", "function": { "name": "f", "arguments": { "x": 1 } } })),
        call(json!({ "index": 2, "id": "c", "function": { "name": "f", "arguments": "null" } })),
        finish("tool_calls"),
    ];
    let expected =
        [tool_call("a", "f", json!({})), tool_call("b", "f", json!({ "x": 1 })), tool_call("c", "f", json!({}))];
    assert_eq!(contents(&chunks), expected);
}

#[test]
fn arguments_that_the_limit_cut_are_kept_raw_and_never_repaired() {
    let chunks = [
        call(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\":1}" } })),
        call(json!({ "index": 1, "id": "b", "function": { "name": "g", "arguments": "{\"x\":\"lo" } })),
        call(json!({ "index": 2, "id": "c", "function": { "name": "h" } })),
        finish("length"),
    ];
    let response = read(&chunks).unwrap();
    assert_eq!(response.stop, StopReason::Length);
    let cut = |id: &str, name: &str, raw: &str| Content::InvalidToolCall {
        id: id.into(),
        name: name.into(),
        raw: raw.into(),
        why: "the arguments were cut off by the output limit".into(),
    };
    let expected = [tool_call("a", "f", json!({ "x": 1 })), cut("b", "g", "{\"x\":\"lo"), cut("c", "h", "")];
    assert_eq!(&*response.message.contents, expected);
}

#[test]
fn unreadable_arguments_and_nameless_calls_are_invalid_calls() {
    let chunks = [
        call(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "x=1" } })),
        call(json!({ "index": 1, "id": "b", "function": { "name": "f", "arguments": "[1]" } })),
        call(json!({ "index": 2, "id": "c", "function": { "arguments": "{}" } })),
        finish("tool_calls"),
    ];
    let whys = contents(&chunks).into_iter().map(|content| match content {
        Content::InvalidToolCall { why, .. } => why,
        other => panic!("{other:?}"),
    });
    let expected = [
        "the arguments are no JSON: expected value at line 1 column 1",
        "the arguments are no JSON object",
        "the call names no tool",
    ];
    assert_eq!(whys.collect::<Vec<_>>(), expected);
}

#[test]
fn a_refusal_is_text_of_a_filtered_answer() {
    let response = read(&[delta(json!({ "refusal": "I can" })), delta(json!({ "refusal": "not." })), finish("stop")]);
    let response = response.unwrap();
    assert_eq!((response.message.text().as_str(), response.stop), ("I cannot.", StopReason::Filtered));
    assert_eq!(read(&[finish("content_filter")]).unwrap().stop, StopReason::Filtered);
}

#[test]
fn thoughts_under_two_names_are_told_once() {
    let chunks = [
        delta(json!({ "reasoning": "hm", "reasoning_content": "hm", "content": null })),
        delta(
            json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "!" }] }, { "type": "text", "text": "A" }] }),
        ),
        finish("stop"),
    ];
    let thoughts = Content::Reasoning { text: "hm!".into(), signature: None };
    assert_eq!(contents(&chunks), [thoughts, Content::Text("A".into())]);
}

#[test]
fn reasoning_details_come_back_to_the_same_model_of_the_same_service_only() {
    let chunks = [
        delta(json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": "a" }] })),
        delta(
            json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": "b", "signature": "s" }] }),
        ),
        delta(json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "index": 1, "data": "x" }] })),
        delta(json!({ "content": "A" })),
        finish("stop"),
    ];
    let message = read(&chunks).unwrap().message;
    let request = ChatRequest { messages: [message].into(), ..ChatRequest::default() };
    let written =
        |model: &str, service: &str| body(&request, model, Flavor::Compatible, service).unwrap()["messages"][0].clone();
    let details = json!([
        { "type": "reasoning.text", "index": 0, "text": "ab", "signature": "s" },
        { "type": "reasoning.encrypted", "index": 1, "data": "x" },
    ]);
    assert_eq!(
        written("m", "openai-compatible@here"),
        json!({ "role": "assistant", "content": "A", "reasoning_details": details })
    );
    for (model, service) in [("other", "openai-compatible@here"), ("m", "openai-compatible@elsewhere")] {
        assert_eq!(written(model, service), json!({ "role": "assistant", "content": "A" }));
    }
}

#[test]
fn done_without_a_finish_reason_is_no_end() {
    let (framing, decode) = reader();
    let mut reader = Reader::new(framing, decode, Answer::new("openai", "m"));
    let taken = reader.push(format!("data: {}\n\ndata: [DONE]\n\n", delta(json!({ "content": "A" }))).as_bytes());
    assert_eq!(taken.unwrap_err().kind, crate::ProviderErrorKind::Truncated);
}

#[test]
fn counts_that_come_more_than_once_are_not_added() {
    let usage = |count: u64| json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": count } });
    let response = read(&[usage(1), delta(json!({ "content": "A" })), finish("stop"), usage(4), usage(4)]).unwrap();
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (7, 4));
}

#[test]
fn endless_tool_calls_are_refused() {
    let calls = |count: u64| -> Vec<Value> {
        (0..count).map(|n| json!({ "index": n, "id": n.to_string(), "function": { "name": "add" } })).collect()
    };
    let in_one = delta(json!({ "tool_calls": calls(5000) }));
    let one_by_one: Vec<Value> = calls(5000).into_iter().map(call).collect();
    for error in [read(&[in_one]).unwrap_err(), read(&one_by_one).unwrap_err()] {
        assert_eq!(error.message, "the answer has more than 4096 tool calls");
    }
    let many = delta(json!({ "tool_calls": calls(4096) }));
    assert_eq!(contents(&[many, finish("tool_calls")]).len(), 4096);
}

#[test]
fn arguments_that_could_not_be_stored_are_unreadable() {
    let call_of = |levels: usize| {
        let arguments = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let function = json!({ "name": "add", "arguments": arguments });
        contents(&[call(json!({ "index": 0, "id": "1", "function": function })), finish("tool_calls")]).remove(0)
    };
    assert!(matches!(call_of(99), Content::ToolCall(_)));
    let Content::InvalidToolCall { why, .. } = call_of(100) else { panic!("a call that nests too deep is valid") };
    assert_eq!(why, "the arguments nest deeper than 100 levels");
}
