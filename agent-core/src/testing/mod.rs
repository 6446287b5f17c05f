//! For tests of what is built on this crate.

mod conformance;

pub use conformance::store_conformance;
