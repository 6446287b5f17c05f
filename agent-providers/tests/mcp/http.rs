//! Servers over streamable HTTP.

use std::sync::{Arc, Mutex};

use agent_core::ToolOutput;
use agent_providers::{McpEndpoint, McpOptions, McpTools};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{call, named, server::Server, told};

/// A server of one session at a time.
struct Site {
    server: Server,
    /// How many sessions there were; the last one's number is its id.
    sessions: u32,
    /// What the next request is answered with instead of an answer.
    instead: Option<&'static str>,
    /// The heads of the requests.
    heard: Vec<String>,
}

type Shared = Arc<Mutex<Site>>;

async fn site() -> (McpEndpoint, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?team=blue-and-yellow", listener.local_addr().unwrap());
    let site = Site { server: Server::new("plain"), sessions: 0, instead: None, heard: Vec::new() };
    let site = Arc::new(Mutex::new(site));
    let shared = site.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(respond(stream, shared.clone()));
        }
    });
    (McpEndpoint::new(url), site)
}

async fn respond(stream: TcpStream, site: Shared) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap() == 0 {
            return;
        }
    }
    let head = head.to_lowercase();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    let answer = site.lock().unwrap().answer(&head, header("mcp-session-id"), &body);
    if let Some(answer) = answer {
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

impl Site {
    fn answer(&mut self, head: &str, session: Option<&str>, body: &[u8]) -> Option<String> {
        self.heard.push(head.to_owned());
        if let Some(instead) = self.instead.take() {
            return (!instead.is_empty())
                .then(|| format!("HTTP/1.1 {instead}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"));
        }
        let empty = |status: &str| Some(format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"));
        if head.starts_with("get") {
            return empty("405 Method Not Allowed");
        }
        let Ok(message) = serde_json::from_slice::<Value>(body) else { return empty("200 OK") };
        if message["method"] == "initialize" {
            self.sessions += 1;
        } else if session != Some(&self.sessions.to_string()) {
            return empty("404 Not Found");
        }
        let Ok(replies) = self.server.answer(&message) else { return None };
        let Some(reply) = replies.last() else { return empty("202 Accepted") };
        let (reply, session) = (reply.to_string(), self.sessions);
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\nmcp-session-id: {session}"
        );
        Some(format!("{head}\r\ncontent-length: {}\r\n\r\n{reply}", reply.len()))
    }
}

#[tokio::test]
async fn tools_are_called_with_the_token_and_no_secret_is_told() {
    let (endpoint, site) = site().await;
    let endpoint = endpoint.bearer("a-very-secret-token").header("x-team", "green");
    let tools = McpTools::http(endpoint.clone(), McpOptions::default()).await.unwrap();
    let echo = named(&tools, "echo").await;
    assert_eq!(call(&*echo, json!({ "text": "hi" })).await, ToolOutput::text("hi"));
    let heard = site.lock().unwrap().heard.clone();
    let is_signed = |head: &&String| {
        head.contains("authorization: bearer a-very-secret-token")
            && head.contains("x-team: green")
            && head.contains("?team=")
    };
    assert!(heard.len() >= 4 && heard.iter().all(|head| is_signed(&head)), "{heard:?}");

    // Even where the URL is told.
    site.lock().unwrap().instead = Some("");
    let gone = told(&call(&*echo, json!({ "text": "hi" })).await);
    let shown = format!("{endpoint:?} {tools:?} {gone}");
    assert!(gone.starts_with(&format!("error: the MCP server `{endpoint}` could not be asked: ")), "{gone}");
    assert!(!["secret", "blue", "green"].iter().any(|secret| shown.contains(secret)), "{shown}");
    assert_eq!(call(&*echo, json!({ "text": "again" })).await, ToolOutput::text("again"));
}

#[tokio::test]
async fn a_session_that_expired_is_made_anew() {
    let (endpoint, site) = site().await;
    let tools = McpTools::http(endpoint, McpOptions::default()).await.unwrap();
    let echo = named(&tools, "echo").await;
    site.lock().unwrap().sessions += 1;
    assert_eq!(call(&*echo, json!({ "text": "hi" })).await, ToolOutput::text("hi"));
    assert_eq!(site.lock().unwrap().sessions, 3);
}

#[tokio::test]
async fn what_a_server_refuses_is_an_error_result() {
    let (endpoint, site) = site().await;
    let shown = endpoint.to_string();
    let tools = McpTools::http(endpoint, McpOptions::default()).await.unwrap();
    let echo = named(&tools, "echo").await;
    let mut said = Vec::new();
    for status in ["503 Service Unavailable", "401 Unauthorized", "400 Bad Request", "302 Found"] {
        site.lock().unwrap().instead = Some(status);
        said.push(told(&call(&*echo, json!({ "text": "hi" })).await).replace(&shown, "URL"));
        assert_eq!(call(&*echo, json!({ "text": "again" })).await, ToolOutput::text("again"));
    }
    insta::assert_snapshot!(said.join("\n---\n"), @"
    error: the MCP server `URL` could not be asked: HTTP 503
    whether the call took effect is not known; the next call tries to reach the server again
    ---
    error: the MCP server `URL` could not be asked: unexpected server response: HTTP 401 Unauthorized
    whether the call took effect is not known; the next call tries to reach the server again
    ---
    error: the MCP server `URL` could not be asked: unexpected server response: HTTP 400 Bad Request
    whether the call took effect is not known; the next call tries to reach the server again
    ---
    error: the MCP server `URL` could not be asked: unexpected server response: HTTP 302 Found
    whether the call took effect is not known; the next call tries to reach the server again
    ");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let error = McpTools::http(url.as_str(), McpOptions::default()).await.unwrap_err();
    insta::assert_snapshot!(format!("{error:#}").replace(&url, "URL"), @"start the MCP server `URL`: error sending request for url (URL): client error (Connect): tcp connect error: Connection refused (os error 111)");
    let error = McpTools::http("mcp.example", McpOptions::default()).await.unwrap_err();
    insta::assert_snapshot!(format!("{error:#}"), @"connect to the MCP server at mcp.example: the base URL is no URL; write it like https://host/v1: relative URL without a base");
}
