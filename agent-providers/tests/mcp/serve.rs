//! Agents as servers, spoken to in the protocol's own words.

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatMessage, Draft, Limits, MemoryStore, SessionStore, StopReason, agent_fn,
    testing::ScriptedClient,
};
use agent_providers::McpServer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// A client that writes and reads lines.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: tokio::task::JoinHandle<agent_core::Result<()>>,
}

impl Client {
    async fn of(server: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = tokio::spawn(server.serve(input, output));
        let (output, input) = tokio::io::split(ours);
        let mut client = Self { input, output: BufReader::new(output).lines(), server };
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        client.ask(0, "initialize", params).await;
        client.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn say(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id);
        answer
    }

    /// The result of a call, or the error.
    async fn call(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.ask(7, "tools/call", json!({ "name": name, "arguments": arguments })).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().map(ToOwned::to_owned);
        format!("{} {}", result["isError"], text.unwrap_or_else(|| answer["error"].to_string()))
    }

    async fn leave(self) {
        drop((self.input, self.output));
        self.server.await.unwrap().unwrap();
    }
}

fn writer(model: ScriptedClient) -> ChatAgent {
    let description = "Writes.".to_owned();
    ChatAgent::new("the writer", model, ChatAgentOptions { description, ..Default::default() })
}

#[tokio::test]
async fn an_agent_is_a_tool() {
    let model = ScriptedClient::new().says("A haiku.");
    let mut client = Client::of(McpServer::new(writer(model.clone()))).await;
    let tools = client.ask(1, "tools/list", json!({})).await;
    insta::assert_snapshot!(serde_json::to_string_pretty(&tools["result"]).unwrap(), @r#"
    {
      "tools": [
        {
          "description": "Writes.",
          "inputSchema": {
            "properties": {
              "request": {
                "description": "What the agent is to do, with everything that it has to know.",
                "type": "string"
              }
            },
            "required": [
              "request"
            ],
            "type": "object"
          },
          "name": "the_writer"
        }
      ]
    }
    "#);
    assert_eq!(client.call("the_writer", json!({ "request": "Write." })).await, "false A haiku.");
    assert_eq!(model.requests()[0].messages[0].text(), "Write.");
    let odd = [
        client.call("the writer", json!({ "request": "Write." })).await,
        client.call("the_writer", json!({ "text": "Write." })).await,
        client.call("the_writer", json!({ "request": "Write more." })).await,
    ];
    insta::assert_snapshot!(odd.join("\n"), @r#"
    null {"code":-32602,"message":"there is no tool named `the writer`; there is `the_writer`"}
    true invalid arguments: missing field `request`
    true agent `the_writer` failed: answer request 2: the script has no more answers
    "#);
    client.leave().await;
}

#[tokio::test]
async fn an_end_that_is_no_success_is_an_error_result_that_says_why() {
    let model = ScriptedClient::new().says("A haiku.");
    let limits = Limits { model_calls: Some(0), ..Limits::default() };
    let mut client = Client::of(McpServer::new(writer(model)).limits(limits)).await;
    insta::assert_snapshot!(client.call("the_writer", json!({ "request": "Write." })).await, @"true agent `the_writer` did not finish: budget exhausted");
    let halts = agent_fn("halts", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant("It is too hot."))).await;
            Ok(StopReason::Halted)
        })
    });
    let mut client = Client::of(McpServer::new(halts)).await;
    insta::assert_snapshot!(client.call("halts", json!({ "request": "Go." })).await, @"
    true agent `halts` did not finish: halted by an evaluator

    It is too hot.
    ");
}

#[tokio::test]
async fn a_session_is_gone_on_with_by_its_id() {
    let (model, store) =
        (ScriptedClient::new().says("Hello, Ada.").says("You are Ada.").says("Who?"), MemoryStore::new());
    let mut client = Client::of(McpServer::with_sessions(writer(model.clone()), store.clone())).await;
    let schema = client.ask(1, "tools/list", json!({})).await["result"]["tools"][0]["inputSchema"].clone();
    assert_eq!(
        (&schema["properties"]["session"]["type"], &schema["required"]),
        (&json!("string"), &json!(["request"]))
    );
    client.call("the_writer", json!({ "request": "I am Ada.", "session": "s" })).await;
    assert_eq!(
        client.call("the_writer", json!({ "request": "Who am I?", "session": "s" })).await,
        "false You are Ada."
    );
    client.call("the_writer", json!({ "request": "Who am I?" })).await;
    let heard: Vec<usize> = model.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(heard, [1, 3, 1]);
    assert_eq!(store.list().await.unwrap().len(), 2);
}

/// Says that it began, and ends when it is cancelled.
fn waits() -> impl agent_core::Agent + 'static {
    agent_fn("waits", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant("I wait."))).await;
            let stop = out.cx().interrupted().await;
            out.record(session, Draft::message(ChatMessage::assistant("I am told to stop."))).await;
            Ok(stop)
        })
    })
}

async fn recorded(store: &MemoryStore, events: u64) {
    while store.load("s").await.unwrap().version < events {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn progress_is_told_to_who_asks_and_a_cancelled_call_is_cancelled() {
    let store = MemoryStore::new();
    let mut client = Client::of(McpServer::with_sessions(waits(), store.clone())).await;
    let params = json!({
        "name": "waits", "arguments": { "request": "Go.", "session": "s" }, "_meta": { "progressToken": "p" },
    });
    client.say(json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params })).await;
    let progress = client.hear().await;
    assert_eq!(progress["params"], json!({ "progressToken": "p", "progress": 1.0, "message": "waits" }));
    client.say(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } })).await;
    recorded(&store, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_cancels_its_calls() {
    let store = MemoryStore::new();
    let mut client = Client::of(McpServer::with_sessions(waits(), store.clone())).await;
    let params = json!({ "name": "waits", "arguments": { "request": "Go.", "session": "s" } });
    client.say(json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params })).await;
    recorded(&store, 2).await;
    client.leave().await;
    assert_eq!(store.load("s").await.unwrap().version, 3);
}
