//! The same bytes, read by two crates.

mod facts;
mod rig;

// The protocols and the server are those of the faults' tests.
#[path = "../../../tests/faults/protocols.rs"]
#[expect(dead_code, reason = "the tests of faults use the rest")]
mod protocols;
#[path = "../../../tests/faults/server.rs"]
#[expect(dead_code, reason = "the tests of faults use the rest")]
mod server;

use std::fmt::Write;

use agent_core::{ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Error};
use agent_providers::{ProviderError, ProviderErrorKind, TimeOuts};
use futures::StreamExt;
use serde_json::{Value, json};

use facts::Facts;
use protocols::{Protocol, protocols};
use server::{Server, Step, chunk, chunked_head, head};

/// A difference on a whole stream: the protocol, the way it is sent, what both say, and why ours is meant so.
type Known = (&'static str, &'static str, &'static str, &'static str);

const KNOWN: &[Known] = &[
    (
        "openai-responses",
        "no line end at the end",
        "an answer, rig: ResponseError: the reply ended before the provider ended it",
        "By the letter, an event without a blank line behind it is dropped. Here it is whole JSON that says that the \
         answer is whole; so it is taken. Rig agrees where it needs no last event.",
    ),
    (
        "openai-responses",
        "CR",
        "an answer, rig: ResponseError: the reply ended before the provider ended it",
        "A CR may be the first half of a CRLF; rig waits for the byte behind it, and there the stream ends. With a \
         comment behind the CR, it agrees.",
    ),
];

/// What both crates make of the same answer.
async fn both(protocol: &Protocol, script: Vec<Step>) -> (Result<ChatResponse, Error>, Result<Facts, String>) {
    let server = Server::start(vec![script]).await;
    let (client, _) = (protocol.client)(&server.url, TimeOuts::default());
    let rigs = rig::ask(protocol.name, &server.url).await;
    let rigs = rigs.map(|response| facts::of_rigs(&response)).map_err(|error| error.to_string());
    assert_eq!(server.requests().len(), 1, "{}: rig asks once: {rigs:?}", protocol.name);
    (ours(&*client).await, rigs)
}

async fn ours(client: &dyn ChatClient) -> Result<ChatResponse, Error> {
    let request = ChatRequest { messages: [ChatMessage::user("Add twice.")].into(), ..ChatRequest::default() };
    let mut updates = client.stream(request);
    loop {
        match updates.next().await.expect("a stream ends with an answer or an error")? {
            ChatUpdate::Delta(_) => {}
            ChatUpdate::Done(response) => return Ok(response),
        }
    }
}

/// An answer whose body is `text` and ends with the connection.
fn answer(protocol: &Protocol, text: &str) -> Vec<Step> {
    vec![head(200, protocol.content_type, ""), Step::Send(text.into())]
}

/// Ways to send a whole stream.
fn whole(protocol: &Protocol) -> Vec<(&'static str, Vec<Step>)> {
    let stream = protocol.stream;
    let bytes = stream.bytes().map(|byte| chunk(&[byte])).chain([chunk(b"")]);
    let mut ways = vec![
        ("as recorded", answer(protocol, stream)),
        ("single bytes", [chunked_head(protocol.content_type)].into_iter().chain(bytes).collect()),
        ("CRLF", answer(protocol, &stream.replace('\n', "\r\n"))),
        ("no line end at the end", answer(protocol, stream.trim_end())),
        ("an unknown event first", answer(protocol, &format!("{}{stream}", protocol.unknown))),
    ];
    if protocol.content_type == "text/event-stream" {
        ways.push(("CR", answer(protocol, &stream.replace('\n', "\r"))));
        ways.push(("CR, and a comment behind", answer(protocol, &format!("{}: more\r", stream.replace('\n', "\r")))));
        ways.push(("a byte order mark", answer(protocol, &format!("\u{feff}{stream}"))));
        ways.push(("comments", answer(protocol, &stream.replace("\n\n", "\n\n: ping\n\n"))));
        ways.push(("no space behind the colon", answer(protocol, &stream.replace("data: ", "data:"))));
    }
    ways
}

#[tokio::test]
async fn whole_streams_say_the_same_but_for_what_is_known() {
    let mut differences = Vec::new();
    let mut table = format!("{:<18} {:<26} the same\n", "protocol", "whole stream");
    for protocol in protocols() {
        for (way, script) in whole(&protocol) {
            let (ours, rigs) = both(&protocol, script).await;
            let ours = facts::of_ours(&ours.unwrap());
            assert_eq!(ours["text"], json!("Let me add – twice."), "{}, {way}", protocol.name);
            assert_eq!(ours["calls"], calls(), "{}, {way}", protocol.name);
            let mut same = Vec::new();
            match rigs {
                Err(error) => differences.push((protocol.name, way, format!("an answer, rig: {error}"))),
                Ok(rigs) => {
                    let counts = ["input tokens", "output tokens"].map(|what| rigs.contains_key(what));
                    assert_eq!(counts, [true; 2], "{}, {way}: rig reports what was used", protocol.name);
                    for (what, value) in rigs {
                        if ours[what] == value {
                            same.push(what);
                        } else {
                            let difference = format!("{what}: {}, rig: {value}", ours[what]);
                            differences.push((protocol.name, way, difference));
                        }
                    }
                }
            }
            writeln!(table, "{:<18} {way:<26} {}", protocol.name, same.join(", ")).unwrap();
        }
    }
    println!("{table}");
    let known = KNOWN.iter().map(|(protocol, way, difference, _)| (*protocol, *way, (*difference).to_owned()));
    let known = known.collect::<Vec<_>>();
    assert_eq!(differences, known, "{differences:#?}");
}

/// A row of the table about cuts: of how many events to how many, and what both make of it.
struct Cuts {
    from: usize,
    to: usize,
    ours: String,
    rigs: String,
}

#[tokio::test]
async fn a_cut_stream_is_an_error_of_ours_whatever_rig_makes_of_it() {
    let mut table = format!("{:<18} {:<12} {:<12} rig\n", "protocol", "events", "ours");
    for protocol in protocols() {
        let (events, needed) = (protocol.events(), protocol.needed());
        let mut rows: Vec<Cuts> = Vec::new();
        for cut in 0..events.len() {
            let (ours, rigs) = both(&protocol, answer(&protocol, &events[..cut].concat())).await;
            let ours = ours.map(|response| facts::of_ours(&response)["calls"].clone()).map_err(|error| kind(&error));
            let expected = if cut < needed { Err(ProviderErrorKind::Truncated) } else { Ok(calls()) };
            assert_eq!(ours, expected, "{} after {cut} of {needed} events", protocol.name);

            let ours = ours.map_or_else(|kind| format!("{kind:?}"), |_| "an answer".into());
            let rigs = match rigs {
                Ok(facts) if facts["calls"] == calls() => "an answer".into(),
                Ok(facts) => format!("an answer: {} {}", facts["text"], facts["calls"]),
                Err(error) => error,
            };
            match rows.last_mut().filter(|row| (&row.ours, &row.rigs) == (&ours, &rigs)) {
                Some(row) => row.to = cut,
                None => rows.push(Cuts { from: cut, to: cut, ours, rigs }),
            }
        }
        for Cuts { from, to, ours, rigs } in rows {
            let cuts = format!("{from}–{to} of {}", events.len());
            writeln!(table, "{:<18} {cuts:<12} {ours:<12} {rigs}", protocol.name).unwrap();
        }
    }
    println!("{table}");
}

/// The calls that every recorded stream asks for.
fn calls() -> Value {
    json!([["add", { "a": 1, "b": 2 }], ["add", { "a": 3, "b": 4 }]])
}

fn kind(error: &Error) -> ProviderErrorKind {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<ProviderError>());
    source.expect("our errors are typed").kind
}
