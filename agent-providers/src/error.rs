//! What went wrong with a model service.

use std::{fmt, time::Duration};

use agent_core::{Error, ErrorKind};

/// What a [`ProviderError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The service does not accept the key.
    Auth,
    /// The service does not accept the request.
    BadRequest,
    /// The conversation is longer than the model can read.
    ContextTooLong,
    /// Too many requests or tokens at the moment.
    RateLimited,
    /// The account has nothing left to spend.
    Quota,
    /// The service has no capacity at the moment.
    Overloaded,
    /// The service failed.
    Server,
    /// No connection, or it broke.
    Network,
    /// Something took longer than the client's [`TimeOuts`](crate::TimeOuts) allow.
    TimeOut,
    /// The stream ended before the service said that the answer is complete.
    Truncated,
    /// The service sent something that its protocol does not have.
    BadFrame,
    /// The service refuses to answer this conversation.
    Blocked,
}

impl ProviderErrorKind {
    /// Whether the same call may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::Network
            | Self::TimeOut
            | Self::Truncated
            | Self::BadFrame => true,
            Self::Auth | Self::BadRequest | Self::ContextTooLong | Self::Quota | Self::Blocked => false,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Auth => "the key is not accepted; check it, and that it may use this model",
            Self::BadRequest => "the request is not accepted; change what the service objects to",
            Self::ContextTooLong => "the conversation is too long for the model; shorten it or take another model",
            Self::RateLimited => "too many requests; wait, or limit the rate",
            Self::Quota => "the account's quota is used up; add credit or take another key",
            Self::Overloaded => "the service is overloaded; try again later",
            Self::Server => "the service failed; try again later",
            Self::Network => "the connection failed; check the network and the base URL",
            Self::TimeOut => "the service took too long; try again or allow more time",
            Self::Truncated => "the answer was cut off; try again",
            Self::BadFrame => "the answer is unreadable; check that the base URL speaks this protocol",
            Self::Blocked => "the service refuses to answer this conversation; change it",
        }
    }
}

/// A model service's error: the source of every [`Error`] of kind [`Provider`](ErrorKind::Provider) by this crate.
///
/// ```
/// use agent_providers::{ProviderError, ProviderErrorKind};
/// use std::error::Error as _;
///
/// fn is_out_of_money(error: &agent_core::Error) -> bool {
///     let error = error.source().and_then(|source| source.downcast_ref::<ProviderError>());
///     error.is_some_and(|error| error.kind == ProviderErrorKind::Quota)
/// }
/// # let error: agent_core::Error = ProviderError::new(ProviderErrorKind::Quota, "no credit").into_error("ask `m`");
/// # assert!(is_out_of_money(&error));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderError {
    /// What it is about.
    pub kind: ProviderErrorKind,
    /// What the service or the connection said, without keys.
    pub message: String,
    /// The HTTP status, if the service refused the request by one.
    pub status: Option<u16>,
    /// The service's own word for the error.
    pub code: Option<String>,
    /// The service's id of the request, for its support.
    pub request_id: Option<String>,
    /// How long the service asked to wait before the next try.
    pub retry_after: Option<Duration>,
    /// How many tries were made.
    pub attempts: u32,
}

impl ProviderError {
    /// An error of one try, of which nothing but this is known.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            code: None,
            request_id: None,
            retry_after: None,
            attempts: 1,
        }
    }

    /// The error as the workspace's: `attempted` says what was tried, as a lower-case fragment; what to do is added.
    pub fn into_error(self, attempted: &str) -> Error {
        let error = Error::new(ErrorKind::Provider, format!("{attempted}: {}", self.advice()));
        let error = if self.kind.is_retryable() { error.transient() } else { error };
        let error = match self.retry_after {
            Some(delay) => error.with_retry_after(delay),
            None => error,
        };
        error.with_source(self)
    }

    fn advice(&self) -> &'static str {
        match (self.kind, self.status) {
            (ProviderErrorKind::BadRequest, Some(404)) => {
                "the service knows no such model or path; check the model's name and the base URL"
            }
            (ProviderErrorKind::BadRequest, Some(300..=399)) => "the service is at another place; change the base URL",
            (kind, _) => kind.advice(),
        }
    }

    pub(crate) fn code(mut self, code: Option<String>) -> Self {
        self.code = code;
        self
    }
}

/// Status, code, what the service said, request id, number of tries: what is known of them.
impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = self.status {
            write!(f, "status {status}, ")?;
        }
        if let Some(code) = &self.code {
            write!(f, "`{code}`, ")?;
        }
        f.write_str(&self.message)?;
        if let Some(id) = &self.request_id {
            write!(f, " (request {id})")?;
        }
        if let Some(delay) = self.retry_after {
            write!(f, "; the service asks to wait {delay:?}")?;
        }
        if self.attempts > 1 {
            write!(f, "; tried {} times", self.attempts)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProviderError {}

/// The same error, with the number of tries that were made.
pub(crate) fn with_attempts(error: Error, attempts: u32) -> Error {
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<ProviderError>());
    let Some(source) = source.filter(|_| attempts > 1).cloned() else { return error };
    let mut same = Error::new(error.kind(), error.to_string()).with_source(ProviderError { attempts, ..source });
    if error.is_transient() {
        same = same.transient();
    }
    match error.retry_after() {
        Some(delay) => same.with_retry_after(delay),
        None => same,
    }
}
