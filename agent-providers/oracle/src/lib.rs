//! A differential oracle: the clients of `agent-providers` and those of `rig-core` read the same bytes from the same
//! server, and have to say the same. All of it is in the tests:
//!
//! ```console
//! $ cargo test --manifest-path agent-providers/oracle/Cargo.toml -- --nocapture
//! ```
//!
//! - **Whole streams**, sent in several ways: text, thoughts, calls (name and arguments), and each count of tokens that
//!   both report. Where the two differ, `KNOWN` in `tests/oracle/main.rs` has the case with its reason; a difference
//!   that is not there, or that is there and no longer happens, fails the test.
//! - **Cut streams**, at every boundary between events: ours are errors until the answer is whole. What `rig-core` makes
//!   of them is printed as a table, and not asserted. It, too, tells them from whole ones; but it takes an answer of
//!   Anthropic without its `message_stop` for whole.
//!
//! All five protocols take part: `rig-core` takes a base URL for each. Its Ollama speaks the native protocol by
//! `native_completion`.
