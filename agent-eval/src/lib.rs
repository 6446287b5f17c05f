//! agent-eval
