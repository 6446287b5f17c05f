//! A subscriber that keeps all spans, for tests of what they show.

use std::{
    collections::BTreeMap,
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

/// All spans and events of this thread, from [`Spans::capture`] on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<Captured>>>);

/// A span, or an event, which has no id.
#[derive(Debug)]
struct Captured {
    id: Option<u64>,
    parent: Option<u64>,
    name: String,
    fields: Fields,
}

#[derive(Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        panic!("{field} = {value} would be exported as a text: OpenTelemetry has signed numbers only");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Spans {
    /// Keeps what this thread records as long as the guard lives.
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        let spans = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(spans.clone()));
        (spans, guard)
    }

    /// The spans as a tree, each with those of these fields that it has.
    pub(crate) fn tree(&self, fields: &[&str]) -> String {
        let mut text = String::new();
        let all = self.0.lock().unwrap();
        write_children(&mut text, &all, None, 0, fields);
        text
    }

    /// Everything that any span or event shows, one `span.field=value` a line.
    pub(crate) fn fields(&self) -> String {
        let mut text = String::new();
        for captured in &*self.0.lock().unwrap() {
            for (field, value) in &captured.fields.0 {
                writeln!(text, "{}.{field}={value}", captured.name).unwrap();
            }
        }
        text
    }
}

fn write_children(text: &mut String, all: &[Captured], parent: Option<u64>, depth: usize, fields: &[&str]) {
    for span in all.iter().filter(|span| span.parent == parent && span.id.is_some()) {
        let name = span.fields.0.get("otel.name").unwrap_or(&span.name);
        write!(text, "{:1$}{name}", "", depth * 2).unwrap();
        for field in fields {
            if let Some(value) = span.fields.0.get(field) {
                write!(text, " {field}={value}").unwrap();
            }
        }
        text.push('\n');
        write_children(text, all, span.id, depth + 1, fields);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let parent = cx.span(id).and_then(|span| span.parent().map(|parent| parent.id().into_u64()));
        let name = attributes.metadata().name().to_owned();
        self.0.lock().unwrap().push(Captured { id: Some(id.into_u64()), parent, name, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut all = self.0.lock().unwrap();
        // The registry uses an id again once its span is closed, so the last one is meant.
        let span = all.iter_mut().rev().find(|span| span.id == Some(id.into_u64()));
        values.record(&mut span.unwrap().fields);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let name = event.metadata().name().to_owned();
        self.0.lock().unwrap().push(Captured { id: None, parent: None, name, fields });
    }
}
