//! Tools of MCP servers, and agents as MCP servers: the Model Context Protocol, over the official `rmcp`.

mod child;
mod command;
mod connection;
mod contents;
mod endpoint;
mod live;
mod measured;
mod names;
mod options;
mod serve;
mod server;
mod tail;
mod tools;

pub use command::McpCommand;
pub use endpoint::McpEndpoint;
pub use options::{McpApproval, McpOptions};
pub use serve::McpServer;
pub use tools::McpTools;
