//! A small database, a checker of statements about it, and an agent that writes them.
//!
//! ```
//! use agent_examples::sql::{Database, check, statement_of};
//!
//! let database = Database::ferry()?;
//! let checked = check(&database, "SELECT name, age FROM vessel")?;
//! assert_eq!(checked.feedback.unwrap(), "no such column: age; the table vessel has: id, name, seats, built");
//! # Ok::<_, agent_core::Error>(())
//! ```

mod agent;
mod checker;
mod database;
mod remedy;

pub use agent::{RefineOptions, explain, refine};
pub use checker::{Checked, Verdict, check, statement_of};
pub use database::{Database, FERRY, Rows, text_of};
pub use rusqlite::types::Value;
