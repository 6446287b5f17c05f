//! The engine: plans trials, runs them, and logs each as it ends.

mod attempt;
mod case_checks;
mod clock;
mod engine;
mod faults;
mod identity;
mod log;
mod options;
mod plan;
mod replayed;
mod score;
mod turns;
mod watch;

pub(crate) use clock::{date, rfc3339};
#[cfg(feature = "cli")]
pub(crate) use engine::kept;
pub use engine::run_sets;
pub use log::RunLog;
pub(crate) use log::differences;
pub use options::{CaseFilter, CassetteMode, Progress, Resume, RunOptions};
pub use plan::SetRun;
pub use score::score;
pub(crate) use turns::turns_of;
