//! How fast answers are read, in bytes of the service's stream per second: 10,000 pieces of text over HTTP from this
//! machine, by each protocol. `cargo xtask bench` prints it beside everything else; `cargo bench -p agent-providers
//! --bench decoding` prints it alone.

use std::{
    hint::black_box,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
};

use agent_core::{ChatClient, ChatMessage, ChatRequest};
use agent_providers::{Anthropic, Gemini, HttpOptions, Ollama, OpenAi, OpenAiResponses};
use divan::{Bencher, counter::BytesCount};
use futures::StreamExt;

fn main() {
    divan::main();
}

/// One protocol: a piece of its stream, the end of it, and a client.
struct Protocol {
    name: &'static str,
    piece: &'static str,
    end: &'static str,
    client: fn(HttpOptions) -> agent_core::Result<Box<dyn ChatClient>>,
}

const KEY: &str = "no-key";

const PROTOCOLS: [Protocol; 5] = [
    Protocol {
        name: "openai_chat",
        piece: "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"token \"}}]}\n\n",
        end: "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        client: |options| Ok(Box::new(OpenAi::new("m", KEY, options)?)),
    },
    Protocol {
        name: "openai_responses",
        piece: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"token \"}\n\n",
        end: "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
        client: |options| Ok(Box::new(OpenAiResponses::new("m", KEY, options)?)),
    },
    Protocol {
        name: "anthropic",
        piece: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"token \"}}\n\n",
        end: "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        client: |options| Ok(Box::new(Anthropic::new("m", KEY, options)?)),
    },
    Protocol {
        name: "gemini",
        piece: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"token \"}],\"role\":\"model\"}}]}\n\n",
        end: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\".\"}]},\"finishReason\":\"STOP\"}]}\n\n",
        client: |options| Ok(Box::new(Gemini::new("m", KEY, options)?)),
    },
    Protocol {
        name: "ollama",
        piece: "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"token \"},\"done\":false}\n",
        end: "{\"message\":{\"content\":\".\"},\"done\":true}\n",
        client: |options| Ok(Box::new(Ollama::new("m", None, options)?)),
    },
];

#[divan::bench(args = PROTOCOLS.iter().map(|protocol| protocol.name), sample_count = 20)]
fn answer(bencher: Bencher<'_, '_>, name: &str) {
    let protocol = PROTOCOLS.iter().find(|protocol| protocol.name == name).expect("a protocol");
    let body = protocol.piece.repeat(10_000) + protocol.end;
    let size = body.len();
    let options = HttpOptions { base_url: Some(serve(body)), ..HttpOptions::default() };
    let client = (protocol.client)(options).expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let request = ChatRequest { messages: [ChatMessage::user("go")].into(), ..ChatRequest::default() };
        runtime.block_on(client.stream(request).for_each(async |update| {
            black_box(update).expect("a whole answer");
        }));
    });
}

/// Answers each request of this process with the body, and says where.
fn serve(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        // A client that hangs up has what it wanted.
        listener.incoming().for_each(|socket| drop(socket.and_then(|socket| respond(socket, &body))));
    });
    url
}

fn respond(mut socket: TcpStream, body: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap_or_default(),
            None if line.trim_end().is_empty() => break,
            Some(_) | None => (), // another header, or the request line
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let length = body.len();
    write!(
        socket,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    socket.write_all(body.as_bytes())
}
