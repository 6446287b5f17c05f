//! Every protocol against every fault, over real connections: no fault looks like success.

mod faults;
mod protocols;
mod server;

use std::error::Error as _;

use agent_core::{ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Error, ErrorKind};
use agent_providers::ProviderError;
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

/// What is wrong with the outcome of a fault, if anything is.
async fn verdict(protocol: &Protocol, fault: Fault, whole: &ChatResponse) -> Result<(), String> {
    let Fault { name, script, expect, time_outs } = fault;
    let server = Server::start(vec![script]).await;
    let client = (protocol.client)(&server.url, time_outs);
    let outcome = outcome(&client).await;
    let got = match &outcome {
        Ok(response) if response.message == whole.message && response.stop == whole.stop => Expect::Whole,
        Ok(response) => return Err(format!("{}, {name}: another answer: {response:?}", protocol.name)),
        Err(error) => {
            let text = format!("{error} {error:?}");
            if text.contains(KEY) {
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
        let whole = outcome(&(protocol.client)(&server.url, Default::default())).await.unwrap();
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
        let client = (protocol.client)(&server.url, Default::default());
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
        outcome(&(protocol.client)(&server.url, Default::default())).await.unwrap();
        let requests = server.requests();
        let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
        let (line, headers) = head.split_once("\r\n").unwrap();
        assert!(headers.contains(KEY), "{}", protocol.name);
        assert!(!line.contains(KEY) && !body.contains(KEY), "{}", protocol.name);
    }
}
