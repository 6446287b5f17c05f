//! How requests are written.

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, Content, Format, Reasoning, ReasoningEffort, Role, ToolChoice, ToolResult,
    ToolSpec,
};
use serde_json::json;

use super::answers::tool_call;
use crate::{
    cases,
    openai_chat::map::{Flavor, body},
};

fn full_request() -> ChatRequest {
    let messages = [
        ChatMessage::system("Be brief."),
        ChatMessage::new(
            Role::User,
            [
                Content::Text("What is this?".into()),
                Content::Data { mime_type: "image/png".into(), data: vec![1, 2, 3] },
                Content::Uri { mime_type: None, uri: "https://example.com/a.png".into() },
                Content::Data { mime_type: "audio/wav".into(), data: vec![1] },
                Content::Data { mime_type: "application/pdf".into(), data: vec![1] },
            ],
        ),
        ChatMessage::new(
            Role::Assistant,
            [
                Content::Reasoning { text: "hm".into(), signature: None },
                Content::Text("I look. ".into()),
                tool_call("a", "look", json!({ "x": 1 })),
                tool_call("b", "look", json!({})),
            ],
        ),
        result("a", "a cat", false),
        result("b", "no eyes", true),
        ChatMessage::new(Role::Assistant, [Content::Reasoning { text: "hm".into(), signature: None }]),
    ];
    ChatRequest {
        instructions: Some("Answer.".into()),
        messages: messages.into(),
        tools: [ToolSpec {
            name: "look".into(),
            description: "Looks.".into(),
            parameters: json!({ "type": "object", "properties": {} }),
            needs_approval: true,
        }]
        .into(),
        options: ChatOptions {
            temperature: Some(0.5),
            top_p: Some(0.25),
            max_output_tokens: Some(100),
            seed: Some(7),
            stop: vec!["END".into()],
            reasoning: Reasoning::Effort(ReasoningEffort::Low),
            tool_choice: ToolChoice::Tool("look".into()),
            format: Format::JsonSchema {
                name: "An Answer".into(),
                schema: json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            },
            cache_prompt: true,
            extra: [("top_k".to_owned(), json!(5))].into_iter().collect(),
            model: None,
        },
    }
}

fn result(call_id: &str, text: &str, is_error: bool) -> ChatMessage {
    let contents = vec![Content::Text(text.into())];
    ChatMessage::new(Role::Tool, [Content::ToolResult(ToolResult { call_id: call_id.into(), contents, is_error })])
}

#[test]
fn a_request_says_all_that_it_is_asked_to() {
    insta::assert_json_snapshot!("request-openai", body(&full_request(), "m", Flavor::OpenAi, "openai").unwrap());
    insta::assert_json_snapshot!("request-compatible", body(&full_request(), "m", Flavor::Compatible, "here").unwrap());
}

#[test]
fn what_cannot_be_sent_is_an_error_that_names_it() {
    let with = |content: Content| ChatRequest {
        messages: [ChatMessage::new(Role::User, [content])].into(),
        ..ChatRequest::default()
    };
    let mut budget = ChatRequest::default();
    budget.options.reasoning = Reasoning::Budget(1000);
    let image = Content::Data { mime_type: "image/png".into(), data: vec![1] };
    let image_result = Content::ToolResult(ToolResult { call_id: "a".into(), contents: vec![image], is_error: false });
    let requests = [
        budget,
        with(Content::Data { mime_type: "video/mp4".into(), data: vec![] }),
        with(Content::Uri { mime_type: Some("video/mp4".into()), uri: "https://example.com/v".into() }),
        ChatRequest { messages: [ChatMessage::new(Role::Tool, [image_result])].into(), ..ChatRequest::default() },
    ];
    let errors = requests.map(|request| {
        let error = body(&request, "m", Flavor::OpenAi, "openai").unwrap_err();
        assert_eq!(error.kind(), agent_core::ErrorKind::Unsupported);
        error.to_string()
    });
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn a_request_says_what_it_is_asked_to_or_what_it_cannot() {
    let item = json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "gAAA" }] });
    let requests =
        cases::render("openai", "gpt-test", &item, |request| body(request, "gpt-test", Flavor::OpenAi, "openai"));
    insta::assert_snapshot!(requests);
}

#[test]
fn fields_of_the_service_s_own_are_beside_those_that_are_set() {
    let extra = json!({ "stream_options": { "include_obfuscation": false } }).as_object().cloned().unwrap();
    let options = ChatOptions { extra, ..ChatOptions::default() };
    let written = body(&ChatRequest { options, ..ChatRequest::default() }, "m", Flavor::OpenAi, "openai").unwrap();
    assert_eq!(written["stream_options"], json!({ "include_usage": true, "include_obfuscation": false }));
}

#[test]
fn a_choice_of_no_tool_is_said_only_where_there_are_tools() {
    let mut request = full_request();
    request.options.tool_choice = ToolChoice::None;
    let written = |request: &ChatRequest| body(request, "m", Flavor::OpenAi, "openai").unwrap();
    assert_eq!(written(&request)["tool_choice"], "none");
    request.tools = [].into();
    assert_eq!(written(&request).get("tool_choice"), None);
}

#[test]
fn where_agents_spoke_last_a_compatible_service_gets_a_users_word() {
    let last = |messages: Vec<ChatMessage>, flavor| {
        let request = ChatRequest { messages: messages.into(), ..ChatRequest::default() };
        body(&request, "m", flavor, "here").unwrap()["messages"].as_array().unwrap().last().unwrap().clone()
    };
    let said = || vec![ChatMessage::user("go"), ChatMessage::assistant("one"), ChatMessage::assistant("two")];
    assert_eq!(last(said(), Flavor::Compatible), json!({ "role": "user", "content": "Continue." }));
    assert_eq!(last(said(), Flavor::OpenAi), json!({ "role": "assistant", "content": "two" }));
    let asked = vec![ChatMessage::user("go")];
    assert_eq!(last(asked, Flavor::Compatible), json!({ "role": "user", "content": "go" }));
}
