//! Exit codes, and what ends a command early.

use std::fmt;

use agent_core::Error;

use crate::FilterError;

/// Nothing was selected.
pub(super) const NOTHING_SELECTED: u8 = 4;
/// A filter that cannot be read.
pub(super) const BAD_FILTER: u8 = 94;
/// A set, a profile, a run or an option that cannot be used.
pub(super) const BAD_SETUP: u8 = 96;

/// All codes, for `--help`.
pub(super) const HELP: &str = "\
Exit codes:
    0  no gate failed (and there may be failed trials: ask for gates)
    2  the command line is none
    4  no case was selected
    5  only some of the baseline's cases were selected; the gates hold for them
   94  a filter cannot be read
   96  a set, a profile, a run, an option or a cassette cannot be used
  100  a gate failed
  101  too many trials failed because of the infrastructure
  106  trials are missing: the run was broken off, and can be gone on with
  107  a gate may hold by luck (only with --require-evidence)";

/// Why a command ends early, and its exit code.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) code: u8,
    text: String,
}

/// What a step of a command gives.
pub(super) type Outcome<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// What cannot be used as it is.
    pub(super) fn setup(text: impl Into<String>) -> Self {
        Self::new(BAD_SETUP, text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::setup(format!("{error:#}"))
    }
}

impl From<FilterError> for Fault {
    fn from(error: FilterError) -> Self {
        Self::new(BAD_FILTER, error.to_string())
    }
}
