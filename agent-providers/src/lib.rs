//! agent-providers
