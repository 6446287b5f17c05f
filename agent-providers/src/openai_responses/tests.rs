use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponse, Content, Format, Reasoning, ReasoningEffort, Role, StopReason,
    ToolCall, ToolChoice, ToolResult, ToolSpec,
};
use serde_json::{Value, json};

use super::{map::body, reader};
use crate::{
    ProviderError,
    answer::{Answer, read_whole},
    cases,
};

/// The answer of a stream of these events.
fn read(events: &[Value]) -> Result<ChatResponse, ProviderError> {
    let pieces = events.iter().map(|event| format!("data: {event}\n\n"));
    read_whole(reader(), Answer::new("openai-responses", "m"), pieces)
}

#[expect(clippy::needless_pass_by_value, reason = "the calls read better")]
fn ends(kind: &str, response: Value) -> Value {
    json!({ "type": kind, "response": response })
}

#[test]
fn an_incomplete_response_says_why_it_ends() {
    let incomplete = |reason: &str| {
        let end = ends("response.incomplete", json!({ "incomplete_details": { "reason": reason } }));
        read(&[end]).unwrap().stop
    };
    assert_eq!(incomplete("max_output_tokens"), StopReason::Length);
    assert_eq!(incomplete("content_filter"), StopReason::Filtered);
    let status = ends("response.completed", json!({ "status": "incomplete" }));
    assert_eq!(read(&[status]).unwrap().stop, StopReason::Length);
}

#[test]
fn events_without_indexes_and_pieces_without_events_are_understood() {
    // As llama.cpp's server sends them.
    let events = [
        json!({ "type": "response.output_item.added", "item": { "type": "function_call", "call_id": "a", "name": "f" } }),
        json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_a", "delta": "{\"x\":1}" }),
        json!({ "type": "response.output_item.done", "item": { "type": "function_call", "call_id": "a", "name": "f" } }),
        json!({ "type": "response.output_item.done", "item": {
            "type": "message", "id": "m1", "content": [{ "type": "output_text", "text": "whole" }],
        } }),
        ends("response.completed", json!({})),
    ];
    let expected = [
        Content::ToolCall(ToolCall { id: "a".into(), name: "f".into(), arguments: json!({ "x": 1 }) }),
        Content::Text("whole".into()),
    ];
    assert_eq!(&*read(&events).unwrap().message.contents, expected);
}

#[test]
fn parts_of_a_summary_are_paragraphs_and_a_refusal_is_filtered() {
    let events = [
        json!({ "type": "response.reasoning_summary_part.added", "summary_index": 0 }),
        json!({ "type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "One." }),
        json!({ "type": "response.reasoning_summary_part.added", "summary_index": 1 }),
        json!({ "type": "response.reasoning_summary_text.delta", "summary_index": 1, "delta": "Two." }),
        json!({ "type": "response.refusal.delta", "item_id": "m", "delta": "No." }),
        ends("response.completed", json!({})),
    ];
    let response = read(&events).unwrap();
    let thoughts = Content::Reasoning { text: "One.\n\nTwo.".into(), signature: None };
    assert_eq!(&*response.message.contents, [thoughts, Content::Text("No.".into())]);
    assert_eq!(response.stop, StopReason::Filtered);
}

#[expect(clippy::needless_pass_by_value, reason = "the calls read better")]
fn item(kind: &str, more: Value) -> Value {
    let mut item = json!({ "type": kind, "id": "x1", "status": "completed" });
    item.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    item
}

#[test]
fn a_request_says_all_that_it_is_asked_to() {
    let native = |value: Value| Content::Native { provider: "openai-responses".into(), model: "m".into(), value };
    let call = ToolCall { id: "a".into(), name: "look".into(), arguments: json!({ "x": 1 }) };
    let image = || Content::Data { mime_type: "image/png".into(), data: vec![1, 2, 3] };
    let result =
        ToolResult { call_id: "a".into(), contents: vec![Content::Text("seen".into()), image()], is_error: false };
    let foreign = Content::Native { provider: "openai-responses".into(), model: "other".into(), value: json!({}) };
    let messages = [
        ChatMessage::system("Be brief."),
        ChatMessage::new(Role::User, [Content::Text("What is this?".into()), image()]),
        ChatMessage::new(
            Role::Assistant,
            [
                Content::Reasoning { text: "hm".into(), signature: None },
                native(item("reasoning", json!({ "summary": [], "encrypted_content": "gAAA" }))),
                native(item("reasoning", json!({ "summary": [], "encrypted_content": null }))),
                native(item("web_search_call", json!({ "action": { "type": "search", "query": "cats" } }))),
                foreign,
                Content::Text("I look.".into()),
                Content::ToolCall(call),
            ],
        ),
        ChatMessage::new(Role::Tool, [Content::ToolResult(result)]),
        "And now?".into(),
    ];
    let request = ChatRequest {
        instructions: Some("Answer.".into()),
        messages: messages.into(),
        tools: [ToolSpec {
            name: "look".into(),
            description: "Looks.".into(),
            parameters: json!({ "type": "object", "properties": {} }),
            needs_approval: false,
        }]
        .into(),
        options: ChatOptions {
            temperature: Some(0.5),
            top_p: Some(0.25),
            max_output_tokens: Some(100),
            reasoning: Reasoning::Effort(ReasoningEffort::High),
            tool_choice: ToolChoice::Tool("look".into()),
            format: Format::JsonSchema {
                name: "Answer".into(),
                schema: json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            },
            cache_prompt: true,
            extra: [("truncation".to_owned(), json!("auto"))].into_iter().collect(),
            ..ChatOptions::default()
        },
    };
    insta::assert_json_snapshot!(body(&request, "m", "openai-responses").unwrap());
}

#[test]
fn fields_of_the_service_s_own_are_beside_those_that_options_set() {
    let extra = json!({ "reasoning": { "summary": "auto" }, "text": { "verbosity": "low" } });
    let options = ChatOptions {
        reasoning: Reasoning::Effort(ReasoningEffort::Low),
        format: Format::JsonSchema { name: "Answer".into(), schema: json!({ "type": "object", "properties": {} }) },
        extra: extra.as_object().cloned().unwrap(),
        ..ChatOptions::default()
    };
    let written = body(&ChatRequest { options, ..ChatRequest::default() }, "m", "openai-responses").unwrap();
    assert_eq!(written["reasoning"], json!({ "effort": "low", "summary": "auto" }));
    assert_eq!(written["text"]["verbosity"], "low");
    assert_eq!(written["text"]["format"]["name"], "Answer");
}

#[test]
fn encrypted_thoughts_are_asked_of_models_that_think() {
    let include = |model: &str| body(&ChatRequest::default(), model, "openai-responses").unwrap()["include"].is_array();
    assert!(["o3", "o4-mini", "gpt-5", "gpt-5-mini"].into_iter().all(include));
    assert!(!["gpt-4o", "gpt-5-chat-latest", "omni", "o"].into_iter().any(include));
}

#[test]
fn what_cannot_be_sent_is_an_error_that_names_it() {
    let options = [
        ChatOptions { seed: Some(1), ..ChatOptions::default() },
        ChatOptions { stop: vec!["x".into()], ..ChatOptions::default() },
        ChatOptions { reasoning: Reasoning::Budget(1), ..ChatOptions::default() },
    ];
    let mut errors = options
        .map(|options| {
            body(&ChatRequest { options, ..ChatRequest::default() }, "m", "openai-responses").unwrap_err().to_string()
        })
        .to_vec();
    let audio = Content::Data { mime_type: "audio/wav".into(), data: vec![] };
    for role in [Role::User, Role::System] {
        let messages = [ChatMessage::new(role, [audio.clone()])].into();
        errors.push(
            body(&ChatRequest { messages, ..ChatRequest::default() }, "m", "openai-responses").unwrap_err().to_string(),
        );
    }
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn a_request_says_what_it_is_asked_to_or_what_it_cannot() {
    let item = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
    let requests =
        cases::render("openai-responses", "gpt-test", &item, |request| body(request, "gpt-test", "openai-responses"));
    insta::assert_snapshot!(requests);
}

#[test]
fn a_choice_of_no_tool_is_said_only_where_there_are_tools() {
    let options = ChatOptions { tool_choice: ToolChoice::None, ..ChatOptions::default() };
    let written = body(&ChatRequest { options, ..ChatRequest::default() }, "m", "openai-responses").unwrap();
    assert_eq!(written.get("tool_choice"), None);
}
