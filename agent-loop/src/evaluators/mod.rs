//! Evaluators that ship.

mod combinators;
#[cfg(feature = "command")]
mod command;
mod guards;
mod judge;
mod marker;
#[cfg(feature = "schema")]
mod schema;
mod state;

pub use combinators::{AllOf, AnyOf, AtMost, OnlyWhile, all_of, any_of, at_most, only_while};
#[cfg(feature = "command")]
pub use command::CommandSucceeds;
pub use guards::{Oscillating, Stalled, TimeBudget, TokenBudget};
pub use judge::Judge;
pub use marker::CompletionMarker;
#[cfg(feature = "schema")]
pub use schema::MatchesSchema;
pub use state::{StateEquals, UntilEscalated};
