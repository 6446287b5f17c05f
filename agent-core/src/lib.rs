//! Core.

mod agent;
mod calls;
mod chat;
mod chat_agent;
mod context;
mod emitter;
mod error;
mod event;
mod message;
mod response;
mod runner;
mod session;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
mod typed;
mod update;
mod workflow;

pub use agent::{Agent, AgentExt, AgentFn, AgentInfo, agent_fn};
pub use chat::{
    ChatClient, ChatOptions, ChatRequest, ChatResponse, ChatUpdate, Reasoning, ReasoningEffort, ToolChoice,
};
pub use chat_agent::{ChatAgent, ChatAgentOptions, ChatHook, DuplicateCalls, History, Instructions, ToolBudget};
pub use context::{Format, Limits, RunContext, Spent};
pub use emitter::{Draft, Emitter, updates};
pub use error::{BoxError, Error, ErrorKind, Result};
pub use event::{Event, LoopStep, StateChange, Usage};
pub use message::{ChatMessage, Content, Role, ToolCall, ToolResult};
pub use response::{AgentResponse, Unfinished};
pub use runner::Runner;
pub use session::{Session, Turn};
pub use store::{JsonlStore, MemoryStore, SessionStore, Stored};
pub use tool::{Tool, ToolContext, ToolFn, ToolOutput, ToolSpec, exit_loop, tool_fn};
pub use typed::{Typed, run_typed};
pub use update::{Delta, StopReason, Update, Updates};
pub use workflow::{ParallelAgent, SequentialAgent, agent_tool};
