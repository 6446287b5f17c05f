//! Where a server is, and how it is reached.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use reqwest::Client;
use rmcp::{
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, ServiceError},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::transport;

use super::{
    McpCommand, McpEndpoint,
    child::Process,
    live::{Handler, Live, http_error},
    measured::Measured,
};

/// A server: a program to start, or a place to connect to.
pub(super) enum Server {
    Child(McpCommand),
    Http { endpoint: McpEndpoint, client: Client, url: String },
}

/// Why there is no connection.
enum Failure {
    /// The server does not take this handshake.
    Refused(String),
    /// It was not ready in time; what it said meanwhile.
    Late(String),
    /// Anything else, in words.
    Failed(String),
}

impl Server {
    /// Connects: with the handshake that servers of all versions know or, where it is refused, the one of the later ones.
    pub(super) async fn connect(&self, limit: Duration, has_changed: &Arc<AtomicBool>) -> Result<Live> {
        let end = transport::after(limit);
        let later = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let mut connected = self.connect_by(ClientLifecycleMode::Initialize, end, has_changed).await;
        if let Err(Failure::Refused(first)) = connected {
            let second = self.connect_by(later, end, has_changed).await;
            connected = second.map_err(|_| Failure::Refused(first));
        }
        connected.map_err(|failure| {
            let why = match failure {
                Failure::Refused(why) => format!("it refused the handshake: {}", self.redact(&why)),
                Failure::Late(said) if said.is_empty() => format!("it was not ready within {limit:?}"),
                Failure::Late(said) => format!("it was not ready within {limit:?}; its last words:\n{said}"),
                Failure::Failed(why) => why,
            };
            Error::new(ErrorKind::Tool, format!("start the MCP server `{self}`")).with_source(why)
        })
    }

    async fn connect_by(
        &self,
        mode: ClientLifecycleMode,
        end: Instant,
        has_changed: &Arc<AtomicBool>,
    ) -> Result<Live, Failure> {
        let handler = Handler { has_changed: has_changed.clone() };
        match self {
            Self::Child(command) => {
                let started = Process::start(command);
                let (mut process, stdout, stdin) = started.map_err(|error| Failure::Failed(error.to_string()))?;
                let too_long = watch::Sender::new(0);
                let output = Measured::new(stdout, too_long.clone());
                match timeout_at(end, handler.serve_with_lifecycle((output, stdin), mode)).await {
                    Ok(Ok(service)) => Ok(Live::new(service, Some(process), too_long)),
                    Ok(Err(ClientInitializeError::JsonRpcError(refusal))) => {
                        Err(Failure::Refused(refusal.message.into_owned()))
                    }
                    Ok(Err(
                        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. },
                    )) => Err(Failure::Failed(process.last_words().await)),
                    Ok(Err(error)) => Err(Failure::Failed(format!("{error}; {}", process.last_words().await))),
                    Err(_) => Err(Failure::Late(process.said())),
                }
            }
            Self::Http { client, url, .. } => {
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
                match timeout_at(end, handler.serve_with_lifecycle(transport, mode)).await {
                    Ok(Ok(service)) => Ok(Live::new(service, None, watch::Sender::new(0))),
                    Ok(Err(ClientInitializeError::JsonRpcError(refusal))) => {
                        Err(Failure::Refused(refusal.message.into_owned()))
                    }
                    Ok(Err(ClientInitializeError::TransportError { error, .. })) => {
                        let http = error.error.downcast_ref();
                        Err(Failure::Failed(http.map_or_else(|| error.error.to_string(), |error| self.in_words(error))))
                    }
                    Ok(Err(error)) => Err(Failure::Failed(error.to_string())),
                    Err(_) => Err(Failure::Late(String::new())),
                }
            }
        }
    }

    /// Why a request could not be sent, with no secret in it.
    pub(super) fn why_unsent(&self, error: &ServiceError) -> String {
        match http_error(error) {
            Some(error) => self.in_words(error),
            None => error.to_string(),
        }
    }

    fn in_words(&self, error: &StreamableHttpError<reqwest::Error>) -> String {
        let cause: &dyn std::error::Error = match error {
            StreamableHttpError::Client(error) => error,
            error => error,
        };
        let mut words = cause.to_string().trim_end_matches(": ").to_owned();
        let mut next = cause.source();
        while let Some(cause) = next {
            words = format!("{words}: {cause}");
            next = cause.source();
        }
        self.redact(&words)
    }

    /// What the server or its connection says, with no secret in it.
    pub(super) fn redact(&self, words: &str) -> String {
        match self {
            Self::Child(command) => command.redact(words),
            Self::Http { endpoint, .. } => endpoint.redact(words),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(command) => command.fmt(f),
            Self::Http { endpoint, .. } => endpoint.fmt(f),
        }
    }
}
