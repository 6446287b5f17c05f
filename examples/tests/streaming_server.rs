//! The server as a process, asked over sockets.

#[path = "support/server.rs"]
mod server;
mod support;

use std::{process::Command, thread};

use server::{DONE, Server};
use support::{example, transcript};

fn program() -> Command {
    example(env!("CARGO_BIN_EXE_streaming_server"))
}

/// A server whose stand-in for a model takes so many milliseconds for each word.
fn start(pause: u32) -> Server {
    Server::start(program().args(["--pause", &pause.to_string()]))
}

/// A message that takes the stand-in half a minute to repeat, with 10 ms a word.
fn long(word: &str) -> String {
    vec![word; 3000].join(" ")
}

#[test]
fn an_answer_streams_as_pieces_then_as_a_committed_event_then_why_it_ended() {
    let (head, body) = start(0).say("ada", "I am Ada.").read();
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("content-type: text/event-stream"), "{head}");
    let (start, event) = body.split_once("event: event\ndata: ").unwrap();
    let (event, end) = event.split_once('\n').unwrap();
    let shown = format!("{start}event: event\ndata: {{…}}\n{end}");
    insta::assert_snapshot!(shown, @r#"
    event: delta
    data: {"text":"Message "}

    event: delta
    data: {"text":"1 "}

    event: delta
    data: {"text":"was: "}

    event: delta
    data: {"text":"I "}

    event: delta
    data: {"text":"am "}

    event: delta
    data: {"text":"Ada."}

    event: event
    data: {…}

    event: done
    data: {"stop":"completed"}
    "#);
    let event: agent_core::Event = serde_json::from_str(event).unwrap();
    assert_eq!(event.messages, [agent_core::ChatMessage::assistant("Message 1 was: I am Ada.").by("assistant")]);
    assert!(include_str!("../README.md").contains(shown.trim_end()), "not in README.md:\n{shown}");
}

#[test]
fn a_session_remembers_and_another_knows_nothing_of_it() {
    let server = start(0);
    assert_eq!(server.say("ada", "I am Ada.").text(), ("Message 1 was: I am Ada.".to_owned(), DONE.to_owned()));
    assert_eq!(server.say("ada", "Who am I?").text(), ("Message 2 was: Who am I?".to_owned(), DONE.to_owned()));
    assert_eq!(server.say("bob", "Hello.").text(), ("Message 1 was: Hello.".to_owned(), DONE.to_owned()));
    insta::assert_snapshot!(server.said("ada"), @"
    user: I am Ada.
    assistant: Message 1 was: I am Ada.
    user: Who am I?
    assistant: Message 2 was: Who am I?
    ");
    assert_eq!(server.said("nobody"), "");
}

#[test]
fn sessions_do_not_wait_for_each_other() {
    let server = start(10);
    let slow = server.say("slow", &long("tick")).begun();
    assert_eq!(server.say("quick", "Hello.").text(), ("Message 1 was: Hello.".to_owned(), DONE.to_owned()));
    assert_eq!(server.said("slow"), format!("user: {}", long("tick")), "it is not done yet");
    drop(slow);
}

#[test]
fn a_client_that_leaves_ends_the_run_and_the_session_goes_on_without_the_half_answer() {
    let server = start(10);
    drop(server.say("ada", &long("tick")).begun());
    // Had the first run gone on, this would wait for it, and its answer would be in the session.
    assert_eq!(server.say("ada", "Again.").text(), ("Message 2 was: Again.".to_owned(), DONE.to_owned()));
    let said = format!("user: {}\nuser: Again.\nassistant: Message 2 was: Again.", long("tick"));
    assert_eq!(server.said("ada"), said);
}

#[test]
fn a_second_request_to_a_busy_session_waits_for_its_turn() {
    let server = start(10);
    let first = server.say("ada", &["tick"; 30].join(" ")).begun();
    let second = server.say("ada", "Me too.");
    let second = thread::spawn(|| second.text());
    assert!(first.rest().contains(DONE));
    assert_eq!(second.join().unwrap(), ("Message 2 was: Me too.".to_owned(), DONE.to_owned()));
    let ticks = ["tick"; 30].join(" ");
    let said =
        format!("user: {ticks}\nassistant: Message 1 was: {ticks}\nuser: Me too.\nassistant: Message 2 was: Me too.");
    assert_eq!(server.said("ada"), said);
}

#[test]
fn a_request_that_cannot_be_read_is_refused_with_what_is_wrong() {
    let server = start(0);
    let mut answers: Vec<_> =
        ["{", r#"{"txt": "Hello."}"#, r#"{"text": "  "}"#].map(|body| server.post("ada/messages", body)).into();
    answers.push(server.send("POST /sessions/ada/messages", "", r#"{"text": "Hello."}"#));
    let answers = answers.into_iter().map(|answer| {
        let (head, body) = answer.read();
        format!("{}\n{body}", head.lines().next().unwrap())
    });
    insta::assert_snapshot!(answers.collect::<Vec<_>>().join("\n"), @r#"
    HTTP/1.1 400 Bad Request
    {"error":"Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1; send {\"text\": \"…\"}"}
    HTTP/1.1 400 Bad Request
    {"error":"Failed to deserialize the JSON body into the target type: missing field `text` at line 1 column 17; send {\"text\": \"…\"}"}
    HTTP/1.1 400 Bad Request
    {"error":"the text is empty; say something"}
    HTTP/1.1 415 Unsupported Media Type
    {"error":"Expected request with `Content-Type: application/json`; send {\"text\": \"…\"}"}
    "#);
    assert_eq!(server.said("ada"), "");
}

#[test]
fn sessions_in_a_directory_outlive_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = || Server::start(program().args(["--pause", "0", "--dir"]).arg(directory.path()));
    assert_eq!(server().say("ada", "I am Ada.").text().0, "Message 1 was: I am Ada.");
    assert_eq!(server().say("ada", "Who am I?").text().0, "Message 2 was: Who am I?");
}

#[test]
fn an_error_of_the_run_ends_its_stream() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener); // nobody listens here now
    let server = Server::start(program().args(["--model", "openai-compatible:coder", "--base-url", &url]));
    let (text, end) = server.say("ada", "Hello.").text();
    assert_eq!(text, "");
    assert!(end.starts_with("event: error\ndata: {\"error\":\"ask `coder` of openai-compatible@127.0.0.1:"), "{end}");
    assert_eq!(server.said("ada"), "user: Hello.");
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let said = transcript(program().args(["--port", &port])).replace(&port, "PORT");
    assert!(
        said.starts_with(
            "model: parrot, offline\n--- stderr\nerror: serve on port PORT (choose another with --port, 0 is any free one): "
        ),
        "{said}"
    );
    assert!(said.ends_with("--- code 2\n"), "{said}");
}
