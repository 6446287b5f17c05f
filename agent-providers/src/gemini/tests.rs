use agent_core::{ChatResponse, Content, StopReason, ToolCall};
use serde_json::{Value, json};

use super::{map, reader};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Answer, read_whole},
    cases,
};

use StopReason::{Completed, Filtered, Length};

#[test]
fn a_request_says_what_it_is_asked_to_or_what_it_cannot() {
    let item = json!({ "thoughtSignature": "CiQB" });
    let requests =
        cases::render("gemini", "gemini-2.5-test", &item, |request| map::body(request, "gemini-2.5-test", "gemini"));
    insta::assert_snapshot!(requests);
}

/// The answer of a stream of chunks with these candidates.
fn read(candidates: &[Value]) -> Result<ChatResponse, ProviderError> {
    let pieces = candidates.iter().map(|candidate| {
        let other = json!({ "index": 1, "content": { "parts": [{ "text": "other" }] } });
        format!("data: {}\n\n", json!({ "candidates": [candidate, other] }))
    });
    read_whole(reader(), Answer::new("gemini", "gemini-test"), pieces)
}

fn says(parts: &Value) -> Value {
    json!({ "content": { "parts": parts } })
}

fn ends(parts: &Value, reason: &str) -> Value {
    json!({ "content": { "parts": parts }, "finishReason": reason })
}

fn native(value: Value) -> Content {
    Content::Native { provider: "gemini".into(), model: "gemini-test".into(), value }
}

#[test]
fn only_the_last_reason_to_finish_ends_the_answer() {
    let text = |text: &str| json!([{ "text": text }]);
    let kinds = [
        read(&[ends(&text("a"), "STOP"), ends(&text("b"), "STOP")]).map(|response| response.message.text()),
        read(&[ends(&text("a"), "STOP"), says(&text(""))]).map(|response| response.message.text()),
        read(&[ends(&text("a"), "STOP"), says(&text("b"))]).map(|response| response.message.text()),
        read(&[ends(&text("a"), "FINISH_REASON_UNSPECIFIED")]).map(|response| response.message.text()),
    ]
    .map(|read| read.map_err(|error| error.kind));
    let cut = Err(ProviderErrorKind::Truncated);
    assert_eq!(kinds, [Ok("ab".into()), Ok("a".into()), cut.clone(), cut]);
}

#[test]
fn each_reason_to_finish_is_a_stop_or_an_error() {
    let kinds = ["STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "OTHER", "NEW"]
        .map(|reason| read(&[ends(&json!([]), reason)]).map(|response| response.stop).map_err(|error| error.kind));
    let server = Err(ProviderErrorKind::Server);
    let filtered = Ok(Filtered);
    assert_eq!(kinds, [Ok(Completed), Ok(Length), filtered, filtered, server, server, server]);
}

#[test]
fn a_signature_is_kept_before_its_part_or_in_it() {
    let parts = json!([
        { "text": "Hm.", "thought": true },
        { "text": "So.", "thoughtSignature": "a" },
        { "functionCall": { "id": "x", "name": "f", "args": {} }, "thoughtSignature": "b" },
        { "text": "", "thoughtSignature": "c" },
        { "executableCode": { "code": "1" }, "thoughtSignature": "d" },
    ]);
    let signature = |text: &str| native(json!({ "thoughtSignature": text }));
    let expected = [
        Content::Reasoning { text: "Hm.".into(), signature: None },
        signature("a"),
        Content::Text("So.".into()),
        signature("b"),
        Content::ToolCall(ToolCall { id: "x".into(), name: "f".into(), arguments: json!({}) }),
        native(json!({ "text": "", "thoughtSignature": "c" })),
        native(json!({ "executableCode": { "code": "1" }, "thoughtSignature": "d" })),
    ];
    let message = read(&[ends(&parts, "STOP")]).unwrap().message;
    assert_eq!(&*message.contents, expected);

    let request = agent_core::ChatRequest { messages: [message].into(), ..Default::default() };
    let body = map::body(&request, "gemini-test", "gemini").unwrap();
    let replayed = json!([
        { "text": "So.", "thoughtSignature": "a" },
        { "functionCall": { "id": "x", "name": "f", "args": {} }, "thoughtSignature": "b" },
        { "text": "", "thoughtSignature": "c" },
        { "executableCode": { "code": "1" }, "thoughtSignature": "d" },
    ]);
    assert_eq!(body["contents"][0]["parts"], replayed);
}

#[test]
fn calls_that_gemini_3_did_not_make_are_signed_as_foreign() {
    let call = |id: &str| Content::ToolCall(ToolCall { id: id.into(), name: "f".into(), arguments: json!({}) });
    let message = agent_core::ChatMessage::new(agent_core::Role::Assistant, [call("a"), call("b")]);
    let request = agent_core::ChatRequest { messages: [message].into(), ..Default::default() };
    let signatures = ["gemini-3-pro", "models/gemini-10.5-x", "gemini-2.5-pro", "gemini-pro", "other-3"].map(|model| {
        let body = map::body(&request, model, "gemini").unwrap();
        [0, 1].map(|call| body["contents"][0]["parts"][call]["thoughtSignature"].as_str().map(str::to_owned))
    });
    let foreign = [Some("skip_thought_signature_validator".to_owned()), None];
    let none = [None, None];
    assert_eq!(signatures, [foreign.clone(), foreign, none.clone(), none.clone(), none]);
}

#[test]
fn an_image_in_the_answer_is_a_content() {
    let image = json!([{ "inlineData": { "mimeType": "image/png", "data": "iVBO" } }]);
    let expected = Content::Data { mime_type: "image/png".into(), data: vec![0x89, b'P', b'N'] };
    assert_eq!(&*read(&[ends(&image, "STOP")]).unwrap().message.contents, [expected]);
}
