//! What a user of `agent-loop` may rely on: the contract line by line, a reference model, laws, and the evaluators.
//!
//! The names in the tests' doc comments (A1, B2, …) are the lines of the loop's contract, `CONTRACT.md` beside `src`.

mod background;
mod compaction;
mod contract_inputs;
mod contract_interruptions;
mod contract_limits;
mod contract_order;
mod contract_outcome;
mod contract_resume;
mod contract_runner;
mod contract_workflows;
mod evaluators;
#[cfg(all(feature = "command", unix))]
mod evaluators_command;
mod garbled;
mod journal;
mod judge;
mod laws;
mod reference_model;
#[cfg(feature = "schema")]
mod schema;
mod support;
mod todos;
