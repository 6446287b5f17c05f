//! Agents as pull streams over sessions that are values.
//!
//! `agent-core` has the parts that agents are made of: [`Session`] and [`Event`], the [`Agent`] trait, [`ChatAgent`]
//! (a model with tools), workflows of agents, and a [`Runner`] that stores each step before the next one begins. It
//! has no network, no HTTP and no database: model services come as [`ChatClient`]s, storage as [`SessionStore`]s.
//! Loops that run an agent until its work holds are in the crate `agent-loop`.
//!
//! # Example
//!
//! A model with one tool. The model here plays a script (feature `testing`); any other [`ChatClient`] takes its place.
//!
//! ```
//! use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Session, ToolContext, testing::ScriptedClient, tool_fn};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Place {
//!     city: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! let model = ScriptedClient::new()
//!     .calls("call-1", "weather", serde_json::json!({ "city": "Oslo" }))
//!     .says("It is snowing in Oslo.");
//! let weather = tool_fn("weather", "Tells the weather of a city.", |place: Place, _: ToolContext| async move {
//!     Ok(format!("{}: snow, -3 °C", place.city))
//! });
//! let options = ChatAgentOptions { instructions: "Answer in one sentence.".into(), ..Default::default() };
//! let agent = ChatAgent::new("reporter", model, options).tool(weather);
//!
//! let mut session = Session::new();
//! let response = agent.ask(&mut session, "How is the weather in Oslo?").await?;
//!
//! assert_eq!(response.text(), "It is snowing in Oslo.");
//! assert_eq!(session.messages().len(), 4); // the question, the call, its result, the answer
//! # Ok(())
//! # }
//! ```
//!
//! # Sessions and events
//!
//! A [`Session`] is a conversation and a JSON state. The caller speaks into it ([`Session::push`]); an agent
//! *continues* it. So there is no list of messages to pass: "go on", "go on after an approval" and "go on after a
//! crash" are the same call.
//!
//! An agent changes its session only by recording an [`Event`]: messages, changes of the state, tokens used. The event
//! is applied to the session and yielded in one step, hence the law that all else stands on: the session after a run is
//! the session before it with the yielded events applied. A session is a value. Its clone costs two reference counts
//! and is a snapshot.
//!
//! ```
//! use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, RunContext, Session, testing::ScriptedClient};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! let options = ChatAgentOptions { output_key: Some("haiku".to_owned()), ..Default::default() };
//! let poet = ChatAgent::new("poet", ScriptedClient::new().says("An old silent pond…"), options);
//!
//! let mut session = Session::new();
//! session.push("A haiku, please.");
//! let mut copy = session.clone();
//! let response = poet.complete(&mut session, &RunContext::default()).await?;
//!
//! assert_eq!(session.get::<String>("haiku").as_deref(), Some("An old silent pond…"));
//! response.events.iter().for_each(|event| copy.apply(event));
//! assert_eq!(copy, session);
//! # Ok(())
//! # }
//! ```
//!
//! # Runs
//!
//! [`Agent::run`] gives [`Updates`], a pull stream: [`Delta`](Update::Delta)s to display, [`Event`](Update::Event)s
//! that are committed, and one [`Done`](Update::Done) with the [`StopReason`]. The agent's code moves only while the
//! stream is polled. Who wants no stream folds it with [`AgentExt::complete`] or [`AgentExt::ask`]: the same run,
//! the same result. [`run_typed`] reads the answer into a type of yours.
//!
//! ```
//! use agent_core::{Agent, ChatAgent, Delta, RunContext, Session, Update, testing::ScriptedClient};
//! use futures_util::StreamExt; // or `futures::StreamExt`
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! let agent = ChatAgent::new("poet", ScriptedClient::new().says("An old silent pond…"), Default::default());
//! let mut session = Session::new();
//! session.push("A haiku, please.");
//!
//! let cx = RunContext::default();
//! let mut run = agent.run(&mut session, &cx);
//! while let Some(update) = run.next().await {
//!     match update? {
//!         Update::Delta(Delta::Text(piece)) => print!("{piece}"),
//!         Update::Delta(_) => {} // thoughts, arguments of calls
//!         Update::Event(event) => println!("\n[{}: {} messages]", event.author, event.messages.len()),
//!         Update::Done(stop) => println!("{stop}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Why a run ended is a value, never a guess from its text. [`AgentResponse::accepted`] is `Ok` only if the work is
//! done; [`StopReason::is_suspended`] tells which ends can be taken up again.
//!
//! A [`RunContext`] belongs to one run and everything that it reaches, agents in agents included: it holds the
//! [`Limits`], what was [`Spent`], and the cancellation token.
//!
//! # Agents
//!
//! - [`ChatAgent`]: a model with [`Tool`]s, [`Instructions`], and [`ChatHook`]s such as [`ToolBudget`].
//! - [`agent_fn`]: an agent from an async function; [`updates`] and [`Emitter`] for types that implement [`Agent`].
//! - [`SequentialAgent`] and [`ParallelAgent`]: agents made of agents; [`agent_tool`]: an agent as a tool of another.
//!
//! # Approvals
//!
//! A tool that [needs approval](ToolFn::needs_approval) does not run: the run ends
//! [`AwaitingApproval`](StopReason::AwaitingApproval), and the open request is in the session, also after it was stored
//! and loaded elsewhere. The caller answers and runs again.
//!
//! ```
//! use agent_core::{AgentExt, ChatAgent, ChatMessage, Session, StopReason, ToolContext, testing::ScriptedClient, tool_fn};
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! let model = ScriptedClient::new().calls("call-1", "restart", json!({})).says("Restarted.");
//! let restart = tool_fn("restart", "Restarts the server.", |_: Value, _: ToolContext| async { Ok("done") });
//! let agent = ChatAgent::new("operator", model, Default::default()).tool(restart.needs_approval());
//!
//! let mut session = Session::new();
//! let response = agent.ask(&mut session, "The server hangs.").await?;
//! assert_eq!(response.stop, StopReason::AwaitingApproval);
//!
//! let request = session.open_approvals().remove(0);
//! assert_eq!(request.name, "restart");
//! let response = agent.ask(&mut session, ChatMessage::approve(request.id)).await?;
//! assert_eq!((response.stop, response.text().as_str()), (StopReason::Completed, "Restarted."));
//! # Ok(())
//! # }
//! ```
//!
//! # Stored sessions
//!
//! A [`Runner`] takes an event from the agent, awaits the [`SessionStore`], shows the event to the caller, and only
//! then polls the agent again. What a caller saw is what is stored. [`MemoryStore`] and [`JsonlStore`] are here.
//!
//! ```
//! use agent_core::{AgentResponse, ChatAgent, ChatMessage, MemoryStore, Runner, RunContext, SessionStore};
//! # use agent_core::testing::ScriptedClient;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! # let model = ScriptedClient::new().says("Hello, Ada.").says("You are Ada.");
//! let store = MemoryStore::new();
//! let runner = Runner::new(ChatAgent::new("greeter", model, Default::default()), store.clone());
//!
//! let run = runner.run("session-1", ChatMessage::user("I am Ada."), RunContext::default());
//! assert_eq!(AgentResponse::collect(run).await?.text(), "Hello, Ada.");
//! let run = runner.run("session-1", ChatMessage::user("Who am I?"), RunContext::default());
//! assert_eq!(AgentResponse::collect(run).await?.text(), "You are Ada.");
//!
//! assert_eq!(store.load("session-1").await?.version, 4); // events: two of the caller, two of the agent
//! # Ok(())
//! # }
//! ```
//!
//! # Durable runs
//!
//! [`Steps`] is the seam for engines that keep a journal, such as durable execution or a queue of work in a database: it
//! hands out a session's next event, and the agent does not move until that is accepted. A new process applies the
//! journal, runs nothing, and goes on.
//!
//! # Errors
//!
//! There is one [`Error`] for the workspace. Its [`ErrorKind`] says what to do about it; the error of a service or a
//! store is its source. A tool's failure is no error of the run: the model reads it and goes on.
//!
//! # Traces
//!
//! Runs, model calls and tool calls are `tracing` spans, with the names and attributes of OpenTelemetry's conventions
//! for generative AI. They say how long, how many tokens and why it ended; what was said is in them only after
//! [`RunContext::with_content_in_spans`].
//!
//! # Testing
//!
//! With the feature `testing` the module `testing` has a model and an agent that play a script, a model that
//! refuses conversations that real services refuse, a store that keeps a log, a suite for stores of your own, and the
//! laws of a run as one assertion:
//!
//! ```
//! use agent_core::{ChatAgent, RunContext, Session, Update, testing::{PairingClient, ScriptedClient, assert_laws}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let model = ScriptedClient::new().says("4");
//! let agent = ChatAgent::new("adder", PairingClient::new(model.clone()), Default::default());
//!
//! let mut session = Session::new();
//! session.push("2 + 2?");
//! let updates = assert_laws(&agent, &mut session, &RunContext::default()).await;
//!
//! assert_eq!(updates.iter().filter(|update| matches!(update, Update::Event(_))).count(), 1);
//! assert_eq!(model.requests()[0].messages[0].text(), "2 + 2?");
//! # }
//! ```
//!
//! # Feature flags
//!
//! - `process` (off by default): `ProcessGroup`, programs that end with everything that they started.
//! - `testing` (off by default): the module `testing`.

mod agent;
mod budget;
mod calls;
mod chat;
mod chat_agent;
mod context;
mod draft;
mod emitter;
mod error;
mod event;
mod format;
mod ids;
mod json;
mod ledger;
mod limits;
mod message;
#[cfg(feature = "process")]
mod process;
mod response;
mod runner;
mod session;
mod slot;
mod steps;
mod store;
mod telemetry;
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
pub use context::RunContext;
pub use draft::Draft;
pub use emitter::{Emitter, updates};
pub use error::{BoxError, Error, ErrorKind, Result};
pub use event::{Event, LoopStep, StateChange, Usage};
pub use format::Format;
pub use json::{json_equal, unfenced};
pub use limits::{Limits, Spent};
pub use message::{ChatMessage, Content, Role, ToolCall, ToolResult};
#[cfg(feature = "process")]
pub use process::ProcessGroup;
pub use response::{AgentResponse, Unfinished};
pub use runner::Runner;
pub use session::{Session, Turn};
pub use steps::{Step, Steps};
pub use store::{JsonlStore, MemoryStore, SessionStore, Stored};
pub use tool::{Tool, ToolContext, ToolFn, ToolOutput, ToolSpec, exit_loop, tool_fn};
pub use typed::{Typed, run_typed};
pub use update::{Delta, StopReason, Update, Updates};
pub use workflow::{ParallelAgent, SequentialAgent, agent_tool};
