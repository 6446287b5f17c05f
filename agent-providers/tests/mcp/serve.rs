//! Agents as servers.
