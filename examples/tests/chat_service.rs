//! Two processes of the service on one database.

#[path = "../../agent-providers/tests/support/postgres.rs"]
mod postgres;
#[path = "support/server.rs"]
mod server;
mod support;

use std::{collections::BTreeMap, process::Command, thread};

use postgres::PostgresServer;
use serde_json::json;
use server::{DONE, Server};
use support::{example, transcript};

/// Two of them, whose stand-in for a model takes so many milliseconds for each word.
fn two(database: &PostgresServer, pause: u32) -> [Server; 2] {
    let start = || {
        let mut program = example(env!("CARGO_BIN_EXE_chat_service"));
        Server::start(program.args(["--database", &database.url(), "--pause", &pause.to_string()]))
    };
    // At once, so that both find no tables.
    thread::scope(|scope| [scope.spawn(start), scope.spawn(start)].map(|started| started.join().unwrap()))
}

fn done(text: &str) -> (String, String) {
    (text.to_owned(), DONE.to_owned())
}

#[test]
fn a_session_goes_on_in_either_process() {
    let Some(database) = PostgresServer::start() else { return };
    let [one, two] = two(&database, 0);
    assert_eq!(one.say("ada", "I am Ada.").text(), done("Message 1 was: I am Ada."));
    assert_eq!(two.say("ada", "Who am I?").text(), done("Message 2 was: Who am I?"));
    assert_eq!(one.say("bob", "Hello.").text(), done("Message 1 was: Hello."));
    insta::assert_snapshot!(one.said("ada"), @"
    user: I am Ada.
    assistant: Message 1 was: I am Ada.
    user: Who am I?
    assistant: Message 2 was: Who am I?
    ");
    assert_eq!(two.get("/sessions/ada")["version"], 4);
    assert_eq!(two.get("/sessions?limit=10"), json!({ "ids": ["ada", "bob"] }));
    assert_eq!(two.get("/sessions?prefix=a"), json!({ "ids": ["ada"] }));
    assert_eq!(two.get("/sessions?after=ada&limit=1"), json!({ "ids": ["bob"] }));
}

#[test]
fn what_one_process_asks_another_may_be_told() {
    let Some(database) = PostgresServer::start() else { return };
    let [one, two] = two(&database, 0);
    let (_, end) = one.say("ada", "refund 17").text();
    assert_eq!(end, "event: done\ndata: {\"stop\":\"awaiting_approval\"}");
    let asked = two.get("/sessions/ada")["open_approvals"].clone();
    assert_eq!(asked, json!([{ "id": "refund-1", "name": "refund", "arguments": { "booking": 17 } }]));
    let answer = json!({ "call_id": "refund-1", "approved": true }).to_string();
    let (_, body) = two.post("ada/answers", &answer).read();
    assert!(body.contains("paid booking 17 back") && body.contains("I have paid."), "{body}");

    let (head, body) = one.post("ada/answers", &answer).read();
    assert!(
        head.starts_with("HTTP/1.1 409 Conflict") && body.contains("refund-1"),
        "an answer counts once: {head}{body}"
    );

    one.say("bob", "refund 18").text();
    let answer = json!({ "call_id": "refund-1", "approved": false, "reason": "it did sail" }).to_string();
    let (_, body) = two.post("bob/answers", &answer).read();
    assert!(body.contains("it did sail") && body.contains("I did not pay."), "{body}");
}

/// A message that takes the stand-in half a minute to repeat, with 10 ms a word.
fn long() -> String {
    vec!["tick"; 3000].join(" ")
}

#[test]
fn the_later_message_ends_the_other_process_s_run_and_both_are_answered() {
    let Some(database) = PostgresServer::start() else { return };
    let [one, two] = two(&database, 10);
    let words = vec!["tick"; 100].join(" ");
    let first = one.say("ada", &words).begun();
    assert_eq!(two.say("ada", "Be quick.").text(), done("Message 2 was: Be quick."));
    let rest = first.rest();
    assert!(rest.contains("event: error") && rest.contains("GET /sessions/ada"), "{rest}");
    assert_eq!(one.said("ada"), format!("user: {words}\nuser: Be quick.\nassistant: Message 2 was: Be quick."));
}

#[test]
fn no_word_is_lost_or_said_twice_however_many_speak_at_once() {
    let Some(database) = PostgresServer::start() else { return };
    let servers = two(&database, 1);
    let texts: Vec<_> = (0..24).map(|n| format!("text {n}")).collect();
    let refused = thread::scope(|scope| {
        let speak = |(at, text): (usize, &String)| {
            let (server, text) = (&servers[at % 2], text.clone());
            scope.spawn(move || {
                let (head, body) = server.say("ada", &text).read();
                let refused = head.starts_with("HTTP/1.1 409");
                assert!(refused || head.starts_with("HTTP/1.1 200"), "{head}{body}");
                // What is not stored is refused with a remedy; what is stored will be answered.
                (refused && body.contains("try again later")).then_some(text)
            })
        };
        let speaking: Vec<_> = texts.iter().enumerate().map(speak).collect();
        speaking.into_iter().filter_map(|spoken| spoken.join().unwrap()).collect::<Vec<_>>()
    });
    let messages = servers[0].get("/sessions/ada")["messages"].as_array().unwrap().clone();
    let mut said = BTreeMap::<String, u32>::new();
    for message in messages.iter().filter(|message| message["role"] == "user") {
        *said.entry(message["contents"][0]["text"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let expected: BTreeMap<_, _> =
        texts.into_iter().filter(|text| !refused.contains(text)).map(|text| (text, 1)).collect();
    assert_eq!(said, expected);
    assert_eq!(messages.last().unwrap()["role"], "assistant", "the last message is answered");
    assert!(expected.len() > 4, "most were refused: {refused:?}");
}

#[test]
fn a_process_that_is_told_to_end_lets_its_runs_end_and_another_goes_on() {
    let Some(database) = PostgresServer::start() else { return };
    let start = |grace: &str| {
        let mut program = example(env!("CARGO_BIN_EXE_chat_service"));
        Server::start(program.args(["--database", &database.url(), "--pause", "10", "--grace", grace]))
    };
    let terminate = |server: &Server| {
        let id = server.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    };

    let mut patient = start("60");
    let answer = patient.say("ada", &["tick"; 30].join(" ")).begun();
    terminate(&patient);
    assert!(answer.rest().contains(DONE));
    assert!(patient.process.wait().unwrap().success());

    let mut strict = start("0");
    let answer = strict.say("bob", &long()).begun();
    terminate(&strict);
    assert!(answer.rest().contains("event: done\ndata: {\"stop\":\"cancelled\"}"));
    assert!(strict.process.wait().unwrap().success());
    let other = start("0");
    assert_eq!(other.said("bob"), format!("user: {}", long()));
    let going_on = other.post("bob/messages", "{}").begun();
    drop(going_on);
}

#[test]
fn a_database_that_is_none_is_an_error_that_keeps_the_password() {
    let mut program = example(env!("CARGO_BIN_EXE_chat_service"));
    let said = transcript(program.args(["--database", "postgres://ada:hush@127.0.0.1:hush/chat"]));
    insta::assert_snapshot!(said, @"
    model: clerk, offline
    --- stderr
    error: read the URL of a PostgreSQL database: it is none; write postgres://USER:PASSWORD@HOST/DATABASE, with %XX for special characters, and sslmode=disable, prefer or require, if any
    --- code 2
    ");
}
