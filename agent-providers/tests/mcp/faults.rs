//! Servers that do not do as they should.

use std::time::Duration;

use agent_core::ToolOutput;
use agent_providers::{McpCommand, McpOptions, McpTools};
use serde_json::json;

use crate::{call, command, named, started, told};

async fn failure(command: McpCommand, options: McpOptions) -> String {
    let error = McpTools::stdio(command, options).await.unwrap_err();
    told(&ToolOutput::text(format!("{error:#}")))
}

fn in_no_time() -> McpOptions {
    McpOptions { start: Duration::from_secs(3), ..McpOptions::default() }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_an_error_that_says_what_it_said() {
    let patient = McpOptions::default;
    insta::assert_snapshot!(failure(command("dies at start"), patient()).await, @"
    start the MCP server `SERVER`: it ended with exit code 2; its last words:
    reading the configuration
    error: --db is missing
    ");
    insta::assert_snapshot!(failure(command("is deaf"), in_no_time()).await, @"
    start the MCP server `SERVER`: it was not ready within 3s; its last words:
    waiting for a license server
    ");
    insta::assert_snapshot!(failure(command("refuses"), patient()).await, @"start the MCP server `SERVER`: it refused the handshake: come back tomorrow");
    insta::assert_snapshot!(failure(McpCommand::new("no-such-program").arg("--now"), patient()).await, @"start the MCP server `no-such-program --now`: No such file or directory (os error 2)");
    insta::assert_snapshot!(failure(McpCommand::new("true"), patient()).await, @"start the MCP server `true`: it ended with exit code 0 and said nothing");
}

#[tokio::test]
async fn a_server_that_knows_the_later_handshake_alone_is_understood() {
    let tools = started("is modern", McpOptions::default()).await;
    assert_eq!(call(&*named(&tools, "echo").await, json!({ "text": "hi" })).await, ToolOutput::text("hi"));
}

#[tokio::test]
async fn nonsense_on_standard_output_is_passed_over() {
    let tools = started("talks nonsense", McpOptions::default()).await;
    assert_eq!(call(&*named(&tools, "echo").await, json!({ "text": "hi" })).await, ToolOutput::text("hi"));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_an_error_result_and_the_server_is_told() {
    let tools = started("plain", McpOptions { call: Duration::from_millis(100), ..McpOptions::default() }).await;
    insta::assert_snapshot!(told(&call(&*named(&tools, "hang").await, json!({})).await), @"error: the MCP server `SERVER` did not answer within 100ms and was told to stop; whether the call took effect is not known");
    let cancelled = named(&tools, "cancelled").await;
    while call(&*cancelled, json!({})).await != ToolOutput::text("1") {}
}

#[tokio::test]
async fn every_call_that_waits_for_a_server_that_dies_is_told_why() {
    let tools = started("plain", McpOptions::default()).await;
    let [hang, die, hanging] =
        [named(&tools, "hang").await, named(&tools, "die").await, named(&tools, "hanging").await];
    let (first, second, third) = tokio::join!(call(&*hang, json!({})), call(&*hang, json!({})), call(&*die, json!({})));
    assert!(told(&first).contains("went away before it answered: it ended with exit code 3"), "{first:?}");
    assert_eq!((&first, &first), (&second, &third));
    assert!(!tools.have_changed());
    // Another one, which may have other tools.
    assert_eq!(call(&*hanging, json!({})).await, ToolOutput::text("0"));
    assert!(tools.have_changed());
}

#[tokio::test]
async fn a_list_without_an_end_is_an_error() {
    let options = McpOptions { start: Duration::from_secs(2), ..McpOptions::default() };
    let tools = started("has no end", options).await;
    let error = tools.tools().await.err().unwrap();
    insta::assert_snapshot!(told(&ToolOutput::text(format!("{error:#}"))), @"list the tools of the MCP server `SERVER`: it did not answer within 2s");
}

#[tokio::test]
async fn a_huge_result_arrives_whole_and_one_that_is_too_large_is_an_error_result() {
    let tools = started("plain", McpOptions::default()).await;
    let huge = named(&tools, "huge").await;
    let text = told(&call(&*huge, json!({ "bytes": 8_000_000 })).await);
    assert_eq!((text.len(), text.trim_matches('x')), (8_000_000, ""));
    insta::assert_snapshot!(told(&call(&*huge, json!({ "bytes": 17_000_000 })).await), @"error: the MCP server `SERVER` answered with more than 16777216 bytes, which is too much; ask for less");
}

#[tokio::test]
async fn a_closed_server_is_not_started_again() {
    let tools = started("plain", McpOptions::default()).await;
    let echo = named(&tools, "echo").await;
    tools.close().await;
    insta::assert_snapshot!(told(&call(&*echo, json!({ "text": "hi" })).await), @"error: use the MCP server `SERVER`: it was closed");
}

/// What a server started, and whether it still runs.
#[cfg(target_os = "linux")]
mod grandchildren {
    use super::*;

    fn is_running(pid: &str) -> bool {
        // A zombie has ended: nobody waited for it yet.
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    async fn forked(tools: &McpTools) -> String {
        told(&call(&*named(tools, "fork").await, json!({})).await)
    }

    #[tokio::test]
    async fn what_a_server_started_ends_with_it() {
        for mood in ["plain", "does not leave"] {
            let tools = started(mood, McpOptions::default()).await;
            let pid = forked(&tools).await;
            assert!(is_running(&pid));
            tools.close().await;
            while is_running(&pid) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_nobody_uses_any_more_ends() {
        let tools = started("plain", McpOptions::default()).await;
        let pid = forked(&tools).await;
        drop(tools);
        while is_running(&pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[test]
    fn a_server_ends_with_the_runtime() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (tools, pid) = runtime.block_on(async {
            let tools = started("does not leave", McpOptions::default()).await;
            let pid = forked(&tools).await;
            (tools, pid)
        });
        drop(runtime);
        drop(tools);
        while is_running(&pid) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
