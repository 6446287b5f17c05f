//! Evaluation of agents: the crate is a name so far, and has no API yet.
