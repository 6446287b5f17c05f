//! HTTP to one service: requests out, streams in.

mod delay;
mod options;
mod refusal;
mod stream;
pub(crate) mod tls;

pub use options::{HttpOptions, TimeOuts};
pub(crate) use refusal::of_document;
pub(crate) use stream::{Call, ask};
#[cfg(feature = "mcp")]
pub(crate) use tls::config as tls_config;

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use tokio::time::{Instant, timeout_at};

use crate::{ProviderError, ProviderErrorKind, Secret};

/// A service that can be asked. A clone shares its connections.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    service: Arc<str>,
    client: Client,
    base_url: Url,
    headers: HeaderMap,
    time_outs: TimeOuts,
    secrets: Vec<Secret>,
}

impl Http {
    /// A service named `provider`, with a place of its `own` if it has one, that is sent `auth` with each request.
    ///
    /// Keys go into headers only, are marked as sensitive there, and are blotted out of every error.
    pub(crate) fn new(
        provider: &'static str,
        own: Option<&str>,
        auth: Vec<(HeaderName, Secret)>,
        options: HttpOptions,
    ) -> Result<Self> {
        let HttpOptions { base_url: other, headers: more, time_outs } = options;
        let text = other.as_deref().or(own).unwrap_or_default();
        // What stands before an `@` may be a password, and a query may have a key.
        let place = if text.contains(['@', '?']) { String::new() } else { format!(" at `{text}`") };
        let base_url = read_base_url(&format!("{provider}{place}"), text)?;
        let service = if other.is_none() { provider.into() } else { service_at(provider, &base_url) };
        let mut secrets = auth.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in auth {
            headers.insert(name, header_value(provider, &value)?);
        }
        for (name, value) in more {
            let invalid =
                |_| Error::new(ErrorKind::Invalid, format!("connect to {provider}: {name:?} is no header name"));
            let name = HeaderName::try_from(&name).map_err(invalid)?;
            headers.insert(name, header_value(provider, &value)?);
            secrets.push(value);
        }
        // Redirects could carry the key elsewhere, and no service answers a model call with one.
        let client = Client::builder()
            .tls_backend_preconfigured(tls::config(base_url.scheme() == "https")?)
            .redirect(Policy::none())
            .connect_timeout(time_outs.connect)
            .user_agent(concat!("agent-providers/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Invalid, format!("set up HTTP for {provider}")).with_source(error.without_url())
            })?;
        Ok(Self { service, client, base_url, headers, time_outs, secrets })
    }

    /// The service's name, and where it is unless that is its own place: `openai`, `openai@proxy.example:8080`.
    pub(crate) fn service(&self) -> &Arc<str> {
        &self.service
    }

    /// Sends a request and waits for a response's head that says success.
    async fn send(
        &self,
        path: &str,
        accept: &'static str,
        body: Vec<u8>,
        end: Instant,
    ) -> Result<Response, ProviderError> {
        let mut url = self.base_url.clone();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        if query.is_some() {
            url.set_query(query);
        }
        let request = self.client.post(url).headers(self.headers.clone()).header(ACCEPT, accept).body(body);
        let within = end.min(after(self.time_outs.head));
        let response = match timeout_at(within, request.send()).await {
            Ok(response) => response.map_err(broken)?,
            Err(_) => return Err(late("the response's head", self.time_outs.head)),
        };
        if response.status().is_success() { Ok(response) } else { Err(self.refused(response, end).await) }
    }

    /// The error in a response that is no success. Its status alone says enough if the body breaks or never ends.
    async fn refused(&self, mut response: Response, end: Instant) -> ProviderError {
        let (body, _) = document(&mut response, end.min(after(PATIENCE))).await;
        refusal::of_response(response.status().as_u16(), response.headers(), &String::from_utf8_lossy(&body))
    }

    /// Blots out every secret that was sent, should a service repeat it.
    fn redact(&self, mut error: ProviderError) -> ProviderError {
        let ProviderError { message, code, request_id, .. } = &mut error;
        for text in [Some(message), code.as_mut(), request_id.as_mut()].into_iter().flatten() {
            self.secrets.iter().for_each(|secret| blot_out_words(text, secret.expose()));
        }
        error
    }
}

/// The moment so long after now, or one that nobody lives to see where the clock cannot tell it.
pub(crate) fn after(wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_hours(24 * 365 * 30);
    let now = Instant::now();
    now.checked_add(wait).unwrap_or_else(|| now + FAR)
}

/// How long to wait for the explanation of an error.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most that is read of a body that is no stream, in bytes.
const LONGEST_DOCUMENT: usize = 64 * 1024;

/// The beginning of a body that is no stream, and what kept it from coming whole.
async fn document(response: &mut Response, end: Instant) -> (Vec<u8>, Option<ProviderError>) {
    let mut body = Vec::new();
    while body.len() < LONGEST_DOCUMENT {
        match timeout_at(end, response.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => return (body, Some(broken(error))),
            Err(_) => {
                let words = "the response's body did not come in time";
                return (body, Some(ProviderError::new(ProviderErrorKind::TimeOut, words)));
            }
        }
    }
    (body, None)
}

/// Shorter words in headers, such as `Bearer` or a version, are no secrets.
const SHORTEST_SECRET: usize = 8;

/// Removes a secret from a text, word by word: in `Bearer KEY` the key alone is the secret.
pub(crate) fn blot_out_words(text: &mut String, secret: &str) {
    secret.split_whitespace().filter(|word| word.len() >= SHORTEST_SECRET).for_each(|word| blot_out(text, word));
}

/// Removes a secret from a text, also from the end of one that was cut within the secret.
fn blot_out(text: &mut String, secret: &str) {
    if text.contains(secret) {
        *text = text.replace(secret, BLOT);
    }
    let end = text.trim_end_matches('…').len();
    let beginnings = (SHORTEST_SECRET..secret.len()).rev().filter_map(|len| secret.get(..len));
    if let Some(cut) = beginnings.into_iter().find(|beginning| text[..end].ends_with(beginning)) {
        text.replace_range(end - cut.len()..end, BLOT);
    }
}

/// What is told in a secret's place.
const BLOT: &str = "[key]";

/// The name of a service at a place of the caller's choice.
fn service_at(provider: &str, base_url: &Url) -> Arc<str> {
    let host = base_url.host_str().unwrap_or_default();
    match base_url.port() {
        Some(port) => format!("{provider}@{host}:{port}").into(),
        None => format!("{provider}@{host}").into(),
    }
}

pub(crate) fn read_base_url(provider: &str, text: &str) -> Result<Url> {
    let invalid = |why: &str| Error::new(ErrorKind::Invalid, format!("connect to {provider}: the base URL {why}"));
    let url =
        Url::parse(text).map_err(|error| invalid("is no URL; write it like https://host/v1").with_source(error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("has to begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must not hold a password; send it as a header"));
    }
    Ok(url)
}

pub(crate) fn header_value(provider: &str, secret: &Secret) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| {
        let context = format!("connect to {provider}: a key or header has characters that HTTP does not allow");
        Error::new(ErrorKind::Invalid, context)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// An error of the connection.
fn broken(error: reqwest::Error) -> ProviderError {
    let (timed_out, connect) = (error.is_timeout(), error.is_connect());
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cut = false;
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        let io = cause.downcast_ref::<std::io::Error>();
        cut |= io.is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof);
        words.push_str(": ");
        words.push_str(&cause.to_string());
        next = cause.source();
    }
    let kind = match (timed_out, connect, cut) {
        (true, ..) => ProviderErrorKind::TimeOut,
        (false, false, true) => ProviderErrorKind::Truncated,
        (false, ..) => ProviderErrorKind::Network,
    };
    ProviderError::new(kind, words)
}

fn late(what: &str, limit: Duration) -> ProviderError {
    ProviderError::new(ProviderErrorKind::TimeOut, format!("{what} did not come within {limit:?}"))
}
