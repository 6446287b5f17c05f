//! Every protocol against every fault, over real connections: no fault looks like success.

mod faults;
mod options;
mod protocols;
mod server;
mod services;

use std::{
    error::Error as _,
    io::{self, Write},
    sync::{Arc, Mutex},
};

use agent_core::{ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Error, ErrorKind};
use agent_providers::{CassetteMode, ProviderError, Recorded, Retry, RetryOptions, Secret, TimeOuts};
use futures::StreamExt;

use faults::{Expect, Fault, faults};
use protocols::{KEY, Protocol, protocols};
use server::{Server, Step};

fn request() -> ChatRequest {
    ChatRequest { messages: [ChatMessage::user("Add twice.")].into(), ..ChatRequest::default() }
}

/// The answer or the error, of a stream that keeps to the trait: one of the two, and nothing behind it.
async fn outcome(client: &dyn ChatClient) -> Result<ChatResponse, Error> {
    let mut updates = client.stream(request());
    let end = loop {
        match updates.next().await.expect("a stream ends with an answer or an error") {
            Ok(ChatUpdate::Delta(_)) => {}
            Ok(ChatUpdate::Done(response)) => break Ok(response),
            Err(error) => break Err(error),
        }
    };
    assert!(updates.next().await.is_none(), "there is something behind the end");
    end
}

/// Whether two answers are the same, but for the place that they came from.
fn same(a: &ChatResponse, b: &ChatResponse) -> bool {
    let placeless = |response: &ChatResponse| {
        let mut contents = response.message.contents.to_vec();
        for content in &mut contents {
            if let Content::Native { provider, .. } = content {
                let name = provider.split('@').next().unwrap().to_owned();
                *provider = name;
            }
        }
        contents
    };
    a.stop == b.stop && placeless(a) == placeless(b)
}

/// What is wrong with the outcome of a fault, if anything is.
async fn verdict(protocol: &Protocol, fault: Fault, whole: &ChatResponse) -> Result<(), String> {
    let Fault { name, script, expect, time_outs } = fault;
    let server = Server::start(vec![script]).await;
    let (client, _) = (protocol.client)(&server.url, time_outs);
    let outcome = outcome(&client).await;
    let got = match &outcome {
        Ok(response) if same(response, whole) => Expect::Whole,
        Ok(response) => return Err(format!("{}, {name}: another answer: {response:?}", protocol.name)),
        Err(error) => {
            let text = format!("{error} {error:?}");
            if text.contains(&KEY[..12]) {
                return Err(format!("{}, {name}: the key is in the error", protocol.name));
            }
            let source = error.source().and_then(|source| source.downcast_ref::<ProviderError>());
            let source = source.ok_or_else(|| format!("{}, {name}: an untyped error {error:?}", protocol.name))?;
            let mirrors = error.kind() == ErrorKind::Provider
                && error.is_transient() == source.kind.is_retryable()
                && error.retry_after() == source.retry_after;
            if !mirrors {
                return Err(format!("{}, {name}: the error does not mirror its source: {error:?}", protocol.name));
            }
            Expect::Error { kind: source.kind, status: source.status, retry_after: source.retry_after }
        }
    };
    if got == expect { Ok(()) } else { Err(format!("{}, {name}: expected {expect:?}, got {outcome:?}", protocol.name)) }
}

#[tokio::test]
async fn every_fault_of_every_protocol_is_told_as_what_it_is() {
    for protocol in protocols() {
        let script = vec![server::head(200, protocol.content_type, ""), Step::Send(protocol.stream.into())];
        let server = Server::start(vec![script]).await;
        let whole = outcome(&(protocol.client)(&server.url, TimeOuts::default()).0).await.unwrap();
        assert_eq!(whole.message.text(), "Let me add – twice.");
        assert_eq!(whole.message.tool_calls().count(), 2);

        let verdicts = faults(&protocol).into_iter().map(|fault| verdict(&protocol, fault, &whole));
        let verdicts = futures::stream::iter(verdicts).buffer_unordered(8).collect::<Vec<_>>().await;
        let wrong = verdicts.into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert!(wrong.is_empty(), "{} faults are not told as what they are:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    for protocol in protocols() {
        let begun = protocol.events()[..protocol.needed() - 1].concat();
        let script = vec![server::head(200, protocol.content_type, ""), Step::Send(begun.into()), Step::Stall];
        let mut server = Server::start(vec![script]).await;
        let (client, _) = (protocol.client)(&server.url, TimeOuts::default());
        let mut updates = client.stream(request());
        assert!(matches!(updates.next().await, Some(Ok(ChatUpdate::Delta(_)))));
        drop(updates);
        server.hung_up().await;
    }
}

#[tokio::test]
async fn the_key_is_sent_in_a_header_and_not_in_the_url() {
    for protocol in protocols() {
        let script = vec![server::head(200, protocol.content_type, ""), Step::Send(protocol.stream.into())];
        let server = Server::start(vec![script]).await;
        outcome(&(protocol.client)(&server.url, TimeOuts::default()).0).await.unwrap();
        let requests = server.requests();
        let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
        let (line, headers) = head.split_once("\r\n").unwrap();
        assert!(headers.contains(KEY), "{}", protocol.name);
        assert!(!line.contains(KEY) && !body.contains(KEY), "{}", protocol.name);
    }
}

/// Everything that was traced.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<Vec<u8>>>);

impl Write for Traces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_key_is_in_any_debug_error_trace_or_cassette() {
    let traces = Traces::default();
    let writer = traces.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let directory = tempfile::tempdir().unwrap();
    let mut told = Vec::new();

    for protocol in protocols() {
        let refusal = protocol.refusal.replace("KEY", KEY);
        let overloaded = vec![server::head(503, "application/json", ""), Step::Send(refusal.clone().into())];
        let refused = vec![server::head(401, "application/json", ""), Step::Send(refusal.into())];
        let whole = vec![server::head(200, protocol.content_type, ""), Step::Send(protocol.stream.into())];
        let server = Server::start(vec![overloaded, refused, whole]).await;

        let (client, debug) = (protocol.client)(&server.url, TimeOuts::default());
        let options = RetryOptions { first_delay: std::time::Duration::ZERO, ..RetryOptions::default() };
        let retry = Retry::new(client, options);
        told.push(format!("{debug} {retry:?}"));
        let error = outcome(&retry).await.unwrap_err();
        told.push(format!("{error} {error:?} {}", error.source().unwrap()));

        let path = directory.path().join(protocol.name);
        let cassette = Recorded::open(&path, CassetteMode::Record).unwrap();
        let mut request = request();
        request.messages = [ChatMessage::user(format!("my key is {KEY}"))].into();
        request.options.extra.insert("api_key".into(), KEY.into());
        let trial = cassette.trial("case", 0, retry);
        let updates = trial.stream(request).collect::<Vec<_>>().await;
        assert!(updates.iter().all(Result::is_ok));
        told.push(format!("{cassette:?} {trial:?} {}", std::fs::read_to_string(path).unwrap()));
    }

    told.push(format!("{:?}", Secret::from(KEY)));
    let told = told.join("\n");
    let traces = String::from_utf8(traces.0.lock().unwrap().clone()).unwrap();
    assert!(traces.contains("model call failed") && told.contains("[key]") && told.contains("[redacted]"));
    for (what, text) in [("texts", told), ("traces", traces)] {
        assert!(!text.contains(KEY), "the key is in the {what}: {text}");
    }
}
