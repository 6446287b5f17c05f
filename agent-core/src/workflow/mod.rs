//! Agents made of agents.

mod agent_tool;
mod parallel;
mod sequential;

pub use agent_tool::agent_tool;
pub use parallel::ParallelAgent;
pub use sequential::SequentialAgent;
