//! Tools of MCP servers that others wrote: the protocol's reference servers, and its Python SDK over HTTP.

use std::{
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use agent_core::{
    AgentExt, ChatAgent, ChatAgentOptions, ChatMessage, Content, RunContext, Session, StopReason, Tool, ToolResult,
    testing::{PairingClient, ScriptedClient},
};
use agent_providers::{McpApproval, McpCommand, McpOptions, McpTools};
use serde_json::{Value, json};

/// Where the servers are installed: npm packages, and a Python environment named `venv`.
fn installed() -> Option<PathBuf> {
    crate::service("MCP_PEERS").map(PathBuf::from)
}

fn program(installed: &Path, server: &str) -> PathBuf {
    installed.join(format!("node_modules/@modelcontextprotocol/{server}/dist/index.js"))
}

fn node(installed: &Path, server: &str) -> McpCommand {
    McpCommand::new("node").arg(program(installed, server))
}

fn python(installed: &Path, program: &str) -> McpCommand {
    McpCommand::new(installed.join("venv/bin").join(program))
}

fn agent(model: ScriptedClient, tools: Vec<Arc<dyn Tool>>) -> ChatAgent {
    let agent = ChatAgent::new("caller", PairingClient::new(model), ChatAgentOptions::default());
    tools.into_iter().fold(agent, ChatAgent::tool)
}

/// Makes these calls in one run, one after the other, which goes on whatever they come to; their results.
async fn results(tools: &McpTools, calls: &[(&str, Value)]) -> Vec<ToolResult> {
    results_of(script(calls), tools).await
}

fn script(calls: &[(&str, Value)]) -> ScriptedClient {
    let model = calls.iter().enumerate().fold(ScriptedClient::new(), |model, (n, (name, arguments))| {
        model.calls(format!("call-{n}"), *name, arguments.clone())
    });
    model.says("done")
}

async fn results_of(model: ScriptedClient, tools: &McpTools) -> Vec<ToolResult> {
    let agent = agent(model, tools.tools().await.unwrap());
    let mut session = Session::new();
    let response = agent.ask(&mut session, "Go.").await.unwrap();
    assert_eq!((response.stop, response.text().as_str()), (StopReason::Completed, "done"));
    session.messages().iter().flat_map(ChatMessage::tool_results).cloned().collect()
}

fn told(results: &[ToolResult]) -> String {
    let line = |result: &ToolResult| {
        let parts = result.contents.iter().map(|content| match content {
            Content::Text(text) => text.clone(),
            Content::Data { mime_type, data } => format!("<{mime_type}, {} bytes>", data.len()),
            other => format!("{other:?}"),
        });
        let parts = parts.collect::<Vec<_>>().join(" | ");
        if result.is_error { format!("error: {parts}") } else { parts }
    };
    results.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn everything() {
    let Some(installed) = installed() else { return };
    let tools = McpTools::stdio(node(&installed, "server-everything"), McpOptions::default()).await.unwrap();
    let calls = [
        ("echo", json!({ "message": "hello" })),
        ("get-sum", json!({ "a": 1, "b": 2 })),
        ("get-sum", json!({ "a": "one" })),
        ("get-structured-content", json!({ "location": "Chicago" })),
        ("get-tiny-image", json!({})),
        ("get-annotated-message", json!({ "messageType": "error", "includeImage": true })),
        ("get-resource-links", json!({ "count": 2 })),
        ("get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 })),
        ("trigger-long-running-operation", json!({ "duration": 0.2, "steps": 2 })),
    ];
    let told = told(&results(&tools, &calls).await);
    let (before, after) = told.split_once(" created at ").unwrap();
    let told = format!("{before} created at TIME {}", &after[after.find('|').unwrap()..]);
    insta::assert_snapshot!(told, @r#"
    Echo: hello
    The sum of 1 and 2 is 3.
    error: MCP error -32602: Input validation error: Invalid arguments for tool get-sum: Invalid input: expected number, received string at a
    Invalid input: expected number, received undefined at b
    {"temperature":36,"conditions":"Light rain / drizzle","humidity":82}
    Here's the image you requested: | <image/png, 4033 bytes> | The image above is the MCP logo.
    Error: Operation failed | <image/png, 4033 bytes>
    Here are 2 resource links to resources available in this server: | [demo://resource/dynamic/blob/1] Blob Resource 1 (text/plain): Resource 1: plaintext resource | [demo://resource/dynamic/text/2] Text Resource 2 (text/plain): Resource 2: plaintext resource
    Returning resource reference for Resource 1: | [demo://resource/dynamic/text/1]
    Resource 1: This is a plaintext resource created at TIME | You can access this resource using the URI: demo://resource/dynamic/text/1
    Long running operation completed. Duration: 0.2 seconds, Steps: 2.
    "#);
    tools.close().await;
}

#[tokio::test]
async fn everything_killed_in_a_call() {
    let Some(installed) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    // The shell writes its process's number, which is the server's.
    let server = McpCommand::new("sh")
        .args(["-c", "echo $$ > \"$0\"; exec node \"$1\""])
        .arg(&pid)
        .arg(program(&installed, "server-everything"));
    let tools = McpTools::stdio(server, McpOptions::default()).await.unwrap();
    let calls = [
        ("trigger-long-running-operation", json!({ "duration": 300, "steps": 3 })),
        ("echo", json!({ "message": "back" })),
    ];
    let model = script(&calls);
    let kill = async {
        while model.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The call is on its way, or under way: both times it has no answer.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let pid = std::fs::read_to_string(&pid).unwrap();
        assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    };
    let (results, ()) = tokio::join!(results_of(model.clone(), &tools), kill);
    let told = told(&results);
    assert!(told.contains("went away before it answered: it was ended: signal: 9 (SIGKILL)"), "{told}");
    assert!(told.ends_with("\nEcho: back"), "{told}");
}

#[tokio::test]
async fn everything_cancelled_in_a_call() {
    let Some(installed) = installed() else { return };
    let tools = McpTools::stdio(node(&installed, "server-everything"), McpOptions::default()).await.unwrap();
    let model = ScriptedClient::new().calls("1", "trigger-long-running-operation", json!({ "duration": 300 }));
    let agent = agent(model, tools.tools().await.unwrap());
    let (mut session, run) = (Session::new(), RunContext::default());
    session.push("Go.");
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        run.cancel().cancel();
    };
    let (response, ()) = tokio::join!(agent.complete(&mut session, &run), cancel);
    assert_eq!(response.unwrap().stop, StopReason::Cancelled);
    let after = results(&tools, &[("echo", json!({ "message": "still here" }))]).await;
    assert_eq!(told(&after), "Echo: still here");
}

#[tokio::test]
async fn filesystem() {
    let Some(installed) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let approval = McpApproval::AllBut(vec!["read_*".to_owned(), "list_*".to_owned()]);
    let options = McpOptions { prefix: "files_".to_owned(), approval, ..McpOptions::default() };
    let tools = McpTools::stdio(node(&installed, "server-filesystem").arg(&dir), options).await.unwrap();
    let file = dir.join("note.txt");
    let model = ScriptedClient::new()
        .calls("1", "files_write_file", json!({ "path": file, "content": "a lighthouse" }))
        .calls("2", "files_read_text_file", json!({ "path": file }))
        .calls("3", "files_read_text_file", json!({ "path": "/etc/hostname" }))
        .says("done");
    let agent = agent(model, tools.tools().await.unwrap());
    let mut session = Session::new();
    assert_eq!(agent.ask(&mut session, "Go.").await.unwrap().stop, StopReason::AwaitingApproval);
    assert!(!file.exists());
    assert_eq!(agent.ask(&mut session, ChatMessage::approve("1")).await.unwrap().stop, StopReason::Completed);
    let results: Vec<_> = session.messages().iter().flat_map(ChatMessage::tool_results).cloned().collect();
    let told = told(&results).replace(&*dir.to_string_lossy(), "DIR");
    insta::assert_snapshot!(told, @"
    Successfully wrote to DIR/note.txt
    a lighthouse
    error: Access denied - path outside allowed directories: /etc/hostname not in DIR
    ");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "a lighthouse");
}

#[tokio::test]
async fn memory() {
    let Some(installed) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server =
        node(&installed, "server-memory").env("MEMORY_FILE_PATH", &*dir.path().join("m.jsonl").to_string_lossy());
    let entity = json!({ "name": "Skarven", "entityType": "ship", "observations": ["has 120 seats"] });
    let tools = McpTools::stdio(server.clone(), McpOptions::default()).await.unwrap();
    results(&tools, &[("create_entities", json!({ "entities": [entity] }))]).await;
    tools.close().await;
    let tools = McpTools::stdio(server, McpOptions::default()).await.unwrap();
    let found = results(&tools, &[("search_nodes", json!({ "query": "ship" }))]).await;
    let found: Value = serde_json::from_str(&found[0].text()).unwrap();
    assert_eq!(found, json!({ "entities": [entity], "relations": [] }));
}

#[tokio::test]
async fn time() {
    let Some(installed) = installed() else { return };
    let tools =
        McpTools::stdio(python(&installed, "mcp-server-time").arg("--local-timezone=UTC"), McpOptions::default());
    let tools = tools.await.unwrap();
    let convert = |to: &str| json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": to });
    let calls = [("convert_time", convert("Asia/Tokyo")), ("convert_time", convert("Europe/Atlantis"))];
    let results = results(&tools, &calls).await;
    let converted: Value = serde_json::from_str(&results[0].text()).unwrap();
    assert_eq!(converted["time_difference"], "+9.0h");
    assert!(results[1].is_error && results[1].text().contains("Atlantis"), "{results:?}");
}

/// It does not work with the SDK that it is installed with: what it says is what a user needs.
#[tokio::test]
async fn sqlite_dies_at_start() {
    let Some(installed) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = python(&installed, "mcp-server-sqlite").arg("--db-path").arg(dir.path().join("a.db"));
    let error = format!("{:#}", McpTools::stdio(server.clone(), McpOptions::default()).await.unwrap_err());
    assert!(
        error.starts_with(&format!("start the MCP server `{server}`: it ended with exit code 1; its last words:\n")),
        "{error}"
    );
    assert!(error.ends_with("\nAttributeError: 'Server' object has no attribute 'list_resources'"), "{error}");
}

/// A server of the Python SDK; killed when dropped.
struct Site(Child);

impl Site {
    fn start(installed: &Path, port: u16) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp_server.py");
        let mut command = Command::new(installed.join("venv/bin/python"));
        command.arg(script).arg(port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut site = Self(command.spawn().unwrap());
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert_eq!(site.0.try_wait().unwrap(), None, "the server did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        site
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_sdk_over_http_also_after_a_new_start() {
    let Some(installed) = installed() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let site = Site::start(&installed, port);
    let tools = McpTools::http(url.as_str(), McpOptions::default()).await.unwrap();
    let calls =
        [("add", json!({ "a": 1, "b": 2 })), ("look_up", json!({ "word": "fnord" })), ("count", json!({ "to": 3 }))];
    let told_first = told(&results(&tools, &calls).await);
    insta::assert_snapshot!(told_first, @"
    3
    error: Error executing tool look_up
    counted to 3
    ");

    drop(site);
    let agent_tools = tools.tools().await;
    assert!(agent_tools.is_err());
    let _site = Site::start(&installed, port);
    // The old session is gone with the old server.
    assert_eq!(told(&results(&tools, &calls).await), told_first);
}
