//! Trying again, where that is safe.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use agent_core::{ChatClient, ChatRequest, ChatUpdate, Error, Result};
use futures::{StreamExt, stream, stream::BoxStream};

use crate::error::with_attempts;

/// When and how often a [`Retry`] tries again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryOptions {
    /// How often to try in all: 4 times. One is no retry.
    pub max_attempts: NonZeroU32,
    /// How long to wait before the second try: half a second. It doubles with each try.
    pub first_delay: Duration,
    /// The longest wait of the client's own choice: 30 seconds.
    pub max_delay: Duration,
    /// The longest wait that a service may ask for: 60 seconds. If it asks for more, its error is the answer.
    pub max_server_delay: Duration,
    /// The share of a delay that is random, 0 to 1: 0.5. It keeps clients that failed together from coming back
    /// together; a delay that the service asked for only grows, by a tenth of the share at most.
    pub jitter: f64,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::new(4).expect("4 is not 0"),
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            max_server_delay: Duration::from_mins(1),
            jitter: 0.5,
        }
    }
}

impl RetryOptions {
    /// No retry at all.
    pub fn off() -> Self {
        Self { max_attempts: NonZeroU32::MIN, ..Self::default() }
    }
}

/// A client that asks again when a call fails in a way that may pass ([`Error::is_transient`]).
///
/// A call is repeated as a whole, and only while nothing of its answer was told: after the first delta an error is an
/// error. The clock is tokio's.
#[derive(Clone)]
pub struct Retry {
    client: Arc<dyn ChatClient>,
    options: RetryOptions,
}

impl Retry {
    /// A client that asks `client` again.
    pub fn new(client: impl ChatClient + 'static, options: RetryOptions) -> Self {
        Self { client: Arc::new(client), options }
    }

    /// How long to wait after this try (from 1) failed so; none if that is the end.
    fn delay(&self, error: &Error, attempt: u32) -> Option<Duration> {
        let RetryOptions { max_attempts, first_delay, max_delay, max_server_delay, jitter } = self.options;
        if !error.is_transient() || attempt >= max_attempts.get() {
            return None;
        }
        let random = fastrand::f64() * jitter.clamp(0.0, 1.0);
        let own = first_delay.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(max_delay).mul_f64(1.0 - random);
        match error.retry_after() {
            Some(asked) if asked > max_server_delay => None,
            Some(asked) => Some(own.max(asked.mul_f64(1.0 + random / 10.0))),
            None => Some(own),
        }
    }
}

struct Trying<'a> {
    retry: &'a Retry,
    request: ChatRequest,
    attempt: u32,
    answer: BoxStream<'a, Result<ChatUpdate>>,
    told: bool,
}

impl Trying<'_> {
    async fn next(&mut self) -> Option<Result<ChatUpdate>> {
        loop {
            let error = match self.answer.next().await? {
                Ok(update) => {
                    self.told = true;
                    return Some(Ok(update));
                }
                Err(error) => error,
            };
            // The connection of the failed try is closed before the wait.
            self.answer = stream::empty().boxed();
            let delay = if self.told { None } else { self.retry.delay(&error, self.attempt) };
            let Some(delay) = delay else { return Some(Err(with_attempts(error, self.attempt))) };
            tracing::warn!(model = self.retry.model(), attempt = self.attempt, ?delay, %error, "model call failed");
            tokio::time::sleep(delay).await;
            self.attempt += 1;
            self.answer = self.retry.client.stream(self.request.clone());
        }
    }
}

impl ChatClient for Retry {
    fn model(&self) -> &str {
        self.client.model()
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let answer = self.client.stream(request.clone());
        let trying = Trying { retry: self, request, attempt: 1, answer, told: false };
        stream::unfold(trying, |mut trying| async { Some((trying.next().await?, trying)) }).boxed()
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("model", &self.model()).field("options", &self.options).finish_non_exhaustive()
    }
}
