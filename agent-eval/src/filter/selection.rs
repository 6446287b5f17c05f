//! Parts of all cases, and all that selects them.

use std::{fmt, str::FromStr};

use xxhash_rust::xxh64::xxh64;

use super::{Filter, FilterError};
use crate::{EvalCase, EvalSet};

/// One of `count` parts of all cases, such as `hash:2/5`. A case is always in the same one, whatever other cases there
/// are: its set and id are hashed (XXH64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    index: u64,
    count: u64,
}

impl Partition {
    /// Part `index`, from 1, of `count`; none if there is no such part.
    pub fn new(index: u64, count: u64) -> Option<Self> {
        (1..=count).contains(&index).then_some(Self { index, count })
    }

    /// Whether a case is in it.
    pub fn contains(self, set: &str, case: &str) -> bool {
        xxh64(format!("{set}\0{case}").as_bytes(), 0) % self.count == self.index - 1
    }
}

impl FromStr for Partition {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let parsed = || {
            let (index, count) = text.strip_prefix("hash:")?.split_once('/')?;
            Self::new(index.parse().ok()?, count.parse().ok()?)
        };
        parsed().ok_or_else(|| FilterError {
            filter: text.to_owned(),
            position: 0,
            message: "expected a partition `hash:m/n` with m from 1 to n, such as `hash:1/4`".to_owned(),
        })
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hash:{}/{}", self.index, self.count)
    }
}

/// All that selects cases: what is absent or empty selects all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// A case matches all of these.
    pub filters: Vec<Filter>,
    /// Its `set::case` contains at least one of these, if there are any.
    pub substrings: Vec<String>,
    /// And it is in this part.
    pub partition: Option<Partition>,
}

impl Selection {
    /// Whether it selects a case of this set.
    pub fn matches(&self, set: &EvalSet, case: &EvalCase) -> bool {
        let name = || format!("{}::{}", set.name, case.id);
        self.filters.iter().all(|filter| filter.matches(set, case))
            && (self.substrings.is_empty() || self.substrings.iter().any(|part| name().contains(part.as_str())))
            && self.partition.is_none_or(|partition| partition.contains(&set.name, &case.id))
    }
}
