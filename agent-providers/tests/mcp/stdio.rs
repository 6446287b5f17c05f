//! Servers that are children.

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatMessage, RunContext, Session, StopReason, ToolOutput,
    testing::{PairingClient, ScriptedClient},
};
use agent_providers::{McpApproval, McpOptions};
use serde_json::json;

use crate::{call, command, context, named, started, told};

fn agent(model: ScriptedClient, tools: Vec<std::sync::Arc<dyn agent_core::Tool>>) -> ChatAgent {
    let agent = ChatAgent::new("caller", PairingClient::new(model), ChatAgentOptions::default());
    tools.into_iter().fold(agent, ChatAgent::tool)
}

fn results(session: &Session) -> String {
    let results = session.messages().iter().flat_map(ChatMessage::tool_results).map(|result| {
        told(&ToolOutput { contents: result.contents.clone(), is_error: result.is_error, ..ToolOutput::default() })
    });
    results.collect::<Vec<_>>().join("\n---\n")
}

#[tokio::test]
async fn an_agent_calls_the_tools_of_a_server_and_reads_what_goes_wrong() {
    let tools = started("plain", McpOptions::default()).await;
    let model = ScriptedClient::new()
        .calls("1", "echo", json!({ "text": "hello" }))
        .calls("2", "add", json!({ "a": 1, "b": 2 }))
        .calls("3", "fail", json!(null))
        .calls("4", "refuse", json!({}))
        .calls("5", "echo", json!("hello"))
        .says("done");
    let mut session = Session::new();
    let response = agent(model, tools.tools().await.unwrap()).ask(&mut session, "Go.").await.unwrap();
    assert_eq!((response.stop, response.text().as_str()), (StopReason::Completed, "done"));
    insta::assert_snapshot!(results(&session), @r#"
    hello
    ---
    {"sum":3}
    ---
    error: the disk is full
    ---
    error: the MCP server `SERVER` refused: not today (code -32601)
    ---
    error: invalid arguments: an object is expected, not "hello"
    "#);
    tools.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_an_error_result_and_the_next_call_starts_it_again() {
    let tools = started("plain", McpOptions::default()).await;
    let model =
        ScriptedClient::new().calls("1", "die", json!({})).calls("2", "echo", json!({ "text": "back" })).says("done");
    let mut session = Session::new();
    let response = agent(model, tools.tools().await.unwrap()).ask(&mut session, "Go.").await.unwrap();
    assert_eq!((response.stop, response.text().as_str()), (StopReason::Completed, "done"));
    insta::assert_snapshot!(results(&session), @"
    error: the MCP server `SERVER` went away before it answered: it ended with exit code 3; its last words:
    thread 'main' panicked: out of cheese
    whether the call took effect is not known; the next call tries to reach the server again
    ---
    back
    ");
}

#[tokio::test]
async fn a_key_that_a_server_was_given_is_in_none_of_its_last_words() {
    let command = command("plain").env("ITS_KEY", "ada-lovelace");
    let tools = agent_providers::McpTools::stdio(command, McpOptions::default()).await.unwrap();
    insta::assert_snapshot!(told(&call(&*named(&tools, "die").await, json!({})).await), @"
    error: the MCP server `SERVER` went away before it answered: it ended with exit code 3; its last words:
    thread 'main' panicked: out of cheese
    key=[key]
    whether the call took effect is not known; the next call tries to reach the server again
    ");
}

#[tokio::test]
async fn tools_have_their_schema_a_name_that_services_take_and_approval_by_pattern() {
    let approval = McpApproval::Only(vec!["first*".to_owned()]);
    let options = McpOptions { prefix: "s.".to_owned(), approval, ..McpOptions::default() };
    let tools = started("has pages", options).await.tools().await.unwrap();
    let specs = tools.iter().map(|tool| {
        let spec = tool.spec();
        format!(
            "{} {} {} {}",
            spec.name,
            spec.needs_approval,
            spec.parameters,
            spec.description.get(..10).unwrap_or_default()
        )
    });
    insta::assert_snapshot!(specs.collect::<Vec<_>>().join("\n"), @r#"
    s_first_one_53d22211 true {"properties":{},"type":"object"} Does first
    s_same false {"properties":{},"type":"object"} Does same.
    s_first_one true {"properties":{},"type":"object"} Does first
    s_longlonglonglonglonglonglonglonglonglonglonglonglongl_4d924724 false {"properties":{},"type":"object"} Does longl
    "#);
}

#[tokio::test]
async fn a_renamed_tool_is_called_by_its_own_name() {
    let tools = started("plain", McpOptions { prefix: "a b/".to_owned(), ..McpOptions::default() }).await;
    let echo = named(&tools, "a_b_echo").await;
    assert_eq!(call(&*echo, json!({ "text": "hi" })).await, ToolOutput::text("hi"));
}

#[tokio::test]
async fn a_tool_that_needs_approval_waits_for_it() {
    let tools = started("plain", McpOptions { approval: McpApproval::All, ..McpOptions::default() }).await;
    let model = ScriptedClient::new().calls("1", "echo", json!({ "text": "hello" })).says("done");
    let agent = agent(model, tools.tools().await.unwrap());
    let mut session = Session::new();
    assert_eq!(agent.ask(&mut session, "Go.").await.unwrap().stop, StopReason::AwaitingApproval);
    assert_eq!(results(&session), "");
    agent.ask(&mut session, ChatMessage::approve("1")).await.unwrap();
    assert_eq!(results(&session), "hello");
}

#[tokio::test]
async fn a_list_that_changed_is_told_and_a_tool_that_is_gone_is_an_error_result() {
    let tools = started("plain", McpOptions::default()).await;
    assert!(!tools.have_changed());
    call(&*named(&tools, "grow").await, json!({})).await;
    assert!(tools.have_changed());
    let extra = named(&tools, "extra").await;
    assert!(!tools.have_changed());
    assert_eq!(call(&*extra, json!({})).await, ToolOutput::text("extra"));
    call(&*named(&tools, "shrink").await, json!({})).await;
    insta::assert_snapshot!(told(&call(&*extra, json!({})).await), @"error: the MCP server `SERVER` refused: unknown tool extra (code -32601)");
}

#[tokio::test]
async fn a_run_that_is_cancelled_tells_the_server_and_ends() {
    let tools = started("plain", McpOptions::default()).await;
    let [hang, hanging, cancelled] =
        [named(&tools, "hang").await, named(&tools, "hanging").await, named(&tools, "cancelled").await];
    let run = RunContext::default();
    let until = async |tool: &dyn agent_core::Tool| while call(tool, json!({})).await != ToolOutput::text("1") {};
    let stop = async {
        until(&*hanging).await;
        run.cancel().cancel();
    };
    let (output, ()) = tokio::join!(hang.call(context("hang", json!({}), &run)), stop);
    assert_eq!(output.unwrap_err().to_string(), "the server was told to stop: cancelled");
    until(&*cancelled).await;

    // An agent drops a call that is interrupted.
    let model = ScriptedClient::new().calls("1", "hang", json!({}));
    let agent = agent(model, tools.tools().await.unwrap());
    let run = RunContext::default();
    let mut session = Session::new();
    session.push("Go.");
    let stop = async {
        while call(&*hanging, json!({})).await != ToolOutput::text("2") {}
        run.cancel().cancel();
    };
    let (response, ()) = tokio::join!(agent.complete(&mut session, &run), stop);
    assert_eq!(response.unwrap().stop, StopReason::Cancelled);
    while call(&*cancelled, json!({})).await != ToolOutput::text("2") {}
}

#[tokio::test]
async fn what_a_server_asks_of_its_client_is_refused() {
    let tools = started("plain", McpOptions::default()).await;
    insta::assert_snapshot!(told(&call(&*named(&tools, "ask").await, json!({})).await), @r#"
    ["asked-0","sampling/createMessage"]
    ["asked-1",{"roots":[]}]
    ["asked-2",{"action":"decline"}]
    "#);
}

#[tokio::test]
async fn a_child_sees_its_directory_and_no_keys() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let command = command("plain").env("ITS_KEY", "k").dir(&dir);
    assert!(!format!("{command:?}").contains("\"k\""));
    let tools = agent_providers::McpTools::stdio(command, McpOptions::default()).await.unwrap();
    let place: serde_json::Value =
        serde_json::from_str(&told(&call(&*named(&tools, "place").await, json!({})).await)).unwrap();
    assert_eq!(place["dir"], json!(dir));
    let variables: Vec<&str> = place["variables"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    assert!(variables.contains(&"ITS_KEY") && variables.contains(&"PATH"));
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok() && !variables.contains(&"CARGO_MANIFEST_DIR"));
}
