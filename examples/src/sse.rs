//! A run as server-sent events.

use agent_core::{Delta, Result, Update};
use axum::response::sse::Event;
use serde::Serialize;
use serde_json::json;

/// What a client sees of a run: an update, or the error that ends the run, as an event of the stream.
pub fn sse_event(update: Result<Update>) -> Event {
    match update {
        Ok(Update::Delta(Delta::Text(text))) => event("delta", json!({ "text": text })),
        Ok(Update::Delta(Delta::Reasoning(text))) => event("delta", json!({ "reasoning": text })),
        Ok(Update::Delta(Delta::ToolArguments { call_id, json })) => {
            event("delta", json!({ "call_id": call_id, "arguments": json }))
        }
        Ok(Update::Event(committed)) => event("event", committed),
        Ok(Update::Done(stop)) => event("done", json!({ "stop": stop })),
        Err(error) => event("error", json!({ "error": format!("{error:#}") })),
    }
}

fn event(name: &str, data: impl Serialize) -> Event {
    Event::default().event(name).json_data(data).expect("what is shown is serializable as JSON")
}
