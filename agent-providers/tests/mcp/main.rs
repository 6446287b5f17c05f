//! Tools of MCP servers, with servers of our own that have every fault; and agents as servers.
//!
//! The servers are this program itself: a test starts it again to run the one "test" that serves. So what the test
//! harness prints is on their standard output too, as banners are on that of many a server.

mod faults;
mod http;
mod serve;
mod server;
mod stdio;

use std::sync::Arc;

use agent_core::{Content, RunContext, Session, Tool, ToolCall, ToolContext, ToolOutput};
use agent_providers::{McpCommand, McpOptions, McpTools};
use serde_json::Value;

/// Our own server, in one of its moods.
fn command(mood: &str) -> McpCommand {
    let this = std::env::current_exe().unwrap();
    McpCommand::new(this).args(["--ignored", "--exact", "server::serves", "--nocapture"]).env("MOOD", mood)
}

async fn started(mood: &str, options: McpOptions) -> McpTools {
    McpTools::stdio(command(mood), options).await.unwrap()
}

async fn named(tools: &McpTools, name: &str) -> Arc<dyn Tool> {
    let tools = tools.tools().await.unwrap();
    tools.into_iter().find(|tool| tool.spec().name == name).unwrap()
}

fn context(name: &str, arguments: Value, run: &RunContext) -> ToolContext {
    let call = ToolCall { id: "call-1".to_owned(), name: name.to_owned(), arguments };
    ToolContext { call, session: Session::new(), run: run.clone() }
}

/// A call as an agent makes it: an error is an error result.
async fn call(tool: &dyn Tool, arguments: Value) -> ToolOutput {
    let cx = context(&tool.spec().name, arguments, &RunContext::default());
    tool.call(cx).await.unwrap_or_else(|error| ToolOutput::error(error.to_string()))
}

/// The text of a result, after what it is; with what differs between machines taken out.
fn told(output: &ToolOutput) -> String {
    let texts = output.contents.iter().map(|content| match content {
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let mark = if output.is_error { "error: " } else { "" };
    let this = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    format!("{mark}{text}").replace(&this, "SERVER").replace(" --ignored --exact server::serves --nocapture", "")
}
