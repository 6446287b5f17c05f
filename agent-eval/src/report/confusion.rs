//! Verdicts against the truth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A checker's verdict against the truth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confusion {
    /// Accepted, and good.
    pub accepted_good: u64,
    /// Accepted, and bad.
    pub accepted_bad: u64,
    /// Not accepted, though good.
    pub rejected_good: u64,
    /// Not accepted, and bad.
    pub rejected_bad: u64,
}

impl Confusion {
    /// One more verdict.
    pub(super) fn add(&mut self, accepted: bool, good: bool) {
        *match (accepted, good) {
            (true, true) => &mut self.accepted_good,
            (true, false) => &mut self.accepted_bad,
            (false, true) => &mut self.rejected_good,
            (false, false) => &mut self.rejected_bad,
        } += 1;
    }

    /// How many verdicts there are.
    pub fn all(&self) -> u64 {
        self.accepted_good + self.accepted_bad + self.rejected_good + self.rejected_bad
    }

    /// The share of the accepted ones that are good.
    pub fn precision(&self) -> Option<f64> {
        share(self.accepted_good, self.accepted_bad)
    }

    /// The share of the good ones that are accepted.
    pub fn recall(&self) -> Option<f64> {
        share(self.accepted_good, self.rejected_good)
    }

    /// The share of the bad ones that are accepted.
    pub fn false_accepts(&self) -> Option<f64> {
        share(self.accepted_bad, self.rejected_bad)
    }

    /// The share of the good ones that are not accepted.
    pub fn false_rejects(&self) -> Option<f64> {
        share(self.rejected_good, self.accepted_good)
    }
}

fn share(part: u64, rest: u64) -> Option<f64> {
    (part + rest > 0).then(|| part as f64 / (part + rest) as f64)
}
