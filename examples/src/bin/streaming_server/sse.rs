//! What a client sees of a run.

use agent_core::{Delta, Result, Update};
use agent_examples::describe;
use axum::response::sse::Event;
use serde::Serialize;
use serde_json::json;

/// An update, or the error that ends the run, as an event of the stream.
pub(super) fn shown(update: Result<Update>) -> Event {
    match update {
        Ok(Update::Delta(Delta::Text(text))) => event("delta", json!({ "text": text })),
        Ok(Update::Delta(Delta::Reasoning(text))) => event("delta", json!({ "reasoning": text })),
        Ok(Update::Delta(Delta::ToolArguments { call_id, json })) => {
            event("delta", json!({ "call_id": call_id, "arguments": json }))
        }
        Ok(Update::Event(committed)) => event("event", committed),
        Ok(Update::Done(stop)) => event("done", json!({ "stop": stop })),
        Err(error) => event("error", json!({ "error": describe(&error) })),
    }
}

fn event(name: &str, data: impl Serialize) -> Event {
    Event::default().event(name).json_data(data).expect("what is shown is serializable as JSON")
}
