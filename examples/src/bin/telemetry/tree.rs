//! Spans as a tree of text.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry::{KeyValue, SpanId, Value};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

/// Keeps the spans that end, and shows them as a tree. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree(Arc<Mutex<Vec<SpanData>>>);

/// What the spans' names say already, what differs in each run, and what this example has no use for.
const HIDDEN: [&str; 10] = [
    "agent.iteration",
    "agent.loop.name",
    "agent.run",
    "gen_ai.agent.name",
    "gen_ai.evaluation.name",
    "gen_ai.operation.name",
    "gen_ai.request.",
    "gen_ai.response.model",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
];

impl SpanExporter for Tree {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if spans.is_empty() {
            return Ok(());
        }
        spans.sort_by_key(|span| span.start_time); // they come in the order in which they end
        f.write_str("\nspans:\n")?;
        write_children(f, &spans, SpanId::INVALID, 1)
    }
}

fn write_children(f: &mut fmt::Formatter<'_>, spans: &[SpanData], parent: SpanId, depth: usize) -> fmt::Result {
    for span in spans.iter().filter(|span| span.parent_span_id == parent) {
        write!(f, "{:1$}{2}", "", depth * 2, span.name)?;
        for attribute in span.attributes.iter().filter(|attribute| is_shown(attribute)) {
            write!(f, "  {}={}", attribute.key, attribute.value)?;
        }
        writeln!(f)?;
        write_children(f, spans, span.span_context.span_id(), depth + 1)?;
    }
    Ok(())
}

fn is_shown(attribute: &KeyValue) -> bool {
    let hidden = HIDDEN.iter().any(|hidden| attribute.key.as_str().starts_with(hidden));
    !hidden && attribute.value != Value::I64(0)
}
