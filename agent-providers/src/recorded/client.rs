//! One trial's client.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{ChatClient, ChatRequest, ChatResponse, ChatUpdate, Error, ErrorKind, Result};
use futures::{StreamExt, stream, stream::BoxStream};
use serde_json::Value;

use super::{
    CassetteMode,
    cassette::Cassette,
    entry::{Entry, Piece},
    normal,
};

/// The client of one trial, see [`Recorded::trial`](super::Recorded::trial). It counts equal requests, so a new trial
/// needs a new client.
pub struct RecordedClient {
    cassette: Arc<Cassette>,
    case: String,
    repeat: u32,
    client: Option<Arc<dyn ChatClient>>,
    model: String,
    /// How often each request came, by model and normal form.
    counts: Mutex<HashMap<String, u32>>,
}

/// A call on its way into the cassette.
struct Recording<'a> {
    client: &'a RecordedClient,
    answer: BoxStream<'a, Result<ChatUpdate>>,
    key: (String, Value, u32),
    deltas: Vec<Piece>,
}

impl RecordedClient {
    pub(super) fn new(cassette: Arc<Cassette>, case: String, repeat: u32, client: Option<Arc<dyn ChatClient>>) -> Self {
        let model = match &client {
            Some(client) => client.model().to_owned(),
            None => cassette.first_model(&case, repeat).unwrap_or_else(|| "recorded".into()),
        };
        Self { cassette, case, repeat, client, model, counts: Mutex::default() }
    }

    /// Which of equal requests this is, from 0.
    fn ordinal(&self, model: &str, request: &Value) -> u32 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(format!("{model}\n{request}")).or_default();
        *count += 1;
        *count - 1
    }

    fn record(
        &self,
        (model, request, ordinal): (String, Value, u32),
        deltas: Vec<Piece>,
        response: ChatResponse,
    ) -> Result<()> {
        let (case, repeat) = (self.case.clone(), self.repeat);
        self.cassette.add(Entry { case, repeat, ordinal, model, request, deltas, response })
    }
}

impl ChatClient for RecordedClient {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        self.client.as_ref()?.provider()
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let model = request.options.model.as_ref().unwrap_or(&self.model).clone();
        let form = match normal::form(&request, &model) {
            Ok(form) => form,
            Err(error) => {
                let error = Error::new(ErrorKind::Invalid, "write a request down for a cassette").with_source(error);
                return stream::iter([Err(error)]).boxed();
            }
        };
        let ordinal = self.ordinal(&model, &form);
        let by = self.client.as_ref().map(|_| model.as_str());
        let found = match self.cassette.mode() {
            CassetteMode::Record => None,
            CassetteMode::Replay | CassetteMode::RecordMissing => {
                self.cassette.find((&self.case, self.repeat), by, &form, ordinal)
            }
        };
        match (found, &self.client) {
            (Some(entry), _) => stream::iter(entry.updates().into_iter().map(Ok)).boxed(),
            (None, Some(client)) if self.cassette.mode() != CassetteMode::Replay => {
                let (answer, key) = (client.stream(request), (model, form, ordinal));
                recording(Recording { client: self, answer, key, deltas: Vec::new() })
            }
            (None, _) => {
                let error = self.cassette.missing(&self.case, self.repeat, by, &form, ordinal);
                stream::iter([Err(error)]).boxed()
            }
        }
    }
}

/// Passes an answer on, and writes it down before its end is told.
fn recording(recording: Recording<'_>) -> BoxStream<'_, Result<ChatUpdate>> {
    let steps = stream::unfold(Some(recording), |recording| async {
        let mut recording = recording?;
        match recording.answer.next().await? {
            Ok(ChatUpdate::Delta(delta)) => {
                recording.deltas.push(delta.clone().into());
                Some((Ok(ChatUpdate::Delta(delta)), Some(recording)))
            }
            Ok(ChatUpdate::Done(response)) => {
                let Recording { client, key, deltas, .. } = recording;
                let written = client.record(key, deltas, response.clone());
                Some((written.map(|()| ChatUpdate::Done(response)), None))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    steps.boxed()
}

impl fmt::Debug for RecordedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, repeat, model, .. } = self;
        let mut out = f.debug_struct("RecordedClient");
        out.field("case", case).field("repeat", repeat).field("model", model).finish_non_exhaustive()
    }
}
