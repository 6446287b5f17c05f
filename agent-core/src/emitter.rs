//! An async body as a pull stream, without a channel between them.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use futures_util::{Stream, StreamExt};
use pin_project_lite::pin_project;
use tracing::{Instrument, Span, instrument::Instrumented};

use crate::{
    AgentResponse, Delta, Draft, Error, ErrorKind, Event, Result, RunContext, Session, StopReason, Update, Updates,
    Usage, ids, response::Fold, slot::Slot, telemetry,
};

/// Makes a run of an async body: whatever the body sends to its [`Emitter`] are the updates, what it returns is the
/// end.
///
/// The body moves only when the stream is polled, and stands still at each send until that update was taken and the
/// next one is asked for.
///
/// A run by [`Event::CALLER`] is an [`Invalid`](ErrorKind::Invalid) error: that name is no agent's.
pub fn updates<'a, Fut>(author: impl Into<Arc<str>>, cx: &RunContext, body: impl FnOnce(Emitter) -> Fut) -> Updates<'a>
where
    Fut: Future<Output = Result<StopReason>> + Send + 'a,
{
    let author = author.into();
    let span = telemetry::agent(&author, cx);
    updates_in(span, author, cx, body)
}

/// As [`updates`], in another span than that of an agent.
pub(crate) fn updates_in<'a, Fut>(
    span: Span,
    author: Arc<str>,
    cx: &RunContext,
    body: impl FnOnce(Emitter) -> Fut,
) -> Updates<'a>
where
    Fut: Future<Output = Result<StopReason>> + Send + 'a,
{
    let shared = Arc::new(Shared { author, cx: cx.clone(), slot: Mutex::default() });
    if &*shared.author == Event::CALLER {
        let (end, used) = (Some(Err(callers_name())), Usage::default());
        return Box::pin(Run { shared, body: None::<Instrumented<Fut>>, end, used });
    }
    let body = body(Emitter { shared: shared.clone() }).instrument(span);
    Box::pin(Run { shared, body: Some(body), end: None, used: Usage::default() })
}

/// Where an agent's body puts its updates. Clones are the same emitter.
#[derive(Clone)]
pub struct Emitter {
    shared: Arc<Shared>,
}

struct Shared {
    author: Arc<str>,
    cx: RunContext,
    slot: Mutex<Slot>,
}

impl Shared {
    #[inline]
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Emitter {
    /// The run's context.
    pub fn cx(&self) -> &RunContext {
        &self.shared.cx
    }

    /// Shows a piece.
    pub fn delta(&self, delta: Delta) -> impl Future<Output = ()> + Send {
        self.send(|| Update::Delta(delta))
    }

    /// Commits a step: stamps it with the emitter's name, the run and the path, applies it and yields it, in one step.
    pub fn record(&self, session: &mut Session, draft: Draft) -> impl Future<Output = ()> + Send {
        self.send(move || {
            let event = self.stamp(draft);
            session.apply(&event);
            Update::Event(event)
        })
    }

    /// Commits an event that was stamped elsewhere.
    pub fn commit(&self, session: &mut Session, event: Event) -> impl Future<Output = ()> + Send {
        self.send(move || {
            session.apply(&event);
            Update::Event(event)
        })
    }

    /// Yields all updates of an inner run but its end, and returns what they come to. The inner run has applied its
    /// events itself.
    ///
    /// # Errors
    /// The inner run's, and [`ErrorKind::Contract`] if it has no end or goes on after it.
    pub async fn forward(&self, inner: Updates<'_>) -> Result<AgentResponse> {
        let mut fold = Fold::default();
        self.relay(inner, |event| fold.add(event.clone())).await.map(|stop| fold.end(stop))
    }

    /// As [`forward`](Self::forward), without keeping the events.
    pub(crate) async fn relay(&self, mut inner: Updates<'_>, mut see: impl FnMut(&Event)) -> Result<StopReason> {
        let (mut held, mut ticket) = (None, None);
        let end = poll_fn(|cx| {
            loop {
                if held.is_some() || ticket.is_some() {
                    ready!(self.poll_send(&mut ticket, cx, || held.take()));
                    (held, ticket) = (None, None);
                }
                held = match ready!(inner.poll_next_unpin(cx)) {
                    None => return Poll::Ready(Err(no_end())),
                    Some(Ok(Update::Done(stop))) => return Poll::Ready(Ok(stop)),
                    Some(Ok(update)) => Some(update),
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                };
                if let Some(Update::Event(event)) = &held {
                    see(event);
                }
            }
        });
        let stop = end.await?;
        ended(&mut inner, stop).await
    }

    fn stamp(&self, draft: Draft) -> Event {
        let Shared { author, cx, .. } = &*self.shared;
        let Draft { rewind, mut messages, state, usage, escalate } = draft;
        for message in &mut messages {
            message.author.get_or_insert_with(|| author.clone());
        }
        Event {
            id: ids::next(),
            run: cx.id(),
            author: author.clone(),
            path: cx.path().clone(),
            rewind,
            messages,
            state,
            usage,
            escalate,
        }
    }

    /// Puts an update into the slot once it is free, and returns once the next one is asked for. `make` runs at the
    /// moment of placing, so that ids rise in the order of the stream and an unplaced event is never applied.
    pub(crate) fn send(&self, make: impl FnOnce() -> Update + Send) -> impl Future<Output = ()> + Send {
        let (mut make, mut ticket) = (Some(make), None);
        poll_fn(move |cx| self.poll_send(&mut ticket, cx, || make.take().map(|make| make())))
    }

    /// One look at the slot, by the sender of this ticket.
    fn poll_send(&self, ticket: &mut Option<u64>, cx: &Context<'_>, make: impl FnOnce() -> Option<Update>) -> Poll<()> {
        let mut slot = self.shared.slot();
        if slot.is_closed() {
            return Poll::Ready(()); // nobody will see it, so it does not happen
        }
        match *ticket {
            None if slot.is_free() => *ticket = make().map(|update| slot.place(update)),
            Some(ticket) if slot.is_done_with(ticket) => return Poll::Ready(()),
            None | Some(_) => (),
        }
        slot.wait(cx.waker());
        Poll::Pending
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").field("author", &self.shared.author).field("cx", &self.shared.cx).finish()
    }
}

/// A run's events, each as it comes, and its end.
pub(crate) async fn drain(run: &mut Updates<'_>, mut see: impl FnMut(Event)) -> Result<StopReason> {
    let end = poll_fn(|cx| {
        loop {
            match ready!(run.poll_next_unpin(cx)) {
                None => return Poll::Ready(Err(no_end())),
                Some(Ok(Update::Done(stop))) => return Poll::Ready(Ok(stop)),
                Some(Ok(Update::Event(event))) => see(event),
                Some(Ok(Update::Delta(_))) => (),
                Some(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    });
    let stop = end.await?;
    ended(run, stop).await
}

/// A run's next update. With the end it checks that nothing follows.
pub(crate) async fn next_update(run: &mut Updates<'_>) -> Result<Update> {
    match run.next().await {
        Some(Ok(Update::Done(stop))) => ended(run, stop).await.map(Update::Done),
        Some(update) => update,
        None => Err(no_end()),
    }
}

async fn ended(run: &mut Updates<'_>, stop: StopReason) -> Result<StopReason> {
    match run.next().await {
        None => Ok(stop),
        Some(_) => Err(Error::new(ErrorKind::Contract, format!("a run went on after it had ended ({stop})"))),
    }
}

fn callers_name() -> Error {
    let name = Event::CALLER;
    let context = format!("agent named `{name}`: that name is the caller's; give the agent another one");
    Error::new(ErrorKind::Invalid, context)
}

fn no_end() -> Error {
    Error::new(ErrorKind::Contract, "a run stopped without saying how it ended")
}

pin_project! {
    /// A body and the slot that it fills.
    struct Run<Fut> {
        shared: Arc<Shared>,
        #[pin]
        body: Option<Instrumented<Fut>>,
        end: Option<Result<StopReason>>,
        used: Usage,
    }

    impl<Fut> PinnedDrop for Run<Fut> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if this.body.is_some() || this.end.is_some() {
                this.shared.slot().close();
            }
        }
    }
}

impl<Fut: Future<Output = Result<StopReason>>> Stream for Run<Fut> {
    type Item = Result<Update>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        this.shared.slot().pull(cx.waker());
        if let Some(body) = this.body.as_mut().as_pin_mut()
            && let Poll::Ready(end) = body.poll(cx)
        {
            if let Some(body) = this.body.as_ref().as_pin_ref() {
                close_span(body.span(), &end, *this.used);
            }
            this.body.set(None);
            *this.end = Some(end);
        }
        let mut slot = this.shared.slot();
        if let Some(update) = slot.take() {
            if let Update::Event(Event { usage: Some(usage), .. }) = &update {
                *this.used += *usage;
            }
            return Poll::Ready(Some(Ok(update)));
        }
        if this.body.is_some() {
            slot.await_update(cx.waker());
            return Poll::Pending;
        }
        slot.close();
        Poll::Ready(this.end.take().map(|end| end.map(Update::Done)))
    }
}

fn close_span(span: &Span, end: &Result<StopReason>, used: Usage) {
    if span.is_disabled() {
        return;
    }
    telemetry::tokens(span, used);
    match end {
        Ok(stop) => telemetry::stopped(span, *stop),
        Err(error) => telemetry::failed(span, error),
    }
}
