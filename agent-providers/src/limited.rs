//! Not asking too much at once.

use std::{
    collections::VecDeque,
    fmt,
    num::{NonZeroU32, NonZeroU64, NonZeroUsize},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_core::{ChatClient, ChatRequest, ChatUpdate, Result};
use futures::{StreamExt, stream, stream::BoxStream};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// What a [`Limited`] client may do; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitedOptions {
    /// Calls at once.
    pub concurrency: Option<NonZeroUsize>,
    /// Calls that begin within any 60 seconds.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens, in and out, that answers of the last 60 seconds used, above which no call begins. What a call will use
    /// is not known when it begins, so the calls under way may cross the line.
    pub tokens_per_minute: Option<NonZeroU64>,
}

/// A client whose calls wait for their turn, in the order in which they came. Clones share the limits.
///
/// Put it inside a [`Retry`](crate::Retry), so that each try counts. The clock is tokio's.
#[derive(Clone)]
pub struct Limited {
    client: Arc<dyn ChatClient>,
    options: LimitedOptions,
    slots: Arc<Semaphore>,
    /// Held by the first in the queue.
    turn: Arc<tokio::sync::Mutex<()>>,
    spent: Arc<Mutex<Window>>,
}

const MINUTE: Duration = Duration::from_mins(1);

/// What happened within the last minute, oldest first.
#[derive(Debug, Default)]
struct Window {
    calls: VecDeque<Instant>,
    tokens: VecDeque<(Instant, u64)>,
}

impl Limited {
    /// A client that asks `client` within these limits.
    pub fn new(client: impl ChatClient + 'static, options: LimitedOptions) -> Self {
        let slots = options.concurrency.map_or(Semaphore::MAX_PERMITS, NonZeroUsize::get);
        let slots = Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS)));
        Self { client: Arc::new(client), options, slots, turn: Arc::default(), spent: Arc::default() }
    }

    /// Waits for this call's turn. The permit is the place that it takes until it ends or is dropped.
    async fn admit(&self) -> OwnedSemaphorePermit {
        let _turn = self.turn.lock().await;
        let permit = self.slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        loop {
            let now = Instant::now();
            let wait = {
                let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
                let wait = spent.wait(self.options, now);
                if wait.is_none() && self.options.requests_per_minute.is_some() {
                    spent.calls.push_back(now);
                }
                wait
            };
            match wait {
                None => return permit,
                Some(until) => tokio::time::sleep_until(until).await,
            }
        }
    }

    fn spend(&self, tokens: u64) {
        if self.options.tokens_per_minute.is_some() {
            let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
            spent.tokens.push_back((Instant::now(), tokens));
        }
    }
}

impl Window {
    /// Until when a call has to wait; none: it may begin.
    fn wait(&mut self, options: LimitedOptions, now: Instant) -> Option<Instant> {
        let is_past = |at: Instant| at + MINUTE <= now;
        while self.calls.pop_front_if(|at| is_past(*at)).is_some() {}
        while self.tokens.pop_front_if(|(at, _)| is_past(*at)).is_some() {}
        let by_calls = options.requests_per_minute.and_then(|most| {
            let over = self.calls.len().checked_sub(most.get() as usize)?;
            Some(self.calls[over] + MINUTE)
        });
        let by_tokens = options.tokens_per_minute.and_then(|most| self.until_below(most.get()));
        by_calls.max(by_tokens)
    }

    /// When the tokens of the last minute will be fewer than `most`; none if they are.
    fn until_below(&self, most: u64) -> Option<Instant> {
        let mut left = self.tokens.iter().fold(0_u64, |sum, (_, tokens)| sum.saturating_add(*tokens));
        let mut until = None;
        for (at, tokens) in &self.tokens {
            if left < most {
                break;
            }
            left = left.saturating_sub(*tokens);
            until = Some(*at + MINUTE);
        }
        until
    }
}

impl ChatClient for Limited {
    fn model(&self) -> &str {
        self.client.model()
    }

    fn provider(&self) -> Option<&str> {
        self.client.provider()
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let answer = stream::once(async move {
            let permit = self.admit().await;
            self.client.stream(request).map(move |update| {
                let _held = &permit;
                if let Ok(ChatUpdate::Done(response)) = &update {
                    self.spend(response.usage.total());
                }
                update
            })
        });
        answer.flatten().boxed()
    }
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Limited");
        out.field("model", &self.model()).field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, ask, done, outcome};

    fn answers(count: usize) -> Script {
        Script::new((0..count).map(|_| vec![done("yes")]))
    }

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_the_minutes_number_wait_for_their_turn() {
        let script = answers(5);
        let options = LimitedOptions { requests_per_minute: NonZeroU32::new(2), ..LimitedOptions::default() };
        let client = Limited::new(script.clone(), options);
        futures::future::join_all((0..5).map(|_| outcome(&client, ask("?")))).await;
        assert_eq!(script.asked(), [0, 0, 60_000, 60_000, 120_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_until_the_tokens_of_the_last_minute_are_below_the_limit() {
        let script = answers(4);
        let options = LimitedOptions { tokens_per_minute: NonZeroU64::new(200), ..LimitedOptions::default() };
        let client = Limited::new(script.clone(), options);
        for _ in 0..4 {
            outcome(&client, ask("?")).await.1.unwrap(); // 100 tokens each
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert_eq!(script.asked(), [0, 10_000, 60_000, 70_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_when_a_call_ends_or_is_dropped() {
        let script = answers(3);
        let options = LimitedOptions { concurrency: NonZeroUsize::new(1), ..LimitedOptions::default() };
        let client = Limited::new(script.clone(), options);
        let mut first = client.stream(ask("?"));
        assert!(first.next().await.is_some());
        let minute = tokio::time::timeout(MINUTE, outcome(&client, ask("?"))).await;
        assert!(minute.is_err(), "there are two calls at once");
        assert_eq!(script.asked().len(), 1);
        drop(first);
        outcome(&client, ask("?")).await.1.unwrap();
        outcome(&client, ask("?")).await.1.unwrap();
    }

    #[test]
    fn it_is_called_what_the_limited_client_is() {
        let client = Limited::new(answers(0), LimitedOptions::default());
        assert_eq!((client.provider(), client.model()), (Some("a script"), "scripted"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_limit_is_no_wait() {
        let script = answers(3);
        let client = Limited::new(script.clone(), LimitedOptions::default());
        futures::future::join_all((0..3).map(|_| outcome(&client, ask("?")))).await;
        assert_eq!(script.asked(), [0, 0, 0]);
    }
}
