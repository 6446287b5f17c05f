//! One call: a request, a stream, an answer or an error.

use std::collections::VecDeque;

use agent_core::{ChatUpdate, Error, Result};
use futures::{StreamExt, stream, stream::BoxStream};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Http, TimeOuts, broken, late, of_document, refusal::request_id};
use crate::{
    ProviderError, ProviderErrorKind,
    answer::{Answer, Decode, WireEvent},
    framing::{Frame, FrameError, Framing},
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
    /// How the stream is cut into frames.
    pub(crate) framing: F,
    /// How frames are read.
    pub(crate) decode: D,
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
    let asking = Asking::new(http, call);
    let steps = stream::unfold(Some(asking), |asking| async {
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
    request: Option<(String, &'static str, Vec<u8>)>,
    response: Option<Response>,
    request_id: Option<String>,
    model: String,
    framing: F,
    decode: D,
    answer: Option<Answer>,
    ready: VecDeque<ChatUpdate>,
    frames: Vec<Frame>,
    events: Vec<WireEvent>,
    end: Option<Instant>,
    failed: Option<ProviderError>,
}

impl<'a, F: Framing, D: Decode> Asking<'a, F, D> {
    fn new(http: &'a Http, call: Call<F, D>) -> Self {
        let Call { path, body, model, accept, framing, decode } = call;
        Self {
            http,
            request: Some((path, accept, body.to_string().into_bytes())),
            response: None,
            request_id: None,
            answer: Some(Answer::new(http.provider(), model.clone())),
            model,
            framing,
            decode,
            ready: VecDeque::new(),
            frames: Vec::new(),
            events: Vec::new(),
            end: None,
            failed: None,
        }
    }

    /// The next update. What came before a fault is told before the fault.
    async fn next(&mut self) -> Result<ChatUpdate, ProviderError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(update);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if let Err(error) = self.step().await {
                self.failed = Some(error);
            }
        }
    }

    /// Sends the request, or reads what comes next.
    async fn step(&mut self) -> Result<(), ProviderError> {
        let whole = self.http.time_outs.whole;
        let end = *self.end.get_or_insert_with(|| Instant::now() + whole);
        if let Some((path, accept, body)) = self.request.take() {
            let response = self.http.send(&path, accept, body, end).await?;
            self.request_id = request_id(response.headers());
            self.response = Some(stream_of(response, end).await?);
            return Ok(());
        }
        let framed = match self.read(end).await? {
            Some(bytes) => self.framing.push(&bytes, &mut self.frames),
            None => {
                self.response = None;
                self.framing.end(&mut self.frames)
            }
        };
        // Whole frames count first: what is wrong behind the answer's end does not matter, however the bytes are cut.
        let at_end = self.response.is_none() && framed.is_ok();
        self.digest(at_end)?;
        if self.answer.is_some() { framed.map_err(bad_frame) } else { Ok(()) }
    }

    async fn read(&mut self, end: Instant) -> Result<Option<Vec<u8>>, ProviderError> {
        let TimeOuts { idle, whole, .. } = self.http.time_outs;
        let Some(response) = &mut self.response else { return Ok(None) };
        let pause = Instant::now() + idle;
        match timeout_at(end.min(pause), response.chunk()).await {
            Ok(bytes) => bytes.map(|bytes| bytes.map(Into::into)).map_err(broken),
            Err(_) if pause < end => Err(late("the next piece of the answer", idle)),
            Err(_) => Err(late("the whole answer", whole)),
        }
    }

    /// Reads the frames that came, up to the answer's end.
    fn digest(&mut self, at_end: bool) -> Result<(), ProviderError> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        for frame in std::mem::take(&mut self.frames) {
            let read = self.decode.frame(&frame, &mut self.events);
            for event in self.events.drain(..) {
                answer.apply(event, &mut self.ready);
            }
            read?;
            if answer.is_ended() {
                break;
            }
        }
        if answer.is_ended() || at_end && D::END_OF_STREAM_ENDS && answer.has_stop() {
            self.complete();
            return Ok(());
        }
        if at_end {
            let words = "the stream ended before the service said that the answer is complete";
            return Err(ProviderError::new(ProviderErrorKind::Truncated, words));
        }
        Ok(())
    }

    fn complete(&mut self) {
        let Some(mut answer) = self.answer.take() else { return };
        self.decode.finish(&mut self.events);
        for event in self.events.drain(..) {
            answer.apply(event, &mut self.ready);
        }
        self.ready.push_back(ChatUpdate::Done(answer.finish()));
    }

    fn explain(&self, mut error: ProviderError) -> Error {
        error.request_id = error.request_id.or_else(|| self.request_id.clone());
        let attempted = format!("ask `{}` of {}", self.model, self.http.provider());
        self.http.redact(error).into_error(&attempted)
    }
}

/// A response whose body is a stream; a document instead of one is an error that says what the document says.
async fn stream_of(mut response: Response, end: Instant) -> Result<Response, ProviderError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let page = kind == "text/html";
    if kind != "application/json" && !page {
        return Ok(response);
    }
    const MOST: usize = 64 * 1024; // bytes; an error is shorter
    let mut body = Vec::new();
    while body.len() < MOST {
        match timeout_at(end, response.chunk()).await {
            Ok(bytes) => match bytes.map_err(broken)? {
                Some(bytes) => body.extend_from_slice(&bytes),
                None => break,
            },
            Err(_) => return Err(late("the whole answer", end - Instant::now())),
        }
    }
    match serde_json::from_slice::<Value>(&body) {
        Ok(document) if !document["error"].is_null() => Err(of_document(None, &document)),
        _ => {
            let words = format!("the service sent a document of type {kind} instead of a stream");
            Err(ProviderError::new(ProviderErrorKind::BadFrame, words))
        }
    }
}

fn bad_frame(error: FrameError) -> ProviderError {
    ProviderError::new(ProviderErrorKind::BadFrame, error.to_string())
}
