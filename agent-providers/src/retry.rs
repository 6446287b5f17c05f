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
        let own = first_delay.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(max_delay);
        let own = scaled(own, 1.0 - random);
        match error.retry_after() {
            Some(asked) if asked > max_server_delay => None,
            Some(asked) => Some(own.max(scaled(asked, 1.0 + random / 10.0))),
            None => Some(own),
        }
    }
}

/// So many times the delay; the delay itself where that cannot be told.
fn scaled(delay: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(delay)
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

    fn provider(&self) -> Option<&str> {
        self.client.provider()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ProviderError, ProviderErrorKind,
        testing::{Script, ask, delta, done, outcome},
    };

    fn failed(kind: ProviderErrorKind) -> Result<ChatUpdate> {
        Err(ProviderError::new(kind, "no").into_error("ask"))
    }

    fn asks_to_wait(seconds: u64) -> Result<ChatUpdate> {
        let retry_after = Some(Duration::from_secs(seconds));
        Err(ProviderError { retry_after, ..ProviderError::new(ProviderErrorKind::RateLimited, "no") }.into_error("ask"))
    }

    fn exact() -> RetryOptions {
        RetryOptions { jitter: 0.0, ..RetryOptions::default() }
    }

    fn source(error: &Error) -> &ProviderError {
        std::error::Error::source(error).unwrap().downcast_ref().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn transient_errors_are_tried_again_with_growing_delays() {
        let script = Script::new([
            vec![failed(ProviderErrorKind::Network)],
            vec![failed(ProviderErrorKind::Overloaded)],
            vec![failed(ProviderErrorKind::Truncated)],
            vec![delta("yes"), done("yes")],
        ]);
        let (deltas, answer) = outcome(&Retry::new(script.clone(), exact()), ask("?")).await;
        assert_eq!((deltas, answer.unwrap()), (1, "yes".into()));
        assert_eq!(script.asked(), [0, 500, 1500, 3500]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_says_how_often_it_was_tried() {
        let script = Script::new((0..4).map(|_| vec![failed(ProviderErrorKind::Server)]));
        let (_, answer) = outcome(&Retry::new(script.clone(), exact()), ask("?")).await;
        let error = answer.unwrap_err();
        assert_eq!((script.asked().len(), source(&error).attempts), (4, 4));
        assert_eq!(source(&error).to_string(), "no; tried 4 times");
        assert!(error.is_transient());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_tried_again_once_a_piece_of_the_answer_was_told() {
        let script = Script::new([vec![delta("y"), failed(ProviderErrorKind::Truncated)]]);
        let (deltas, answer) = outcome(&Retry::new(script.clone(), exact()), ask("?")).await;
        assert_eq!((deltas, source(&answer.unwrap_err()).kind), (1, ProviderErrorKind::Truncated));
        assert_eq!(script.asked(), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn errors_that_stay_are_not_tried_again() {
        use ProviderErrorKind::{Auth, BadRequest, Blocked, ContextTooLong, Quota};
        for kind in [Auth, BadRequest, Blocked, ContextTooLong, Quota] {
            let script = Script::new([vec![failed(kind)]]);
            let (_, answer) = outcome(&Retry::new(script.clone(), exact()), ask("?")).await;
            assert_eq!(source(&answer.unwrap_err()).attempts, 1, "{kind:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_that_a_service_asks_for_is_kept_up_to_a_cap() {
        let script = Script::new([vec![asks_to_wait(7)], vec![done("yes")]]);
        let (_, answer) = outcome(&Retry::new(script.clone(), exact()), ask("?")).await;
        assert_eq!((answer.unwrap(), script.asked()), ("yes".into(), vec![0, 7000]));

        let script = Script::new([vec![asks_to_wait(3600)]]);
        let (_, answer) = outcome(&Retry::new(script.clone(), exact()), ask("?")).await;
        assert_eq!(answer.unwrap_err().retry_after(), Some(Duration::from_hours(1)));
        assert_eq!(script.asked(), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_shortens_own_delays_and_never_those_that_a_service_asks_for() {
        let options = RetryOptions { jitter: 1.0, ..RetryOptions::default() };
        for _ in 0..50 {
            let script = Script::new([vec![failed(ProviderErrorKind::Server)], vec![asks_to_wait(7)], vec![done("")]]);
            outcome(&Retry::new(script.clone(), options.clone()), ask("?")).await.1.unwrap();
            let asked = script.asked();
            assert!(asked[1] <= 500, "{asked:?}");
            assert!((7000..=7701).contains(&(asked[2] - asked[1])), "{asked:?}");
        }
    }

    #[test]
    fn no_option_is_too_much_for_the_clock() {
        let jitters = [0.0, 1.0, 7.0, -1.0, f64::NAN, f64::INFINITY];
        for (delay, jitter) in [Duration::ZERO, Duration::MAX].into_iter().flat_map(|d| jitters.map(|j| (d, j))) {
            let max_attempts = NonZeroU32::MAX;
            let options =
                RetryOptions { max_attempts, first_delay: delay, max_delay: delay, max_server_delay: delay, jitter };
            let retry = Retry::new(Script::new([]), options);
            let asks = failed(ProviderErrorKind::Server).unwrap_err().with_retry_after(delay);
            for error in [failed(ProviderErrorKind::Server).unwrap_err(), asks] {
                for attempt in [1, 40, u32::MAX - 1] {
                    let told = retry.delay(&error, attempt).unwrap();
                    assert!(delay > Duration::ZERO || told.is_zero(), "{told:?} after {delay:?} and {jitter}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn off_is_off() {
        let script = Script::new([vec![failed(ProviderErrorKind::Server)]]);
        let (_, answer) = outcome(&Retry::new(script.clone(), RetryOptions::off()), ask("?")).await;
        assert!(answer.is_err());
        assert_eq!(script.asked(), [0]);
    }
}
