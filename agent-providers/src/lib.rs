//! Chat clients for real model services, and sessions in databases. **A stream that ends before its service said so is an error, never an end**;
//! so an agent never takes half an answer for a whole one.
//!
//! | client | protocol |
//! |---|---|
//! | [`OpenAi`] | OpenAI's Chat Completions, and all that is compatible: llama.cpp, vLLM, OpenRouter, Groq, … |
//! | [`OpenAiResponses`] | OpenAI's Responses, whose encrypted thoughts come back to the model |
//! | [`Anthropic`] | Anthropic's Messages, whose signed thoughts come back to the model |
//! | [`Gemini`] | Gemini's generateContent, whose signatures of thoughts come back to the model |
//! | [`Ollama`] | Ollama's own chat, made to refuse a conversation that it would cut |
//!
//! Each is a [`ChatClient`](agent_core::ChatClient): an agent of `agent-core` asks it, and streams what it says.
//!
//! ```no_run
//! use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Session};
//! use agent_providers::{OpenAi, Retry, RetryOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! let client = Retry::new(OpenAi::from_env()?, RetryOptions::default());
//! let agent = ChatAgent::new("helper", client, ChatAgentOptions::default());
//! let response = agent.ask(&mut Session::new(), "Which crate reads JSON?").await?;
//! println!("{}", response.text());
//! # Ok(())
//! # }
//! ```
//!
//! # Names and variables
//!
//! [`client_for`] makes a client of a name, for command lines:
//!
//! | name | key | base URL |
//! |---|---|---|
//! | `openai:MODEL` | `OPENAI_API_KEY` | `OPENAI_BASE_URL`, if set |
//! | `openai-responses:MODEL` | `OPENAI_API_KEY` | `OPENAI_BASE_URL`, if set |
//! | `openai-compatible:MODEL` | `OPENAI_COMPATIBLE_API_KEY`, if set | `OPENAI_COMPATIBLE_BASE_URL` |
//! | `anthropic:MODEL` | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL`, if set; without `/v1` |
//! | `gemini:MODEL` | `GEMINI_API_KEY` | `GEMINI_BASE_URL`, if set; without `/v1beta` |
//! | `ollama:MODEL` | `OLLAMA_API_KEY`, if set | `OLLAMA_BASE_URL`, if set; else `http://127.0.0.1:11434` |
//!
//! The `from_env` of a client reads its model from a variable, too: `OPENAI_MODEL`, `ANTHROPIC_MODEL`, `GEMINI_MODEL` or
//! `OLLAMA_MODEL`. Keys are [`Secret`]s: sent in headers alone, and in no `Debug`, error, trace or cassette.
//!
//! # Errors
//!
//! What goes wrong is an [`agent_core::Error`] that says what to do, of kind
//! [`Provider`](agent_core::ErrorKind::Provider) with a [`ProviderError`] as its source: what it is about, status, code,
//! request id, and how long the service asks to wait. Errors inside a stream are the same. An option or content that a
//! protocol cannot send is an error of kind [`Unsupported`](agent_core::ErrorKind::Unsupported), never left out.
//!
//! [`TimeOuts`] limit the connection, the response's head, each pause and the whole call. Dropping a stream closes its
//! connection at once.
//!
//! # Wrappers
//!
//! - [`Retry`] asks again when an error may pass and nothing of the answer was told yet.
//! - [`Limited`] keeps to so many calls at once, calls a minute and tokens a minute.
//! - [`Recorded`] records calls in a cassette and replays them: tests and examples with the answers of a real model,
//!   without the model.
//!
//! ```
//! use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Session};
//! use agent_providers::Recorded;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! // Made by Recorded::open("hello.jsonl", CassetteMode::Record)?.trial("hello", 0, client); see include_str!.
//! let cassette = r#"{"case":"hello","repeat":0,"ordinal":0,"model":"m","request":{"messages":[{"role":"user",
//!     "contents":[{"text":"Hello"}]}]},"deltas":["Hi ","there"],"response":{"message":{"role":"assistant",
//!     "contents":[{"text":"Hi there"}]},"usage":{"input_tokens":9,"output_tokens":2},"stop":"completed","model":"m"}}"#;
//! # let cassette = &cassette.replace('\n', "");
//! let client = Recorded::replay(cassette)?.replay_trial("hello", 0);
//! let agent = ChatAgent::new("helper", client, ChatAgentOptions::default());
//! let response = agent.ask(&mut Session::new(), "Hello").await?;
//! assert_eq!((response.text().as_str(), response.usage.total()), ("Hi there", 11));
//! # Ok(())
//! # }
//! ```
//!
//! # Sessions in databases
//!
//! | store | where | its processes |
//! |---|---|---|
//! | `SqliteStore` (feature `sqlite`) | one file, with SQLite compiled in | any number, on one machine |
//! | `PostgresStore` (feature `postgres`) | a database of PostgreSQL | any number, on any number of machines |
//!
//! Both are [`SessionStore`](agent_core::SessionStore)s for a [`Runner`](agent_core::Runner): an append is whole and lasting, the
//! later of two writers gets a [`Conflict`](agent_core::ErrorKind::Conflict), and a load costs a snapshot and what came since.
//! They do not make a tool's effect and its record one: a process that is killed between the two runs an approved call again
//! when another goes on. Where that matters, let the tool note its call's id with its effect, and look there first.
//!
//! # Durable runs
//!
//! `DurableAgent` (feature `restate`) makes an agent's sessions keyed objects of a [Restate](https://restate.dev) server:
//! each event is journaled, a killed worker is replaced by another that repeats nothing of it, and an approval waits at no
//! cost.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `ring` (default), `aws-lc-rs` | the cryptography of TLS. With neither, the process's default provider of `rustls` is used; where there is one, it is preferred |
//! | `mcp` | `McpTools`: tools of MCP servers, started as children or reached over HTTP; `McpServer`: any agent as a tool over standard input and output |
//! | `sqlite`, `postgres` | `SqliteStore`, `PostgresStore`: sessions in databases |
//! | `restate` | `DurableAgent`, whose runs survive machines, on a Restate server |

mod answer;
mod anthropic;
#[cfg(test)]
mod cases;
mod client_for;
mod dialect;
#[cfg(feature = "restate")]
mod durable;
mod error;
mod fields;
mod framing;
mod gemini;
mod limited;
#[cfg(feature = "mcp")]
mod mcp;
mod media;
mod ollama;
mod openai_chat;
mod openai_responses;
mod orders;
mod recorded;
mod retry;
mod schema;
mod secret;
mod settings;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod stores;
#[cfg(test)]
mod testing;
mod transport;
mod unsupported;
mod wire;

pub use anthropic::Anthropic;
pub use client_for::{client_for, client_from_vars};
#[cfg(feature = "restate")]
pub use durable::{DurableAgent, DurableOptions, Rejection, Reply, Status, Words};
pub use error::{ProviderError, ProviderErrorKind};
pub use gemini::Gemini;
pub use limited::{Limited, LimitedOptions};
#[cfg(feature = "mcp")]
pub use mcp::{McpApproval, McpCommand, McpEndpoint, McpOptions, McpServer, McpTools};
pub use ollama::Ollama;
pub use openai_chat::OpenAi;
pub use openai_responses::OpenAiResponses;
pub use recorded::{CassetteMode, NotRecorded, Recorded, RecordedClient};
pub use retry::{Retry, RetryOptions};
pub use secret::Secret;
#[cfg(feature = "postgres")]
pub use stores::{PostgresStore, PostgresStoreOptions};
#[cfg(feature = "sqlite")]
pub use stores::{SqliteStore, SqliteStoreOptions};
pub use transport::{HttpOptions, TimeOuts};
