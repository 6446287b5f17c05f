//! Numbers that are given out once, though those who ask see the same snapshot of a session.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use agent_core::{Error, ErrorKind, Result};

/// The highest number that a session may hold. Nobody gives out more, and beyond it there is room for no further ones.
const HIGHEST: u64 = u64::MAX / 2;

/// Checks the highest number that a session holds under this state key.
pub(crate) fn check_stored(key: &str, last: u64) -> Result<()> {
    if last <= HIGHEST {
        return Ok(());
    }
    let context = format!("read the numbers under the state key `{key}`: {last} was never given out; remove the key");
    Err(Error::new(ErrorKind::Invalid, context))
}

/// The last number that a run gave out; kept in [`RunContext::scratch`](agent_core::RunContext::scratch).
#[derive(Debug, Default)]
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    /// The first of `count` numbers in a row, above `stored`, the highest one in the session, and above all that were
    /// given out in this run.
    pub(crate) fn take(&self, stored: u64, count: u64) -> u64 {
        let next = |last: u64| Some(last.max(stored) + count);
        let last = self.0.fetch_update(Relaxed, Relaxed, next).unwrap_or_else(|last| last);
        last.max(stored) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn numbers_are_given_out_once_and_lie_above_the_stored_ones() {
        let numbers = Numbers::default();
        assert_eq!([numbers.take(7, 2), numbers.take(7, 1), numbers.take(20, 1)], [8, 10, 21]);
    }
}
