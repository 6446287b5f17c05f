//! What must hold of sessions, runs, chat agents, workflows and the runner; one file for each area.

mod approvals;
mod chat_agent;
mod context;
mod emitter;
mod laws;
mod runner;
mod session;
mod steps;
mod support;
mod testing;
mod tools;
mod transcript;
mod workflows;
