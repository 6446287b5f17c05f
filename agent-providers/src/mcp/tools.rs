//! A server's tools as an agent's.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{BoxError, Result, Tool, ToolContext, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::{McpCommand, McpEndpoint, McpOptions, connection::Connection, contents, names, server::Server};

/// The tools of one MCP server. Clones share the connection.
///
/// ```no_run
/// use agent_core::{AgentExt, ChatAgent, Result, Session};
/// use agent_providers::{McpApproval, McpCommand, McpOptions, McpTools, OpenAi};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let server = McpCommand::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"]);
/// let options = McpOptions {
///     prefix: "notes_".to_owned(),
///     approval: McpApproval::AllBut(vec!["read_*".to_owned(), "list_*".to_owned()]),
///     ..McpOptions::default()
/// };
/// let notes = McpTools::stdio(server, options).await?;
/// let search = McpTools::http("http://127.0.0.1:8000/mcp", McpOptions::default()).await?;
///
/// let mut agent = ChatAgent::new("librarian", OpenAi::from_env()?, Default::default());
/// for tool in notes.tools().await?.into_iter().chain(search.tools().await?) {
///     agent = agent.tool(tool);
/// }
/// agent.ask(&mut Session::new(), "Which of my notes are about lighthouses?").await?;
/// notes.close().await;
/// # Ok(())
/// # }
/// ```
///
/// # What a model reads
///
/// Text is text; images, sounds and the bytes of resources are [`Content::Data`](agent_core::Content::Data); a link to
/// an image or a PDF on the web is a [`Content::Uri`](agent_core::Content::Uri), any other link is told in words.
/// Structured content is JSON, unless a text says the same. Some services take nothing but text as a tool's result:
/// [`McpOptions::text_only`].
///
/// # What goes wrong
///
/// Whatever it is, it is an error result that the model reads, and the run goes on: what the server calls an error, what
/// it refuses, a server that dies, hangs or cannot be reached. A call that the server may have begun is not repeated;
/// its result says so. When a server is gone, or its session has expired, the next call starts it again, once; if
/// that fails, its result says why. A run that is cancelled, and a call that takes too long, tell the server to stop.
/// A message of more than 16 MiB is not read.
///
/// # Tools that change
///
/// An agent's tools are those that it was made with. A server that says that its tools have changed is noted
/// ([`have_changed`](Self::have_changed)): make an agent of [`tools`](Self::tools) anew, which costs no connection. A call
/// of a tool that the server has no more is an error result.
///
/// # What a server may ask
///
/// Nothing: a server that wants a model's answer (sampling) is refused, a question to the user (elicitation) is declined,
/// and the list of roots is empty. Progress and logs are passed over. A server's name for a tool, its description and its
/// results are what somebody else wrote: give an agent servers that you trust, and ask for approval where it matters.
///
/// # Ends
///
/// When neither a clone nor a tool is left, the connection ends in the background: a child's input is closed, and it is
/// ended with all that it started. [`close`](Self::close) waits for that.
#[derive(Clone)]
pub struct McpTools {
    connection: Arc<Connection>,
    options: McpOptions,
}

impl McpTools {
    /// Starts a program that serves over its standard input and output. It has to run in a tokio runtime.
    ///
    /// # Errors
    /// [`Tool`](agent_core::ErrorKind::Tool) if it cannot be started, ends, or is not ready in time; the error says
    /// what it printed last.
    pub async fn stdio(command: McpCommand, options: McpOptions) -> Result<Self> {
        Self::open(Server::Child(command), options).await
    }

    /// Connects to a server over streamable HTTP.
    ///
    /// # Errors
    /// [`Invalid`](agent_core::ErrorKind::Invalid) if the URL or a header is none,
    /// [`Tool`](agent_core::ErrorKind::Tool) if the server cannot be reached or does not answer in time.
    pub async fn http(endpoint: impl Into<McpEndpoint>, options: McpOptions) -> Result<Self> {
        let endpoint = endpoint.into();
        let (client, url) = endpoint.to_client()?;
        Self::open(Server::Http { endpoint, client, url }, options).await
    }

    async fn open(server: Server, options: McpOptions) -> Result<Self> {
        let connection = Arc::new(Connection::open(server, options.start).await?);
        Ok(Self { connection, options })
    }

    /// The tools that the server has now, in its order. If two have one name, the first counts.
    ///
    /// # Errors
    /// [`Tool`](agent_core::ErrorKind::Tool) if the server does not tell, also after it was started again.
    pub async fn tools(&self) -> Result<Vec<Arc<dyn Tool>>> {
        let tools = self.connection.tools().await?;
        let names = names::unique(&self.options.prefix, tools.iter().map(|tool| &*tool.name));
        let tools = tools.into_iter().zip(names).filter_map(|(tool, name)| {
            let Some(name) = name else {
                tracing::warn!(server = %self.connection.server(), tool = %tool.name, "two tools of one name");
                return None;
            };
            let description = tool.description.map_or_else(|| tool.title.unwrap_or_default(), Into::into);
            let spec = ToolSpec {
                name,
                description,
                parameters: parameters(Arc::unwrap_or_clone(tool.input_schema)),
                needs_approval: self.options.approval.is_needed_for(&tool.name),
            };
            let McpOptions { text_only, call, .. } = self.options;
            let connection = self.connection.clone();
            let tool = McpTool { connection, name: tool.name.into_owned(), spec, text_only, limit: call };
            Some(Arc::new(tool) as Arc<dyn Tool>)
        });
        Ok(tools.collect())
    }

    /// Whether the server said that its tools changed, or was started again, since [`tools`](Self::tools) was called last.
    /// Servers of the protocol's later versions alone, without the first handshake, do not say so.
    pub fn have_changed(&self) -> bool {
        self.connection.has_changed()
    }

    /// Ends the connection and waits until it has ended: a child's input is closed; after 2 seconds it is asked to end
    /// (`SIGTERM`), after 2 more it is killed, and what it started is killed with it. Later calls are error results.
    ///
    /// If this process is killed, it is up to the server to see that its input has ended.
    pub async fn close(&self) {
        self.connection.close().await;
    }
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.connection.server().to_string();
        f.debug_struct("McpTools").field("server", &server).field("options", &self.options).finish_non_exhaustive()
    }
}

/// One tool of a server.
struct McpTool {
    connection: Arc<Connection>,
    /// As the server calls it.
    name: String,
    spec: ToolSpec,
    text_only: bool,
    limit: Duration,
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: ToolContext) -> Result<ToolOutput, BoxError> {
        let ToolContext { call, run, .. } = cx;
        let arguments = match call.arguments {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            other => return Err(format!("invalid arguments: an object is expected, not {other}").into()),
        };
        tokio::select! {
            result = self.connection.call(&self.name, arguments, self.limit) => {
                result.map(|result| contents::output(result, self.text_only)).map_err(Into::into)
            }
            stop = run.interrupted() => Err(format!("the server was told to stop: {stop}").into()),
        }
    }
}

/// A schema as model services want it: an object with properties, and without the words about the schema itself.
fn parameters(mut schema: Map<String, Value>) -> Value {
    schema.remove("$schema");
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}
