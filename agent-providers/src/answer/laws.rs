//! What holds for every protocol, whatever bytes come. Each protocol is one row of [`protocols`].

use agent_core::{ChatResponse, ChatUpdate, Delta};
use proptest::{collection::vec, prelude::*, sample::Index};

use super::{Answer, Decode, Reader};
use crate::{ProviderError, ProviderErrorKind, framing::Framing};

struct Protocol {
    name: &'static str,
    /// A whole answer.
    stream: &'static str,
    /// What the event that ends an answer has and no other event has; the answer counts once the line with its first
    /// occurrence is there.
    terminal: &'static str,
    read: fn(&mut dyn Iterator<Item = Vec<u8>>) -> Read,
}

type Read = (Vec<Delta>, Result<ChatResponse, ProviderError>);

fn protocols() -> Vec<Protocol> {
    vec![
        Protocol {
            name: "openai-chat",
            stream: include_str!("../../tests/streams/openai_chat.sse"),
            terminal: r#""finish_reason":"tool_calls""#,
            read: |chunks| read(crate::openai_chat::reader(), chunks),
        },
        Protocol {
            name: "openai-responses",
            stream: include_str!("../../tests/streams/openai_responses.sse"),
            terminal: r#""type":"response.completed""#,
            read: |chunks| read(crate::openai_responses::reader(), chunks),
        },
        Protocol {
            name: "anthropic",
            stream: include_str!("../../tests/streams/anthropic.sse"),
            terminal: r#""type":"message_stop""#,
            read: |chunks| read(crate::anthropic::reader(), chunks),
        },
        Protocol {
            name: "gemini",
            stream: include_str!("../../tests/streams/gemini.sse"),
            terminal: r#""finishReason":"STOP""#,
            read: |chunks| read(crate::gemini::reader(), chunks),
        },
        Protocol {
            name: "ollama",
            stream: include_str!("../../tests/streams/ollama.ndjson"),
            terminal: r#""done":true"#,
            read: |chunks| read(crate::ollama::reader(), chunks),
        },
    ]
}

fn read<F: Framing, D: Decode>((framing, decode): (F, D), chunks: &mut dyn Iterator<Item = Vec<u8>>) -> Read {
    let mut reader = Reader::new(framing, decode, Answer::new("test", "asked"));
    let mut deltas = Vec::new();
    let mut ended = false;
    loop {
        let taken = if let Some(bytes) = chunks.next() {
            reader.push(&bytes)
        } else {
            ended = true;
            reader.end()
        };
        while let Some(update) = reader.pop() {
            match update {
                ChatUpdate::Delta(delta) => deltas.push(delta),
                ChatUpdate::Done(response) => return (deltas, Ok(response)),
            }
        }
        if let Err(error) = taken {
            return (deltas, Err(error));
        }
        assert!(!ended, "the end of the stream is an answer or an error");
    }
}

impl Protocol {
    fn whole(&self, bytes: &[u8]) -> Read {
        (self.read)(&mut std::iter::once(bytes.to_vec()))
    }
}

#[test]
fn a_whole_stream_is_the_whole_answer() {
    for protocol in protocols() {
        let (deltas, response) = protocol.whole(protocol.stream.as_bytes());
        insta::assert_debug_snapshot!(protocol.name, (deltas, response.unwrap()));
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_before_its_terminal_event_is_truncated() {
    for protocol in protocols() {
        let stream = protocol.stream.as_bytes();
        let start = protocol.stream.find(protocol.terminal).expect("the stream has its terminal event");
        let end = start + protocol.stream[start..].find('\n').expect("events end with a line");
        for cut in 0..stream.len() {
            let (_, read) = protocol.whole(&stream[..cut]);
            let (name, tail) = (protocol.name, String::from_utf8_lossy(&stream[cut.saturating_sub(30)..cut]));
            match read {
                Ok(_) => assert!(cut >= end, "{name}: cut after {tail:?}, and taken for whole"),
                Err(error) => {
                    assert_eq!(error.kind, ProviderErrorKind::Truncated, "{name}: cut after {tail:?}: {error}");
                    // Between the answer's end and the stream's, half an event is a cut, too.
                    assert!(cut < end || !stream[..cut].ends_with(b"\n\n"), "{name}: whole, but refused: {tail:?}");
                }
            }
        }
    }
}

#[test]
fn single_bytes_and_any_line_end_give_the_same_answer() {
    for protocol in protocols() {
        let expected = protocol.whole(protocol.stream.as_bytes());
        for line_end in ["\n", "\r\n", "\r"] {
            for bom in ["", "\u{feff}"] {
                let stream = format!("{bom}{}", protocol.stream.replace('\n', line_end));
                let read = (protocol.read)(&mut stream.bytes().map(|byte| vec![byte]));
                assert_eq!(read, expected, "{} with {line_end:?} and {bom:?}", protocol.name);
            }
        }
    }
}

#[test]
fn a_long_event_in_single_bytes_takes_no_more_than_linear_time() {
    // 1 MiB: with work for each byte that grows with the bytes before it, this would not end in minutes.
    let long = "x".repeat(1 << 20);
    let (comment, line) = (format!(": {long}\n\n"), format!("{{\"x\":\"{long}\"}}\n"));
    for protocol in protocols() {
        let filler = if protocol.stream.starts_with('{') { &line } else { &comment };
        let bytes = filler.bytes().chain(protocol.stream.bytes());
        let read = (protocol.read)(&mut bytes.map(|byte| vec![byte]));
        assert_eq!(read, protocol.whole(protocol.stream.as_bytes()), "{}", protocol.name);
    }
}

/// One way to spoil a stream.
#[derive(Debug, Clone)]
enum Mutation {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Swap(Index, Index),
    Cut(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let piece = prop_oneof![
        vec(any::<u8>(), 1..8),
        prop::sample::select(vec![
            "\n",
            "\r",
            "\n\n",
            "data:",
            "event: error\n",
            "null",
            "{",
            "}",
            "\"",
            "[]",
            "\u{feff}",
            "data: [DONE]\n\n",
            "data: {}\n\n",
            "data: {\"error\":{\"message\":\"x\"}}\n\n",
            "-1",
            "1e999",
            "\\ud800",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (at(), piece).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (at(), 1..200_usize).prop_map(|(at, len)| Mutation::Remove(at, len)),
        (at(), 1..400_usize).prop_map(|(at, len)| Mutation::Repeat(at, len)),
        (at(), at()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        at().prop_map(Mutation::Cut),
    ]
}

fn mutate(stream: &str, mutations: &[Mutation]) -> Vec<u8> {
    let mut bytes = stream.as_bytes().to_vec();
    for mutation in mutations {
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len();
        match mutation {
            Mutation::Set(at, byte) => bytes[at.index(len)] = *byte,
            Mutation::Insert(at, more) => {
                let at = at.index(len);
                bytes.splice(at..at, more.iter().copied());
            }
            Mutation::Remove(at, count) => {
                let at = at.index(len);
                bytes.drain(at..(at + count).min(len));
            }
            Mutation::Repeat(at, count) => {
                let at = at.index(len);
                let piece = bytes[at..(at + count).min(len)].to_vec();
                bytes.splice(at..at, piece);
            }
            Mutation::Swap(a, b) => bytes.swap(a.index(len), b.index(len)),
            Mutation::Cut(at) => bytes.truncate(at.index(len)),
        }
    }
    bytes
}

fn cut(bytes: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut places = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect::<Vec<_>>();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

// The number of cases is the variable PROPTEST_CASES; 256 without it.
proptest! {
    #[test]
    fn any_chunking_gives_the_same_answer(cuts in vec(any::<Index>(), 0..40)) {
        for protocol in protocols() {
            let stream = protocol.stream.as_bytes();
            let read = (protocol.read)(&mut cut(stream, &cuts).into_iter());
            prop_assert_eq!(read, protocol.whole(stream), "{}", protocol.name);
        }
    }

    #[test]
    fn a_mutated_stream_is_an_answer_with_its_terminal_event_or_an_error(
        mutations in vec(mutation(), 1..6),
        cuts in vec(any::<Index>(), 0..10),
    ) {
        for protocol in protocols() {
            let bytes = mutate(protocol.stream, &mutations);
            let (deltas, read) = protocol.whole(&bytes);
            if read.is_ok() {
                let key = protocol.terminal.split(':').next().expect("split gives one piece at least");
                let text = String::from_utf8_lossy(&bytes);
                prop_assert!(text.contains(key), "{}: an end out of nothing: {:?}", protocol.name, text);
            }
            let chunked = (protocol.read)(&mut cut(&bytes, &cuts).into_iter());
            prop_assert_eq!(chunked, (deltas, read), "{}: chunks change the outcome", protocol.name);
        }
    }
}
