//! One call: a request, a stream, an answer or an error.

use agent_core::{ChatUpdate, Error, Result};
use futures::{StreamExt, stream, stream::BoxStream};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Http, TimeOuts, after, broken, document, late, of_document, refusal::request_id};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Answer, Decode, Reader},
    framing::Framing,
};

/// One call to a service.
#[derive(Debug)]
pub(crate) struct Call<F, D> {
    /// Where to, below the base URL.
    pub(crate) path: String,
    /// The request.
    pub(crate) body: Value,
    /// The model that is asked.
    pub(crate) model: String,
    /// The media type of the stream.
    pub(crate) accept: &'static str,
    /// How the stream is cut into frames, and how these are read.
    pub(crate) reader: (F, D),
}

/// Makes a call: deltas as they come, then the whole answer or one error.
///
/// Nothing runs but what the stream's reader polls, so dropping the stream drops the connection. A stream that ends
/// before its protocol's end is an error.
pub(crate) fn ask<'a, F, D>(http: &'a Http, call: Result<Call<F, D>>) -> BoxStream<'a, Result<ChatUpdate>>
where
    F: Framing + 'a,
    D: Decode + 'a,
{
    let call = match call {
        Ok(call) => call,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let steps = stream::unfold(Some(Asking::new(http, call)), |asking| async {
        let mut asking = asking?;
        match asking.next().await {
            Ok(update @ ChatUpdate::Delta(_)) => Some((Ok(update), Some(asking))),
            Ok(update @ ChatUpdate::Done(_)) => Some((Ok(update), None)),
            Err(error) => Some((Err(asking.explain(error)), None)),
        }
    });
    steps.boxed()
}

struct Asking<'a, F, D> {
    http: &'a Http,
    model: String,
    state: State,
    request_id: Option<String>,
    reader: Reader<F, D>,
}

#[derive(Debug)]
enum State {
    Unsent { path: String, accept: &'static str, body: Vec<u8> },
    Reading { response: Response, end: Instant },
    Failed(ProviderError),
    Over,
}

impl<'a, F: Framing, D: Decode> Asking<'a, F, D> {
    fn new(http: &'a Http, call: Call<F, D>) -> Self {
        let Call { path, body, model, accept, reader: (framing, decode) } = call;
        let reader = Reader::new(framing, decode, Answer::new(http.service().clone(), model.clone()));
        let state = State::Unsent { path, accept, body: body.to_string().into_bytes() };
        Self { http, model, state, request_id: None, reader }
    }

    /// The next update. What came before a fault is told before the fault.
    async fn next(&mut self) -> Result<ChatUpdate, ProviderError> {
        loop {
            if let Some(update) = self.reader.pop() {
                return Ok(update);
            }
            let state = std::mem::replace(&mut self.state, State::Over);
            self.state = match self.step(state).await {
                Ok(State::Failed(error)) => return Err(error),
                Ok(state) => state,
                Err(error) => State::Failed(error),
            };
        }
    }

    /// Sends the request, or reads what comes next.
    async fn step(&mut self, state: State) -> Result<State, ProviderError> {
        let TimeOuts { idle, whole, .. } = self.http.time_outs;
        match state {
            State::Unsent { path, accept, body } => {
                let end = after(whole);
                let response = self.http.send(&path, accept, body, end).await?;
                self.request_id = request_id(response.headers());
                Ok(State::Reading { response: stream_of(response, end, idle).await?, end })
            }
            State::Reading { mut response, end } => {
                let pause = after(idle);
                match timeout_at(end.min(pause), response.chunk()).await {
                    Ok(Ok(Some(bytes))) => self.reader.push(&bytes)?,
                    Ok(Ok(None)) => {
                        self.reader.end()?;
                        return Ok(State::Over);
                    }
                    Ok(Err(error)) => return Err(broken(error)),
                    Err(_) if pause < end => return Err(late("the next piece of the answer", idle)),
                    Err(_) => return Err(late("the whole answer", whole)),
                }
                Ok(State::Reading { response, end })
            }
            State::Failed(_) => Ok(state),
            // Not reached: the reader's last update is the end, behind which nobody asks.
            State::Over => Err(ProviderError::new(ProviderErrorKind::Truncated, "the stream is over")),
        }
    }

    fn explain(&self, mut error: ProviderError) -> Error {
        error.request_id = error.request_id.or_else(|| self.request_id.clone());
        let attempted = format!("ask `{}` of {}", self.model, self.http.service());
        self.http.redact(error).into_error(&attempted)
    }
}

/// A response whose body is a stream; a document instead of one is an error that says what the document says.
async fn stream_of(mut response: Response, end: Instant, idle: std::time::Duration) -> Result<Response, ProviderError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind != "application/json" && kind != "text/html" {
        return Ok(response);
    }
    let (body, broken) = document(&mut response, end.min(after(idle))).await;
    if let Some(error) = broken {
        return Err(error);
    }
    match serde_json::from_slice::<Value>(&body) {
        Ok(document) if !document["error"].is_null() => Err(of_document(None, &document)),
        _ => {
            let words = format!("the service sent a document of type {kind} instead of a stream");
            Err(ProviderError::new(ProviderErrorKind::BadFrame, words))
        }
    }
}
