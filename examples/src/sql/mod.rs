//! A small database, and a checker of statements about it.
//!
//! ```
//! use agent_examples::sql::{Database, check};
//!
//! let database = Database::ferry()?;
//! let checked = check(&database, "SELECT name, age FROM vessel")?;
//! assert_eq!(checked.feedback.unwrap(), "no such column: age; the table vessel has: id, name, seats, built");
//! # Ok::<_, agent_core::Error>(())
//! ```

mod checker;
mod database;
mod remedy;

pub use checker::{Checked, Verdict, check};
pub use database::{Database, Rows};
