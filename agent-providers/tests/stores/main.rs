//! The stores in SQL databases: what every store must do, what theirs is alone, and what happens beside other processes
//! and after their end. PostgreSQL is real.

mod conformance;
mod faults;
mod kills;
mod places;
#[path = "../support/postgres.rs"]
mod postgres;
mod processes;
mod snapshots;
mod stress;
