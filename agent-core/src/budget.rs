//! What a run may spend, beside what it has spent.

use std::{
    future::pending,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use crate::{Limits, Spent, StopReason, Usage};

/// A run's limits and counters, shared by everything that it reaches.
pub(crate) struct Budget {
    limits: Limits,
    start: Instant,
    /// What the run had run for before it was taken up here.
    before: Duration,
    model_calls: AtomicU32,
    tool_calls: AtomicU32,
    tokens: AtomicU64,
}

impl Budget {
    /// Of a run that goes on now, after it had spent so much.
    pub(crate) fn new(limits: Limits, spent: Spent) -> Self {
        let Spent { model_calls, tool_calls, tokens, wall } = spent;
        Self {
            limits,
            start: Instant::now(),
            before: wall,
            model_calls: model_calls.into(),
            tool_calls: tool_calls.into(),
            tokens: tokens.into(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn spent(&self) -> Spent {
        Spent {
            model_calls: self.model_calls.load(Relaxed),
            tool_calls: self.tool_calls.load(Relaxed),
            tokens: self.tokens.load(Relaxed),
            wall: self.before.saturating_add(self.start.elapsed()),
        }
    }

    pub(crate) fn is_out_of_tokens(&self) -> bool {
        self.limits.tokens.is_some_and(|max| self.tokens.load(Relaxed) >= max)
    }

    pub(crate) fn is_out_of_time(&self) -> bool {
        self.limits.wall.is_some_and(|max| self.spent().wall >= max)
    }

    /// Ends when the time is up.
    pub(crate) async fn out_of_time(&self) {
        let left = self.limits.wall.map(|max| max.saturating_sub(self.before));
        match left.and_then(|left| self.start.checked_add(left)) {
            Some(end) => sleep_until(end).await,
            None => pending().await, // no limit, or further away than the clock can tell
        }
    }

    pub(crate) fn take_model_call(&self) -> Result<(), StopReason> {
        take(&self.model_calls, self.limits.model_calls)
    }

    pub(crate) fn take_tool_call(&self) -> Result<(), StopReason> {
        take(&self.tool_calls, self.limits.tool_calls)
    }

    pub(crate) fn spend(&self, usage: Usage) {
        // `fetch_update` saturates where `fetch_add` would wrap round to a fresh budget.
        let add = |tokens: u64| Some(tokens.saturating_add(usage.total()));
        let _ = self.tokens.fetch_update(Relaxed, Relaxed, add);
    }
}

fn take(count: &AtomicU32, max: Option<u32>) -> Result<(), StopReason> {
    let max = max.unwrap_or(u32::MAX);
    let next = |taken| (taken < max).then(|| taken + 1);
    count.fetch_update(Relaxed, Relaxed, next).map(drop).map_err(|_| StopReason::BudgetExhausted)
}
