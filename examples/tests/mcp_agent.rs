//! The example `mcp_agent`: as the client of servers, and as a server.

mod support;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use support::{example, transcript};

const MCP_AGENT: &str = env!("CARGO_BIN_EXE_mcp_agent");

#[test]
fn it_calls_an_agent_in_another_process() {
    insta::assert_snapshot!(transcript(&mut example(MCP_AGENT)), @r#"
    model: hand-written script, offline
    tool: headline: Writes a short headline about what it is told.

    The ferry Skarven sails again on Monday after its repair. Tell the passengers.

    -> headline({"request":"The ferry Skarven sails again on Monday after its repair."})
    <- Skarven sails again on Monday
    Skarven sails again on Monday

    The repair is done: from Monday on, all departures are as in the timetable.

    stop: completed; tokens: 158 in, 53 out
    --- code 0
    "#);
}

#[test]
fn the_readme_shows_what_it_prints() {
    let printed = String::from_utf8(example(MCP_AGENT).output().unwrap().stdout).unwrap();
    assert!(include_str!("../README.md").contains(printed.trim_end()), "not in README.md:\n{printed}");
}

#[test]
fn a_server_of_the_command_line_is_called_as_it_is_told_to() {
    let calls = ["--call", "headline={\"request\":\"A storm.\"}", "--call", "headline={}", "--question", "Go."];
    insta::assert_snapshot!(transcript(example(MCP_AGENT).args(calls).args(["--", MCP_AGENT, "--serve"])).replace(MCP_AGENT, "mcp_agent"), @r#"
    model: hand-written script, offline
    tool: headline: Writes a short headline about what it is told.

    Go.

    -> headline({"request":"A storm."})
    <- Skarven sails again on Monday
    -> headline({})
    <- error: invalid arguments: missing field `request`
    That is all.

    stop: completed; tokens: 0 in, 0 out
    --- code 0
    "#);
}

#[test]
fn a_server_that_does_not_start_is_an_error_that_says_what_it_said() {
    let server = ["--", "sh", "-c", "echo where is my license >&2; exit 4"];
    insta::assert_snapshot!(transcript(example(MCP_AGENT).args(server)), @"
    model: hand-written script, offline
    --- stderr
    error: start the MCP server `sh -c echo where is my license >&2; exit 4`: it ended with exit code 4; its last words:
    where is my license
    --- code 2
    ");
}

/// One message a line, and nothing else; the end of the input is the end.
#[test]
fn the_server_says_nothing_but_the_protocol() {
    let mut server = example(MCP_AGENT).arg("--serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut said = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| -> Value {
        writeln!(input, "{message}").unwrap();
        serde_json::from_str(&said.next().unwrap().unwrap()).unwrap()
    };
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let hello = ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    assert_eq!(hello["result"]["serverInfo"]["name"], "headline");
    let params = json!({ "name": "headline", "arguments": { "request": "A storm." } });
    let result = ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
    assert_eq!(result["result"]["content"][0]["text"], "Skarven sails again on Monday");
    drop(input);
    assert_eq!(said.count(), 0);
    assert!(server.wait().unwrap().success());
}

/// Also where the client goes on to wait for it.
#[test]
fn a_client_that_does_not_speak_the_protocol_is_an_error_and_the_end() {
    let mut command = example(MCP_AGENT);
    command.arg("--serve").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    let output = server.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: serve `headline` over MCP: "), "{said}");
    drop(input);
}

/// A client that others wrote: MCP's Python SDK, in the environment `venv` of the directory `MCP_PEERS`.
#[test]
fn the_sdk_of_the_protocol_calls_the_agent() {
    let Some(peers) = env::var_os("MCP_PEERS").map(PathBuf::from) else {
        println!("skipped: MCP_PEERS names no directory");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_client.py");
    let mut client = Command::new(peers.join("venv/bin/python"));
    let output = client.arg(script).args([MCP_AGENT, "--serve"]).output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}{errors}"));
    let told = told.as_array().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "headline"
    "Writes a short headline about what it is told."
    [[false,"Skarven sails again on Monday"],[true,"invalid arguments: missing field `request`"]]
    [[1.0,null,"headline"],[2.0,null,"headline#1: writer"],[3.0,null,"headline"],[4.0,null,"headline#2: writer"],[5.0,null,"headline"]]
    "#);
}
