//! Requests that every protocol is shown: each is one thing to say.

use std::{fs::OpenOptions, io::Write};

use agent_core::{
    ChatMessage, ChatOptions, ChatRequest, Content, Format, Reasoning, ReasoningEffort, Result, Role, ToolCall,
    ToolChoice, ToolResult, ToolSpec,
};
use schemars::JsonSchema;
use serde_json::{Value, json};

/// The requests, as JSON for a snapshot, or what cannot be sent. `item` is one of the protocol's own, for replay. Where the variable
/// `REQUESTS_FILE` names a file, each body is also appended there, for `tests/peers/validate_requests.py`.
pub(crate) fn render(
    protocol: &str,
    model: &str,
    item: &Value,
    body: impl Fn(&ChatRequest) -> Result<Value>,
) -> String {
    let mut lines = Vec::new();
    for (name, request) in talks(protocol, model, item).into_iter().chain(options()) {
        lines.push(match body(&request) {
            Ok(body) => {
                note(protocol, name, &body);
                format!("{name}:\n{}", serde_json::to_string_pretty(&body).unwrap())
            }
            Err(error) => format!("{name}: {error}"),
        });
    }
    lines.join("\n\n")
}

fn note(protocol: &str, name: &str, body: &Value) {
    let Ok(path) = std::env::var("REQUESTS_FILE") else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let line = json!({ "protocol": protocol, "case": name, "body": body });
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// An answer with what dialects differ in.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Report {
    /// Of the whole.
    title: String,
    pages: Option<u32>,
    state: State,
    authors: Vec<Author>,
    reviewer: Option<Author>,
    score: f64,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum State {
    Draft,
    Done,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Author {
    name: String,
    email: Option<String>,
}

/// Conversations.
fn talks(protocol: &str, model: &str, item: &Value) -> Vec<(&'static str, ChatRequest)> {
    let plain = || ChatRequest { messages: [ChatMessage::user("Hello.")].into(), ..ChatRequest::default() };
    let talk = |messages: Vec<ChatMessage>| ChatRequest { messages: messages.into(), ..ChatRequest::default() };
    let native = |by: &str| Content::Native { provider: protocol.into(), model: by.into(), value: item.clone() };
    let image = Content::Data { mime_type: "image/png".into(), data: vec![0x89, b'P', b'N', b'G'] };
    let link = Content::Uri { mime_type: Some("image/jpeg".into()), uri: "https://example.com/cat.jpg".into() };
    let thoughts = |signature: Option<&str>| Content::Reasoning {
        text: "Two cities.".into(),
        signature: signature.map(str::to_owned),
    };
    vec![
        ("text", plain()),
        (
            "instructions, and orders inside the conversation",
            ChatRequest {
                instructions: Some("Be brief.".into()),
                ..talk(vec![
                    "Hello.".into(),
                    ChatMessage::assistant("Hi."),
                    ChatMessage::system("Rhyme."),
                    "Go.".into(),
                ])
            },
        ),
        ("parallel calls and their results", ChatRequest { tools: tools(), ..talk(weather(vec![], thoughts(None))) }),
        (
            "an invalid call",
            talk(vec![
                "Go.".into(),
                ChatMessage::new(Role::Assistant, [invalid("")]),
                result("call.1", "no such tool", true),
                ChatMessage::new(Role::Assistant, [invalid("look")]),
                result("call.1", "", true),
                ChatMessage::new(Role::Assistant, [call("call.1", "", json!({}))]),
                result("call.1", "no such tool", true),
            ]),
        ),
        (
            "thoughts and items of its own",
            ChatRequest { tools: tools(), ..talk(weather(vec![native(model)], thoughts(Some("EqQB")))) },
        ),
        ("items of another model", talk(weather(vec![native("another")], thoughts(None)))),
        ("an image", talk(vec![ChatMessage::new(Role::User, [Content::Text("What is it?".into()), image.clone()])])),
        ("a link to an image", talk(vec![ChatMessage::new(Role::User, [link])])),
        (
            "a document",
            talk(vec![ChatMessage::new(
                Role::User,
                [Content::Data { mime_type: "application/pdf".into(), data: b"%PDF".to_vec() }],
            )]),
        ),
        (
            "an image as a result",
            talk(vec![
                "Look.".into(),
                ChatMessage::new(Role::Assistant, [call("a", "look", json!({}))]),
                ChatMessage::new(
                    Role::Tool,
                    [Content::ToolResult(ToolResult {
                        call_id: "a".into(),
                        contents: vec![Content::Text("seen".into()), image],
                        is_error: false,
                    })],
                ),
            ]),
        ),
        (
            "the model spoke last",
            talk(vec!["Hello.".into(), ChatMessage::assistant("Hi."), ChatMessage::assistant("So?")]),
        ),
        ("several words in a row", talk(vec!["Hello.".into(), "  ".into(), "Are you there?".into()])),
        ("nothing was said", talk(vec![])),
        (
            "a sound",
            talk(vec![ChatMessage::new(Role::User, [Content::Data { mime_type: "audio/ogg".into(), data: vec![1] }])]),
        ),
        ("an approval", talk(vec![ChatMessage::approve("a")])),
    ]
}

/// Options.
fn options() -> Vec<(&'static str, ChatRequest)> {
    let plain = || ChatRequest { messages: [ChatMessage::user("Hello.")].into(), ..ChatRequest::default() };
    let with = |options: ChatOptions| ChatRequest { options, tools: tools(), ..plain() };
    let choose = |tool_choice| with(ChatOptions { tool_choice, ..ChatOptions::default() });
    let think = |reasoning| ChatRequest { options: ChatOptions { reasoning, ..ChatOptions::default() }, ..plain() };
    vec![
        (
            "all options",
            with(ChatOptions {
                temperature: Some(0.5),
                top_p: Some(0.9),
                max_output_tokens: Some(100),
                stop: vec!["END".into()],
                cache_prompt: true,
                extra: json!({ "metadata": { "user_id": "u1" } }).as_object().cloned().unwrap(),
                ..ChatOptions::default()
            }),
        ),
        ("a seed", with(ChatOptions { seed: Some(7), ..ChatOptions::default() })),
        ("a tool must be called", choose(ToolChoice::Required)),
        ("one tool must be called", choose(ToolChoice::Tool("weather".into()))),
        ("no tool may be called", choose(ToolChoice::None)),
        (
            "a schema",
            ChatRequest { options: ChatOptions { format: Format::of::<Report>(), ..Default::default() }, ..plain() },
        ),
        ("thinking by grade", think(Reasoning::Effort(ReasoningEffort::High))),
        ("the least thinking", think(Reasoning::Effort(ReasoningEffort::Minimal))),
        ("no thinking", think(Reasoning::Effort(ReasoningEffort::None))),
        ("thinking by budget", think(Reasoning::Budget(2048))),
    ]
}

fn tools() -> std::sync::Arc<[ToolSpec]> {
    let parameters = json!({
        "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"],
    });
    let weather = |name: &str| ToolSpec {
        name: name.into(),
        description: format!("The {name} of a city."),
        parameters: parameters.clone(),
        needs_approval: false,
    };
    [weather("weather"), weather("time")].into()
}

fn call(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
}

fn invalid(name: &str) -> Content {
    Content::InvalidToolCall { id: "call.1".into(), name: name.into(), raw: "{\"x".into(), why: "cut off".into() }
}

fn result(call_id: &str, text: &str, is_error: bool) -> ChatMessage {
    let contents = if text.is_empty() { vec![] } else { vec![Content::Text(text.into())] };
    ChatMessage::new(Role::Tool, [Content::ToolResult(ToolResult { call_id: call_id.into(), contents, is_error })])
}

/// A conversation with two calls at once, what came before the calls in the model's message, and more words after.
fn weather(natives: Vec<Content>, thoughts: Content) -> Vec<ChatMessage> {
    let mut said = vec![thoughts, Content::Text("I look.".into())];
    said.extend(natives);
    said.push(call("a", "weather", json!({ "city": "Oslo" })));
    said.push(call("b", "time", json!({ "city": "Rome" })));
    vec![
        "Weather in Oslo, time in Rome?".into(),
        ChatMessage::new(Role::Assistant, said),
        result("a", "rain", false),
        result("b", "no such city", true),
        "Well?".into(),
    ]
}
