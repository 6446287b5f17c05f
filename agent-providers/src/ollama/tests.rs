use agent_core::{ChatResponse, Content, StopReason, ToolCall};
use serde_json::{Value, json};

use super::{map, reader};
use crate::{
    ProviderError,
    answer::{Answer, read_whole},
    cases,
};

use StopReason::{Completed, Length};

#[test]
fn a_request_says_what_it_is_asked_to_or_what_it_cannot() {
    let requests = cases::render("ollama", "qwen-test", &json!({}), |request| map::body(request, "qwen-test"));
    insta::assert_snapshot!(requests);
}

fn read(lines: &[Value]) -> Result<ChatResponse, ProviderError> {
    let pieces = lines.iter().map(|line| format!("{line}\n"));
    read_whole(reader(), Answer::new("ollama", "qwen-test"), pieces)
}

#[test]
fn the_reason_for_being_done_tells_a_whole_answer_from_a_cut_one() {
    let reasons = [json!("stop"), json!("length"), json!("load"), json!(null)];
    let stops = reasons.map(|reason| read(&[json!({ "done": true, "done_reason": reason })]).unwrap().stop);
    assert_eq!(stops, [Completed, Length, Completed, Completed]);
}

#[test]
fn calls_get_ids_that_they_lack_and_keep_those_that_they_have() {
    let call = |id: Value, arguments: Value| json!({ "id": id, "function": { "name": "f", "arguments": arguments } });
    let calls =
        [call(json!(null), json!({ "x": 1 })), call(json!("b"), json!("{\"x\":2}")), call(json!(""), json!(null))];
    let expected = |id: &str, arguments| Content::ToolCall(ToolCall { id: id.into(), name: "f".into(), arguments });
    let response = read(&[json!({ "message": { "tool_calls": calls }, "done": true })]).unwrap();
    assert_eq!(
        &*response.message.contents,
        [expected("call_0", json!({ "x": 1 })), expected("b", json!({ "x": 2 })), expected("call_2", json!({}))]
    );
}
