//! What the spans of agents, model calls, tool calls and stored runs show, and what they do not.

#[path = "support/spans.rs"]
mod spans;

use std::sync::Arc;

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatOptions, ChatRequest, ChatUpdate, Content,
    Error, ErrorKind, Format, Instructions, MemoryStore, ParallelAgent, Result, Role, RunContext, Runner, Session,
    StopReason, ToolCall, ToolContext, ToolOutput, Update, Usage, agent_tool,
    testing::{PairingClient, ScriptedClient},
    tool_fn,
};
use futures::{StreamExt, stream, stream::BoxStream};
use serde_json::{Value, json};

use crate::spans::Spans;

const SHOWN: &[&str] = &[
    "agent.step",
    "agent.stop_reason",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.response.finish_reasons",
    "error.type",
    "otel.status_code",
];

#[tokio::test]
async fn a_run_holds_its_agent_which_holds_its_model_and_tool_calls() {
    let (spans, _guard) = Spans::capture();
    let client = ScriptedClient::new()
        .reply(calls(&[("c1", "look"), ("c2", "fail")]), tokens(7, 3))
        .reply(ChatMessage::assistant("blue"), tokens(20, 4));
    let agent = ChatAgent::new("painter", client, ChatAgentOptions::default()).tool(look()).tool(failing());
    let runner = Runner::new(agent, MemoryStore::new());

    let cx = RunContext::default();
    let updates: Vec<Result<Update>> = runner.run("chat-42", ChatMessage::user("hi"), cx.clone()).collect().await;

    assert!(matches!(updates.last(), Some(Ok(Update::Done(StopReason::Completed)))));
    insta::assert_snapshot!(spans.tree(SHOWN), @"
    run painter agent.stop_reason=Completed gen_ai.usage.input_tokens=27 gen_ai.usage.output_tokens=7
      invoke_agent painter agent.stop_reason=Completed gen_ai.usage.input_tokens=27 gen_ai.usage.output_tokens=7
        chat scripted agent.step=1 gen_ai.usage.input_tokens=7 gen_ai.usage.output_tokens=3 gen_ai.response.finish_reasons=tool_call
        execute_tool look
        execute_tool fail error.type=tool_error otel.status_code=ERROR
        chat scripted agent.step=2 gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=4 gen_ai.response.finish_reasons=stop
    ");
    let run = cx.id().to_string();
    insta::assert_snapshot!(spans.fields().replace(&run, "[run]"), @"
    run.agent.run=[run]
    run.agent.stop_reason=Completed
    run.gen_ai.agent.name=painter
    run.gen_ai.conversation.id=chat-42
    run.gen_ai.usage.input_tokens=27
    run.gen_ai.usage.output_tokens=7
    run.otel.name=run painter
    invoke_agent.agent.run=[run]
    invoke_agent.agent.stop_reason=Completed
    invoke_agent.gen_ai.agent.name=painter
    invoke_agent.gen_ai.operation.name=invoke_agent
    invoke_agent.gen_ai.usage.input_tokens=27
    invoke_agent.gen_ai.usage.output_tokens=7
    invoke_agent.otel.name=invoke_agent painter
    chat.agent.step=1
    chat.gen_ai.operation.name=chat
    chat.gen_ai.request.model=scripted
    chat.gen_ai.response.finish_reasons=tool_call
    chat.gen_ai.response.model=scripted
    chat.gen_ai.usage.cache_read.input_tokens=0
    chat.gen_ai.usage.input_tokens=7
    chat.gen_ai.usage.output_tokens=3
    chat.gen_ai.usage.reasoning.output_tokens=0
    chat.otel.kind=client
    chat.otel.name=chat scripted
    execute_tool.gen_ai.operation.name=execute_tool
    execute_tool.gen_ai.tool.call.id=c1
    execute_tool.gen_ai.tool.name=look
    execute_tool.gen_ai.tool.type=function
    execute_tool.otel.name=execute_tool look
    execute_tool.error.type=tool_error
    execute_tool.gen_ai.operation.name=execute_tool
    execute_tool.gen_ai.tool.call.id=c2
    execute_tool.gen_ai.tool.name=fail
    execute_tool.gen_ai.tool.type=function
    execute_tool.otel.name=execute_tool fail
    execute_tool.otel.status_code=ERROR
    chat.agent.step=2
    chat.gen_ai.operation.name=chat
    chat.gen_ai.request.model=scripted
    chat.gen_ai.response.finish_reasons=stop
    chat.gen_ai.response.model=scripted
    chat.gen_ai.usage.cache_read.input_tokens=0
    chat.gen_ai.usage.input_tokens=20
    chat.gen_ai.usage.output_tokens=4
    chat.gen_ai.usage.reasoning.output_tokens=0
    chat.otel.kind=client
    chat.otel.name=chat scripted
    ");
}

#[tokio::test]
async fn the_service_is_shown_if_it_is_known() {
    let (spans, _guard) = Spans::capture();
    let client: Box<dyn ChatClient> = Box::new(Arc::new(PairingClient::new(Failing)));
    let agent = ChatAgent::new("painter", client, ChatAgentOptions::default());

    agent.ask(&mut Session::new(), "hi").await.unwrap_err();

    assert!(spans.fields().lines().any(|line| line == "chat.gen_ai.provider.name=fail.ing"));
}

#[tokio::test]
async fn a_request_s_options_are_shown() {
    let (spans, _guard) = Spans::capture();
    let chat = ChatOptions {
        model: Some("other".to_owned()),
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_output_tokens: Some(100),
        seed: Some(7),
        format: Format::of::<Vec<String>>(),
        ..ChatOptions::default()
    };
    let options = ChatAgentOptions { chat, ..ChatAgentOptions::default() };
    let agent = ChatAgent::new("painter", ScriptedClient::new().says("[]"), options);

    agent.ask(&mut Session::new(), "hi").await.unwrap();

    let requested: Vec<String> = spans
        .fields()
        .lines()
        .filter(|line| line.starts_with("chat.gen_ai.request") || line.contains("output.type"))
        .map(str::to_owned)
        .collect();
    insta::assert_snapshot!(requested.join("\n"), @"
    chat.gen_ai.output.type=json
    chat.gen_ai.request.max_tokens=100
    chat.gen_ai.request.model=other
    chat.gen_ai.request.seed=7
    chat.gen_ai.request.temperature=0.5
    chat.gen_ai.request.top_p=0.9
    ");
}

#[tokio::test]
async fn agents_in_branches_and_tools_are_inside_those_that_run_them() {
    let (spans, _guard) = Spans::capture();
    let says = |name: &str| ChatAgent::new(name, ScriptedClient::new().says("done"), ChatAgentOptions::default());
    let client = ScriptedClient::new().calls("c1", "helper", json!({ "request": "help" })).says("done");
    let boss = ChatAgent::new("boss", client, ChatAgentOptions::default()).tool(agent_tool(says("helper")));
    let agent = ParallelAgent::new("both").branch(boss).branch(says("other"));

    agent.ask(&mut Session::new(), "hi").await.unwrap();

    insta::assert_snapshot!(spans.tree(&[]), @"
    invoke_agent both
      invoke_agent boss
        chat scripted
        execute_tool helper
          invoke_agent helper
            chat scripted
        chat scripted
      invoke_agent other
        chat scripted
    ");
}

#[tokio::test]
async fn a_failed_model_call_is_marked_up_to_the_run() {
    let (spans, _guard) = Spans::capture();
    let agent = ChatAgent::new("painter", Failing, ChatAgentOptions::default());
    let updates: Vec<Result<Update>> =
        Runner::new(agent, MemoryStore::new()).run("s", ChatMessage::user("hi"), RunContext::default()).collect().await;

    assert!(matches!(updates.last(), Some(Err(error)) if error.kind() == ErrorKind::Provider));
    insta::assert_snapshot!(spans.tree(SHOWN), @"
    run painter gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 error.type=Provider otel.status_code=ERROR
      invoke_agent painter gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 error.type=Provider otel.status_code=ERROR
        chat failing agent.step=1 error.type=Provider otel.status_code=ERROR
    ");
}

#[tokio::test]
async fn an_interrupted_call_says_what_interrupted_it() {
    let (spans, _guard) = Spans::capture();
    let cx = RunContext::default();
    let stop = cx.cancel().clone();
    let cancelling = tool_fn("stop", "Stops everything.", move |_: Value, _: ToolContext| {
        stop.cancel();
        std::future::pending::<Result<ToolOutput, agent_core::BoxError>>()
    });
    let client = ScriptedClient::new().calls("c1", "stop", json!({}));
    let agent = ChatAgent::new("painter", client, ChatAgentOptions::default()).tool(cancelling);
    let mut session = Session::new();
    session.push("hi");

    let response = agent.complete(&mut session, &cx).await.unwrap();

    assert_eq!(response.stop, StopReason::Cancelled);
    insta::assert_snapshot!(spans.tree(SHOWN), @"
    invoke_agent painter agent.stop_reason=Cancelled gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0
      chat scripted agent.step=1 gen_ai.usage.input_tokens=0 gen_ai.usage.output_tokens=0 gen_ai.response.finish_reasons=tool_call
      execute_tool stop agent.stop_reason=Cancelled
    ");
}

/// Every text of a run: what a leak would show.
const SECRETS: &[&str] =
    &["instructed", "prompted", "thought", "answered", "argued", "resulted", "described", "failed", "remembered"];

#[tokio::test]
async fn spans_show_no_words() {
    let shown = secret_run(RunContext::default()).await;
    let leaked: Vec<&&str> = SECRETS.iter().filter(|secret| shown.contains(&s3cret(secret))).collect();
    assert_eq!(leaked, Vec::<&&str>::new(), "{shown}");
}

#[tokio::test]
async fn spans_show_the_words_if_they_may() {
    let shown = secret_run(RunContext::default().with_content_in_spans()).await;
    let hidden: Vec<&&str> = SECRETS.iter().filter(|secret| !shown.contains(&s3cret(secret))).collect();
    assert_eq!(hidden, Vec::<&&str>::new(), "{shown}");
    let words = |name: &str| shown.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned)).unwrap();
    insta::assert_snapshot!(
        [
            words("chat.gen_ai.system_instructions="),
            words("chat.gen_ai.tool.definitions="),
            words("chat.gen_ai.input.messages="),
            words("chat.gen_ai.output.messages="),
            words("execute_tool.gen_ai.tool.call.arguments="),
            words("execute_tool.gen_ai.tool.call.result="),
        ].join("\n"),
        @r#"
    [{"content":"s3cret-instructed s3cret-remembered","type":"text"}]
    [{"description":"s3cret-described","name":"look","parameters":{"properties":{},"type":"object"},"type":"function"}]
    [{"parts":[{"content":"s3cret-prompted","type":"text"}],"role":"user"}]
    [{"finish_reason":"tool_call","parts":[{"content":"s3cret-thought","type":"reasoning"},{"arguments":{"at":"s3cret-argued"},"id":"c1","name":"look","type":"tool_call"},{"arguments":{"fail":true},"id":"c2","name":"look","type":"tool_call"}],"role":"assistant"}]
    {"at":"s3cret-argued"}
    s3cret-resulted
    "#
    );
}

/// A run whose texts are all secret, and everything that its spans and events show.
async fn secret_run(cx: RunContext) -> String {
    let (spans, _guard) = Spans::capture();
    let tool = tool_fn("look", s3cret("described"), |args: Value, _: ToolContext| async move {
        if args["fail"] == true { Err(s3cret("failed").into()) } else { Ok(s3cret("resulted")) }
    });
    let thinks = Content::Reasoning { text: s3cret("thought"), signature: None };
    let call = |id: &str, arguments| ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments };
    let client = ScriptedClient::new()
        .reply(
            ChatMessage::new(
                Role::Assistant,
                [
                    thinks,
                    Content::ToolCall(call("c1", json!({ "at": s3cret("argued") }))),
                    Content::ToolCall(call("c2", json!({ "fail": true }))),
                ],
            ),
            Usage::default(),
        )
        .says(s3cret("answered"));
    let options = ChatAgentOptions {
        instructions: Instructions::from(format!("{} {{memory}}", s3cret("instructed"))),
        output_key: Some("answer".to_owned()),
        ..ChatAgentOptions::default()
    };
    let agent = ChatAgent::new("painter", client, options).tool(tool);
    let mut session = Session::new().with_state("memory", s3cret("remembered"));
    session.push(s3cret("prompted"));
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap().text(), s3cret("answered"));

    // An error's text may quote a request.
    let mut session = Session::new();
    session.push(s3cret("prompted"));
    let failing = ChatAgent::new("painter", Failing, ChatAgentOptions::default());
    failing.complete(&mut session, &cx).await.unwrap_err();
    spans.fields()
}

fn s3cret(word: &str) -> String {
    format!("s3cret-{word}")
}

/// A service that is down, and quotes the request.
struct Failing;

impl ChatClient for Failing {
    fn model(&self) -> &'static str {
        "failing"
    }

    fn provider(&self) -> Option<&str> {
        Some("fail.ing")
    }

    fn stream(&self, _: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let error =
            Error::new(ErrorKind::Provider, format!("ask model `failing`: bad request: {}", s3cret("prompted")));
        stream::iter([Err(error)]).boxed()
    }
}

fn look() -> impl agent_core::Tool {
    tool_fn("look", "Looks.", |_: Value, _: ToolContext| async { Ok("sky") })
}

fn failing() -> impl agent_core::Tool {
    tool_fn("fail", "Fails.", |_: Value, _: ToolContext| async { Err::<ToolOutput, _>("no".into()) })
}

fn calls(calls: &[(&str, &str)]) -> ChatMessage {
    let call = |(id, name): &(&str, &str)| {
        Content::ToolCall(ToolCall { id: (*id).to_owned(), name: (*name).to_owned(), arguments: json!({}) })
    };
    ChatMessage::new(Role::Assistant, calls.iter().map(call).collect::<Vec<_>>())
}

fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}
