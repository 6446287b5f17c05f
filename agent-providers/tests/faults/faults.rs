//! The faults: what the server does, and what the client has to make of it.

use std::time::Duration;

use ProviderErrorKind::{
    Auth, BadFrame, BadRequest, Blocked, ContextTooLong, Network, Overloaded, Quota, RateLimited, Server, TimeOut,
    Truncated,
};
use agent_providers::{ProviderErrorKind, TimeOuts};

use crate::{
    protocols::{KEY, Protocol},
    server::{Step, chunk, chunked_head, head},
};

/// One fault.
pub(crate) struct Fault {
    pub(crate) name: String,
    pub(crate) script: Vec<Step>,
    pub(crate) expect: Expect,
    pub(crate) time_outs: TimeOuts,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expect {
    /// The whole answer, as if nothing had happened.
    Whole,
    /// An error about this.
    Error { kind: ProviderErrorKind, status: Option<u16>, retry_after: Option<Duration> },
}

pub(crate) fn faults(protocol: &Protocol) -> Vec<Fault> {
    let groups = [framing, cuts, connection, events, statuses];
    groups.into_iter().flat_map(|group| group(protocol)).collect()
}

/// Ways to cut a stream into bytes that change nothing.
fn framing(protocol: &Protocol) -> Vec<Fault> {
    let stream = protocol.stream;
    let whole = |name: &str, body: Vec<Step>| Fault::new(name, answer(protocol, body), Expect::Whole);
    let send = |text: String| vec![Step::Send(text.into_bytes())];
    let single_bytes = |text: &str| {
        let body = text.bytes().map(|byte| chunk(&[byte])).chain([chunk(b"")]);
        [chunked_head(protocol.content_type)].into_iter().chain(body).collect::<Vec<_>>()
    };
    let mut faults = vec![
        whole("as it should be", send(stream.into())),
        whole("a byte order mark", send(format!("\u{feff}{stream}"))),
        whole("CRLF", send(stream.replace('\n', "\r\n"))),
        whole("bytes behind the end", send(format!("{stream}\u{0}\u{1} garbage"))),
        whole("no blank line behind the last event", send(stream.trim_end().into())),
        Fault::new("chunks of one byte", single_bytes(stream), Expect::Whole),
        Fault::new("CRLF in chunks of one byte", single_bytes(&stream.replace('\n', "\r\n")), Expect::Whole),
    ];
    if protocol.content_type == "text/event-stream" {
        faults.push(whole("CR", send(stream.replace('\n', "\r"))));
        faults.push(whole("comments", send(stream.replace("\n\n", "\n\n: ping\n\n"))));
        faults.push(whole("no space behind the colon", send(stream.replace("data: ", "data:"))));
        faults.push(whole("data of several lines", send(stream.replace(r#","model""#, "\ndata: ,\"model\""))));
        faults.push(whole("other fields", send(stream.replace("data: ", "id: 7\nretry: 3\ndata: "))));
    }
    faults
}

/// The stream ends at each border between events, once as if that were well.
fn cuts(protocol: &Protocol) -> Vec<Fault> {
    let (events, needed) = (protocol.events(), protocol.needed());
    let mut faults = Vec::new();
    for count in 0..events.len() {
        let text = events[..count].concat();
        let name = format!("cut behind event {count} of {}", events.len());
        let clean = if count < needed { Expect::error(Truncated) } else { Expect::Whole };
        // Where more may come behind the reason for the end, a clean end of the stream is well, and a torn one is not.
        let torn = if protocol.ends_with_stream { Expect::error(Truncated) } else { clean.clone() };
        let script = answer(protocol, vec![Step::Send(text.clone().into_bytes())]);
        faults.push(Fault::new(&name, script, clean));
        let script = vec![chunked_head(protocol.content_type), chunk(text.as_bytes())];
        faults.push(Fault::new(&format!("{name}, in the middle of a chunked body"), script, torn));
    }
    let half = &protocol.stream[..protocol.stream.find(protocol.terminal).unwrap() + 5];
    let script = answer(protocol, vec![Step::Send(half.into())]);
    faults.push(Fault::new("cut within the terminal event", script, Expect::error(Truncated)));
    faults
}

/// The connection breaks or stalls.
fn connection(protocol: &Protocol) -> Vec<Fault> {
    let begun = protocol.events()[..protocol.needed() - 1].concat();
    let begun = || Step::Send(begun.clone().into_bytes());
    let short = Duration::from_millis(150);
    let patient = TimeOuts::default();
    let idle = TimeOuts { idle: short, ..patient };
    let late_head = TimeOuts { head: short, ..patient };
    let whole = TimeOuts { whole: Duration::from_millis(400), ..patient };
    let network = Expect::error(Network);
    let time_out = Expect::error(TimeOut);
    let ping: &[u8] = if protocol.content_type == "text/event-stream" { b": ping\n\n" } else { b"\n" };
    vec![
        Fault::new("reset before the head", vec![Step::Reset], network.clone()),
        Fault::new("closed before the head", vec![], network.clone()),
        Fault::new("no HTTP", vec![Step::Send(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())], network.clone()),
        Fault::new("reset within the answer", answer(protocol, vec![begun(), Step::Reset]), network),
        Fault::new("stall before the head", vec![Step::Stall], time_out.clone()).within(late_head),
        Fault::new("stall behind the head", answer(protocol, vec![Step::Stall]), time_out.clone()).within(idle),
        Fault::new("stall within the answer", answer(protocol, vec![begun(), Step::Stall]), time_out.clone())
            .within(idle),
        Fault::new(
            "nothing but pings for ever",
            answer(protocol, vec![begun(), Step::Repeat(ping, Duration::from_millis(30))]),
            time_out,
        )
        .within(whole),
    ]
}

/// Events that the protocol does not have, or that say what went wrong.
fn events(protocol: &Protocol) -> Vec<Fault> {
    let events = protocol.events();
    let (first, rest) = (events[0].clone(), events[1..].concat());
    let with = |name: &str, event: &str, expect: Expect| {
        let body = vec![Step::Send(format!("{first}{event}{rest}").into_bytes())];
        Fault::new(name, answer(protocol, body), expect)
    };
    let mut faults = vec![
        with("an unknown event", protocol.unknown, Expect::Whole),
        with("a malformed event", protocol.malformed, Expect::error(BadFrame)),
    ];
    for (event, kind) in protocol.errors {
        faults.push(with(&format!("an error inside the stream: {}", event.trim()), event, Expect::error(*kind)));
    }
    let garbage = format!("data: {{\"{}{KEY}\n\n", "x".repeat(60));
    let garbage = if protocol.content_type == "text/event-stream" { &garbage } else { &garbage["data: ".len()..] };
    faults.push(with("a malformed event, cut within the key", garbage, Expect::error(BadFrame)));
    let body = vec![Step::Send(first.into_bytes()), Step::Send(b"data: \xff\xfe{}\n\n".to_vec())];
    faults.push(Fault::new("bytes that are no UTF-8", answer(protocol, body), Expect::error(BadFrame)));
    faults
}

/// Responses that refuse, and documents where a stream should be.
fn statuses(protocol: &Protocol) -> Vec<Fault> {
    let json = "application/json";
    let refused = |name: &str, status: u16, headers: &str, body: &str, expect: Expect| {
        let script = vec![head(status, json, headers), Step::Send(body.replace("KEY", KEY).into_bytes())];
        Fault::new(name, script, expect)
    };
    let plain = |status: u16, kind| {
        let body = r#"{"error":{"message":"no","type":"some_error"}}"#;
        refused(&format!("status {status}"), status, "", body, Expect::refused(kind, status, None))
    };
    let page = "<html><head><title>503 Service Unavailable</title></head><body>try later</body></html>";
    let seconds = |count| Some(Duration::from_secs(count));
    let limited = |name: &str, headers: &str, delay| {
        refused(name, 429, headers, r#"{"error":{"message":"slow down"}}"#, Expect::refused(RateLimited, 429, delay))
    };
    let google = r#"{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}"#;
    let dates = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:44 GMT\r\n";
    vec![
        plain(400, BadRequest),
        plain(403, Auth),
        plain(404, BadRequest),
        plain(500, Server),
        plain(503, Overloaded),
        plain(504, TimeOut),
        plain(529, Overloaded),
        plain(302, BadRequest),
        refused("status 401 that repeats the key", 401, "", protocol.refusal, Expect::refused(Auth, 401, None)),
        refused(
            "status 401 whose words are cut within the key",
            401,
            "",
            &format!(r#"{{"error":{{"message":"{}KEY"}}}}"#, "x".repeat(280)),
            Expect::refused(Auth, 401, None),
        ),
        refused(
            "status 400 about the context",
            400,
            "",
            r#"{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            Expect::refused(ContextTooLong, 400, None),
        ),
        refused(
            "status 400 about the content",
            400,
            "",
            r#"{"error":{"message":"triggered the policy","code":"content_filter"}}"#,
            Expect::refused(Blocked, 400, None),
        ),
        refused(
            "status 429 about the quota",
            429,
            "retry-after: 1\r\n",
            r#"{"error":{"message":"You exceeded your current quota, please check your plan","code":"insufficient_quota"}}"#,
            Expect::refused(Quota, 429, seconds(1)),
        ),
        limited("status 429 with seconds", "retry-after: 7\r\n", seconds(7)),
        limited(
            "status 429 with milliseconds",
            "retry-after-ms: 1500\r\nretry-after: 9\r\n",
            Some(Duration::from_millis(1500)),
        ),
        limited("status 429 with a date", dates, seconds(7)),
        limited("status 429 with an hour", "retry-after: 3600\r\n", seconds(3600)),
        limited("status 429 with nonsense", "retry-after: soon\r\n", None),
        refused(
            "status 429 with details",
            429,
            "",
            google,
            Expect::refused(RateLimited, 429, Some(Duration::from_millis(3500))),
        ),
        Fault::new(
            "status 503 as a page",
            vec![head(503, "text/html", ""), Step::Send(page.into())],
            Expect::refused(Overloaded, 503, None),
        ),
        Fault::new(
            "status 500 whose body stalls",
            vec![head(500, json, "content-length: 100\r\n"), Step::Reset],
            Expect::refused(Server, 500, None),
        ),
        Fault::new(
            "a page instead of a stream",
            vec![head(200, "text/html", ""), Step::Send(page.into())],
            Expect::error(BadFrame),
        ),
        Fault::new(
            "an error document with status 200",
            vec![head(200, json, ""), Step::Send(br#"{"error":{"message":"busy","code":429}}"#.to_vec())],
            Expect::error(RateLimited),
        ),
        Fault::new("an empty body", vec![head(200, protocol.content_type, "")], Expect::error(Truncated)),
    ]
}

fn answer(protocol: &Protocol, body: Vec<Step>) -> Vec<Step> {
    [head(200, protocol.content_type, "")].into_iter().chain(body).collect()
}

impl Fault {
    fn new(name: &str, script: Vec<Step>, expect: Expect) -> Self {
        Self { name: name.into(), script, expect, time_outs: TimeOuts::default() }
    }

    fn within(self, time_outs: TimeOuts) -> Self {
        Self { time_outs, ..self }
    }
}

impl Expect {
    fn error(kind: ProviderErrorKind) -> Self {
        Self::Error { kind, status: None, retry_after: None }
    }

    fn refused(kind: ProviderErrorKind, status: u16, retry_after: Option<Duration>) -> Self {
        Self::Error { kind, status: Some(status), retry_after }
    }
}
