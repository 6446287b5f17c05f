//! A connection that was made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::{NotificationContext, Peer, RoleClient, RunningService, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
};

use super::child::Process;

/// A connection that was made. Clones share it; with the last one it ends, in the background.
#[derive(Clone)]
pub(super) struct Live(Arc<Shared>);

struct Shared {
    peer: Peer<RoleClient>,
    /// How many messages were too long to be read.
    too_long: watch::Sender<u32>,
    /// How many calls wait for an answer.
    waiting: AtomicUsize,
    parts: Mutex<Option<Parts>>,
}

struct Parts {
    service: RunningService<RoleClient, Handler>,
    process: Option<Process>,
}

/// How long closing a connection may take, before a child is waited for.
const CLOSING: Duration = Duration::from_secs(2);

impl Live {
    pub(super) fn new(
        service: RunningService<RoleClient, Handler>,
        process: Option<Process>,
        too_long: watch::Sender<u32>,
    ) -> Self {
        let peer = service.peer().clone();
        Self(Arc::new(Shared {
            peer,
            too_long,
            waiting: AtomicUsize::new(0),
            parts: Mutex::new(Some(Parts { service, process })),
        }))
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.0.peer
    }

    /// Waits for an answer; none if it was too long to be read. Of several calls it is not known whose answer that was.
    pub(super) async fn answer<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let shared = &self.0;
        let mut too_long = shared.too_long.subscribe();
        shared.waiting.fetch_add(1, Relaxed);
        let _waits = OnDrop(|| _ = shared.waiting.fetch_sub(1, Relaxed));
        let mine = async {
            // The sender is ours.
            while too_long.changed().await.is_ok() && shared.waiting.load(Relaxed) > 1 {}
        };
        tokio::select! {
            answer = answer => Some(answer),
            () = mine => None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.0.peer.is_transport_closed()
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether nothing more can be sent. An HTTP server that is busy, or refuses a token, is still there.
    pub(super) fn is_broken_by(&self, error: &ServiceError) -> bool {
        let passing = http_error(error).is_some_and(|error| {
            matches!(
                error,
                StreamableHttpError::HttpStatus(_)
                    | StreamableHttpError::Client(_)
                    | StreamableHttpError::AuthRequired(_)
                    | StreamableHttpError::InsufficientScope(_)
            )
        });
        !(passing && self.is_open())
    }

    /// How the process ended and what it said last, if there is one.
    pub(super) async fn last_words(&self) -> Option<String> {
        match &mut *self.0.parts.lock().await {
            Some(Parts { process: Some(process), .. }) => Some(process.last_words().await),
            Some(Parts { process: None, .. }) | None => None,
        }
    }

    /// Closes the connection, and waits for the child to end.
    pub(super) async fn end(self) {
        if let Some(parts) = self.0.parts.lock().await.take() {
            parts.end().await;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Without a runtime, or if it ends first, the child is killed.
        if let (Some(parts), Ok(runtime)) = (self.parts.get_mut().take(), Handle::try_current()) {
            runtime.spawn(parts.end());
        }
    }
}

impl Parts {
    async fn end(mut self) {
        // Whether it closed in time, the child is ended all the same.
        let _ = self.service.close_with_timeout(CLOSING).await;
        if let Some(process) = self.process {
            process.end().await;
        }
    }
}

/// Does something in the end, whether a future ends or is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The error of an HTTP server's connection in a request's.
pub(super) fn http_error(error: &ServiceError) -> Option<&StreamableHttpError<reqwest::Error>> {
    match error {
        ServiceError::TransportSend(error) => error.error.downcast_ref(),
        _ => None,
    }
}

/// What a server gets from its client: a note of what it says of its tools. There are no roots, questions to the user are
/// declined, and a model's answers are refused.
pub(super) struct Handler {
    pub(super) has_changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.has_changed.store(true, Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new("agent-providers", env!("CARGO_PKG_VERSION"));
        // The newest version that has the handshake which all servers know.
        ClientConfig::new(ClientCapabilities::default(), this).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}
