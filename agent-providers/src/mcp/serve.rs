//! An agent as an MCP server.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use agent_core::{
    Agent, AgentInfo, AgentResponse, BoxError, ChatMessage, Error, ErrorKind, Event, Limits, Result, RunContext,
    Runner, Session, SessionStore, StopReason, Update, Updates,
};
use futures::StreamExt;
use rmcp::{
    ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
        ServerConfig, Tool,
    },
    service::{Peer, QuitReason, RequestContext, RoleServer, ServerInitializeError, ServiceExt},
};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::RwLock,
    time::timeout,
};

use super::names;

/// An agent as an MCP server with one tool, which has the agent's name and description.
///
/// Its argument is `{"request": string}`; each call is a run on a new session, or, with
/// [`with_sessions`](Self::with_sessions), on the one that its argument `session` names. The result is the agent's last text if
/// the run ended [`Completed`](StopReason::Completed) or [`Escalated`](StopReason::Escalated). Any other end is an error
/// result that names it, with the last text behind it; so is an error. A call that needs approval cannot be answered
/// over MCP. Calls run side by side. A call that the client cancels is cancelled, and a client that asks for progress
/// is told of each step and of the iteration of each loop that it is in.
///
/// ```no_run
/// use agent_core::{ChatAgent, Result};
/// use agent_providers::{McpServer, OpenAi};
///
/// #[tokio::main]
/// async fn main() -> Result<()> {
///     let agent = ChatAgent::new("helper", OpenAi::from_env()?, Default::default());
///     McpServer::new(agent).serve_stdio().await
/// }
/// ```
pub struct McpServer {
    tool: Tool,
    runs: Runs,
    limits: Limits,
    /// Held for reading by each call.
    busy: Arc<RwLock<()>>,
}

enum Runs {
    New(Box<dyn Agent>),
    Stored(Runner),
}

/// How long calls that were cancelled with their connection may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

impl McpServer {
    /// Serves this agent; each call is a run on a new session.
    pub fn new(agent: impl Agent + 'static) -> Self {
        Self::of(tool(&agent, false), Runs::New(Box::new(agent)))
    }

    /// Serves this agent on the sessions of a store: the tool has an argument `session`, without which a call is a
    /// run on a new session that is stored under a fresh id.
    ///
    /// Whoever can call the tool can go on with any session of the store.
    pub fn with_sessions(agent: impl Agent + 'static, store: impl SessionStore + 'static) -> Self {
        Self::of(tool(&agent, true), Runs::Stored(Runner::new(agent, store)))
    }

    fn of(tool: Tool, runs: Runs) -> Self {
        Self { tool, runs, limits: Limits::default(), busy: Arc::default() }
    }

    /// What each call may spend; otherwise the default [`Limits`].
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Serves over standard input and output until the input ends; then calls that still run are cancelled.
    ///
    /// Standard output belongs to the protocol: print nothing there, and send logs to standard error. The tokio runtime
    /// has to have its I/O enabled.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn serve_stdio(self) -> Result<()> {
        // A plain standard input would keep the runtime from ending where its client does not close it.
        let (input, output) = rmcp::transport::stdio_pipes();
        self.serve(input, output).await
    }

    /// Serves over two streams of bytes, as over standard input and output.
    ///
    /// # Errors
    /// [`Tool`](ErrorKind::Tool) if the client does not speak the protocol.
    pub async fn serve(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        let name = self.tool.name.clone();
        let failed =
            |source: BoxError| Error::new(ErrorKind::Tool, format!("serve `{name}` over MCP")).with_source(source);
        let busy = self.busy.clone();
        let service = match ServiceExt::serve(Handler(self), (input, output)).await {
            Ok(service) => service,
            // The client left before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(failed(error.into())),
        };
        let end = service.waiting().await.map_err(|error| failed(error.into()))?;
        // A run that is cancelled records how far it came.
        let _ = timeout(PATIENCE, busy.write()).await;
        match end {
            QuitReason::JoinError(error) => Err(failed(error.into())),
            _ => Ok(()),
        }
    }

    async fn answer(&self, arguments: Arguments, cx: &RunContext, progress: Progress) -> CallToolResult {
        let message = ChatMessage::user(arguments.request);
        let mut session = Session::new();
        let updates = match &self.runs {
            Runs::New(agent) => {
                session.push(message);
                agent.run(&mut session, cx)
            }
            Runs::Stored(runner) => {
                let id = arguments.session.unwrap_or_else(|| cx.id().to_string());
                runner.run(id, message, cx.clone())
            }
        };
        let name = &self.tool.name;
        match progress.fold(updates).await {
            Err(error) => failure(format!("agent `{name}` failed: {error:#}")),
            Ok(response) => match (response.stop, response.text()) {
                (StopReason::Completed | StopReason::Escalated, text) => {
                    CallToolResult::success(vec![ContentBlock::text(text)])
                }
                (stop, text) if text.is_empty() => failure(format!("agent `{name}` did not finish: {stop}")),
                (stop, text) => failure(format!("agent `{name}` did not finish: {stop}\n\n{text}")),
            },
        }
    }
}

fn failure(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn tool(agent: &impl Agent, has_sessions: bool) -> Tool {
    let AgentInfo { name, description } = agent.info();
    let mut schema = json!({
        "type": "object",
        "properties": {
            "request": {
                "type": "string",
                "description": "What the agent is to do, with everything that it has to know.",
            },
        },
        "required": ["request"],
    });
    if has_sessions {
        let description = "The conversation to go on with, by a name of your choice. Without it the agent knows nothing \
                           of earlier requests.";
        schema["properties"]["session"] = json!({ "type": "string", "description": description });
    }
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(names::single(name), description.clone(), schema)
}

/// What a client tells the tool.
#[derive(Deserialize)]
struct Arguments {
    request: String,
    session: Option<String>,
}

/// The protocol's side of a server.
struct Handler(McpServer);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let name = self.0.tool.name.to_string();
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.0.tool.clone()]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let server = &self.0;
        if call.name != server.tool.name {
            let why = format!("there is no tool named `{}`; there is `{}`", call.name, server.tool.name);
            return Err(ErrorData::invalid_params(why, None));
        }
        let arguments = serde_json::Value::Object(call.arguments.unwrap_or_default());
        let arguments = match serde_json::from_value(arguments) {
            Ok(arguments) => arguments,
            // A result, for a model reads results and does better next time.
            Err(error) => return Ok(failure(format!("invalid arguments: {error}")).into()),
        };
        let _busy = server.busy.read().await;
        let cx = RunContext::new(server.limits);
        let progress = Progress::of(&request);
        let answer = server.answer(arguments, &cx, progress);
        tokio::pin!(answer);
        let result = tokio::select! {
            result = &mut answer => result,
            () = request.ct.cancelled() => {
                cx.cancel().cancel();
                answer.await
            }
        };
        Ok(result.into())
    }
}

/// Tells a client that asked for it how far a run is.
struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    fn of(request: &RequestContext<RoleServer>) -> Self {
        Self(request.meta.get_progress_token().map(|token| (request.peer.clone(), token)))
    }

    /// Folds a run; before it goes on after an event, the client is told.
    async fn fold(&self, updates: Updates<'_>) -> Result<AgentResponse> {
        let steps = &AtomicU32::new(0);
        let told = updates.then(|update| async move {
            if let (Some((peer, token)), Ok(Update::Event(event))) = (&self.0, &update) {
                let step = steps.fetch_add(1, Relaxed) + 1;
                let message = ProgressNotificationParam::new(token.clone(), step.into()).with_message(place(event));
                // A client that is gone needs no news.
                let _ = peer.notify_progress(message).await;
            }
            update
        });
        AgentResponse::collect(told.boxed()).await
    }
}

/// Who is at work, in which iterations: `draft#2: writer`.
fn place(event: &Event) -> String {
    let steps = event.path.iter().map(|step| format!("{}#{}: ", step.name, step.iteration));
    steps.chain([event.author.to_string()]).collect()
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("tool", &self.tool.name).field("limits", &self.limits).finish_non_exhaustive()
    }
}
