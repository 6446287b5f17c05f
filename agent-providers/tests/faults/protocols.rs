//! The protocols: a row each, with what the faults have to be written in.

use std::sync::Arc;

use agent_core::ChatClient;
use agent_providers::{Anthropic, Gemini, HttpOptions, Ollama, OpenAi, OpenAiResponses, ProviderErrorKind, TimeOuts};
use serde_json::json;

use ProviderErrorKind::{Auth, Blocked, ContextTooLong, Overloaded, RateLimited, Server, Truncated};

pub(crate) const KEY: &str = "sk-test-0123456789abcdefghijklmnop";

/// One protocol.
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    pub(crate) content_type: &'static str,
    /// A whole answer; it says "Let me add – twice." and calls `add` twice.
    pub(crate) stream: &'static str,
    /// A whole answer that says a text.
    pub(crate) says: fn(&str) -> String,
    /// What the event that ends the answer contains.
    pub(crate) terminal: &'static str,
    /// Whether the end of the stream is a part of the answer's end: something may come behind the terminal event.
    pub(crate) ends_with_stream: bool,
    /// What separates events.
    pub(crate) separator: &'static str,
    /// An event that the protocol does not have.
    pub(crate) unknown: &'static str,
    /// An event that is no JSON.
    pub(crate) malformed: &'static str,
    /// Errors inside a stream, and what they are about.
    pub(crate) errors: &'static [(&'static str, ProviderErrorKind)],
    /// The body of an error response about a key, which repeats the key.
    pub(crate) refusal: &'static str,
    /// A client of the service at a URL, with the key; and what its `Debug` says.
    pub(crate) client: fn(&str, TimeOuts) -> Client,
}

type Client = (Arc<dyn ChatClient>, String);

pub(crate) fn protocols() -> Vec<Protocol> {
    vec![openai_chat(), openai_responses(), anthropic(), gemini(), ollama()]
}

fn openai_chat() -> Protocol {
    Protocol {
        name: "openai-chat",
        content_type: "text/event-stream",
        stream: include_str!("../streams/openai_chat.sse"),
        says: |text| {
            let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": "stop" });
            format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [choice] }))
        },
        terminal: r#""finish_reason":"tool_calls""#,
        ends_with_stream: true,
        separator: "\n\n",
        unknown: "event: surprise\ndata: {\"object\":\"chat.surprise\",\"x\":[1]}\n\n",
        malformed: "data: {\"choices\":[{\"delta\":\n\n",
        errors: &[
            ("data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\",\"code\":null}}\n\n", Server),
            ("data: {\"error\":{\"message\":\"Provider returned error\",\"code\":429}}\n\n", RateLimited),
            ("event: error\ndata: {\"message\":\"out of capacity\",\"code\":\"overloaded\"}\n\n", Overloaded),
            ("data: {\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}\n\n", ContextTooLong),
            ("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n", Server),
            ("data: {\"object\":\"error\",\"message\":\"boom\",\"code\":500}\n\n", Server),
        ],
        refusal: r#"{"error":{"message":"Incorrect API key provided: KEY","type":"invalid_request_error","code":"invalid_api_key"}}"#,
        client: |url, time_outs| with_debug(OpenAi::new("gpt-test", KEY, options(url, time_outs)).unwrap()),
    }
}

fn openai_responses() -> Protocol {
    Protocol {
        name: "openai-responses",
        content_type: "text/event-stream",
        stream: include_str!("../streams/openai_responses.sse"),
        says: |text| {
            let delta = json!({ "type": "response.output_text.delta", "item_id": "m", "delta": text });
            let end = json!({ "type": "response.completed", "response": { "status": "completed" } });
            format!("data: {delta}\n\ndata: {end}\n\n")
        },
        terminal: r#""type":"response.completed""#,
        ends_with_stream: false,
        separator: "\n\n",
        unknown: "event: response.surprise\ndata: {\"type\":\"response.surprise\",\"x\":[1]}\n\n",
        malformed: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\n\n",
        errors: &[
            (
                "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}\n\n",
                RateLimited,
            ),
            ("event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\"}\n\n", Server),
            (
                "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"boom\"}}}\n\n",
                Server,
            ),
            ("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":null}}\n\n", Server),
        ],
        refusal: r#"{"error":{"message":"Incorrect API key provided: KEY","type":"invalid_request_error","code":"invalid_api_key"}}"#,
        client: |url, time_outs| with_debug(OpenAiResponses::new("gpt-test", KEY, options(url, time_outs)).unwrap()),
    }
}

fn anthropic() -> Protocol {
    Protocol {
        name: "anthropic",
        content_type: "text/event-stream",
        stream: include_str!("../streams/anthropic.sse"),
        says: |text| {
            let delta = json!({ "type": "text_delta", "text": text });
            let events = [
                json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
                json!({ "type": "message_stop" }),
            ];
            events.map(|event| format!("data: {event}\n\n")).concat()
        },
        terminal: r#""type":"message_stop""#,
        ends_with_stream: false,
        separator: "\n\n",
        unknown: "event: surprise\ndata: {\"type\":\"surprise\",\"x\":[1]}\n\n",
        malformed: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":\n\n",
        errors: &[
            (
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
                Overloaded,
            ),
            (
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\n\n",
                Server,
            ),
            (
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n",
                RateLimited,
            ),
            (
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}\n\n",
                ContextTooLong,
            ),
            // The end, but never a reason for it.
            ("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", Truncated),
        ],
        refusal: r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key KEY"}}"#,
        client: |url, time_outs| with_debug(Anthropic::new("claude-test", KEY, options(url, time_outs)).unwrap()),
    }
}

fn gemini() -> Protocol {
    Protocol {
        name: "gemini",
        content_type: "text/event-stream",
        stream: include_str!("../streams/gemini.sse"),
        says: |text| {
            let candidate = json!({ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" });
            format!("data: {}\n\n", json!({ "candidates": [candidate] }))
        },
        terminal: r#""finishReason":"STOP""#,
        ends_with_stream: true,
        separator: "\n\n",
        unknown: "data: {\"surprise\":[1]}\n\n",
        malformed: "data: {\"candidates\":[{\"content\":\n\n",
        errors: &[
            ("data: {\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\n\n", Overloaded),
            (
                "data: {\"error\":{\"code\":400,\"message\":\"The input token count (9) exceeds the maximum\",\"status\":\"INVALID_ARGUMENT\"}}\n\n",
                ContextTooLong,
            ),
            (
                "data: {\"error\":{\"code\":400,\"message\":\"API key not valid.\",\"details\":[{\"reason\":\"API_KEY_INVALID\"}]}}\n\n",
                Auth,
            ),
            ("data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}\n\n", Blocked),
            (
                "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"print(x)\"}]}\n\n",
                Server,
            ),
        ],
        refusal: r#"{"error":{"code":401,"message":"Request had invalid authentication credentials: KEY","status":"UNAUTHENTICATED"}}"#,
        client: |url, time_outs| with_debug(Gemini::new("gemini-test", KEY, options(url, time_outs)).unwrap()),
    }
}

fn ollama() -> Protocol {
    Protocol {
        name: "ollama",
        content_type: "application/x-ndjson",
        stream: include_str!("../streams/ollama.ndjson"),
        says: |text| format!("{}\n", json!({ "message": { "content": text }, "done": true })),
        terminal: r#""done":true"#,
        ends_with_stream: false,
        separator: "\n",
        unknown: "{\"surprise\":[1]}\n",
        malformed: "{\"message\":\n",
        errors: &[
            ("{\"error\":\"an error was encountered while running the model\"}\n", Server),
            ("{\"error\":\"the prompt exceeds the context length of the model\"}\n", ContextTooLong),
        ],
        refusal: r#"{"error":"unauthorized: KEY"}"#,
        client: |url, time_outs| {
            with_debug(Ollama::new("qwen-test", Some(KEY.into()), options(url, time_outs)).unwrap())
        },
    }
}

fn with_debug(client: impl ChatClient + std::fmt::Debug + 'static) -> Client {
    let debug = format!("{client:?}");
    (Arc::new(client), debug)
}

fn options(url: &str, time_outs: TimeOuts) -> HttpOptions {
    HttpOptions { base_url: Some(url.to_owned()), time_outs, ..HttpOptions::default() }
}

impl Protocol {
    /// The events of the stream, each with what separates it from the next.
    pub(crate) fn events(&self) -> Vec<String> {
        self.stream.split_inclusive(self.separator).map(str::to_owned).collect()
    }

    /// How many events make a whole answer.
    pub(crate) fn needed(&self) -> usize {
        let last = self.events().iter().position(|event| event.contains(self.terminal));
        last.expect("the stream has its terminal event") + 1
    }
}
