//! A connection to a server that is made anew when it is gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use rmcp::{
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject, Tool},
    service::ServiceError,
};
use tokio::{sync::Mutex, time::timeout};

use super::{live::Live, measured::LONGEST, server::Server};

/// A server, and the connection to it while there is one.
pub(super) struct Connection {
    server: Server,
    start: Duration,
    has_changed: Arc<AtomicBool>,
    state: Mutex<State>,
}

enum State {
    /// There is none, and the next request makes one.
    Gone,
    Live(Live),
    /// There will be none.
    Closed,
}

impl Connection {
    /// Connects for the first time.
    pub(super) async fn open(server: Server, start: Duration) -> Result<Self> {
        let connection = Self { server, start, has_changed: Arc::default(), state: Mutex::new(State::Gone) };
        connection.live().await?;
        connection.has_changed.store(false, Relaxed);
        Ok(connection)
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Whether the server said that its tools changed, or was started again, since they were last listed.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Relaxed)
    }

    /// The server's tools, all pages of them.
    pub(super) async fn tools(&self) -> Result<Vec<Tool>> {
        let failed = |why: String| {
            Error::new(ErrorKind::Tool, format!("list the tools of the MCP server `{}`", self.server)).with_source(why)
        };
        let live = self.live().await?;
        // Before it is asked, so that no change is missed.
        self.has_changed.store(false, Relaxed);
        match timeout(self.start, live.peer().list_all_tools()).await {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(error)) => Err(failed(self.why(live, &error).await)),
            Err(_) => Err(failed(format!("it did not answer within {:?}", self.start))),
        }
    }

    /// Calls a tool. A call that the server may have begun is never repeated. Dropped, it tells the server to stop.
    ///
    /// # Errors
    /// Why there is no result, as a model should read it.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        limit: Duration,
    ) -> Result<CallToolResult, String> {
        let server = &self.server;
        let live = self.live().await.map_err(|error| format!("{error:#}"))?;
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        match timeout(limit, live.answer(live.peer().call_tool_once(request))).await {
            Ok(Some(Ok(CallToolResponse::Complete(result)))) => Ok(result),
            Ok(Some(Ok(_))) => {
                Err(format!("the MCP server `{server}` wants something of its client that is not offered"))
            }
            Ok(Some(Err(error))) => Err(self.why(live, &error).await),
            Ok(None) => Err(format!(
                "the MCP server `{server}` answered with more than {LONGEST} bytes, which is too much; ask for less"
            )),
            Err(_) => Err(format!(
                "the MCP server `{server}` did not answer within {limit:?} and was told to stop; {UNKNOWN}"
            )),
        }
    }

    /// Ends the connection, and the child if there is one.
    pub(super) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock().await, State::Closed);
        if let State::Live(live) = state {
            live.end().await;
        }
    }

    /// The server that lives, started again, once, if there is none. Others wait meanwhile.
    async fn live(&self) -> Result<Live> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Closed => {
                let context = format!("use the MCP server `{}`: it was closed", self.server);
                return Err(Error::new(ErrorKind::Tool, context));
            }
            State::Live(live) if live.is_open() => return Ok(live.clone()),
            State::Live(_) | State::Gone => *state = State::Gone,
        }
        let live = self.server.connect(self.start, &self.has_changed).await?;
        *state = State::Live(live.clone());
        // It may be another version of the server by now.
        self.has_changed.store(true, Relaxed);
        Ok(live)
    }

    /// Why a request failed. A connection that broke is given up, so that the next request makes a new one.
    async fn why(&self, live: Live, error: &ServiceError) -> String {
        let server = &self.server;
        match error {
            ServiceError::McpError(ErrorData { code, message, .. }) => {
                format!("the MCP server `{server}` refused: {} (code {})", server.redact(message), code.0)
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                if live.is_broken_by(error) {
                    self.give_up(&live).await;
                }
                let how = match live.last_words().await {
                    Some(last_words) => format!("went away before it answered: {last_words}"),
                    None => format!("could not be asked: {}", server.why_unsent(error)),
                };
                format!("the MCP server `{server}` {how}\n{UNKNOWN}; the next call tries to reach the server again")
            }
            error => format!("the MCP server `{server}` gave no result: {error}"),
        }
    }

    /// Forgets a connection, unless there is another one by now.
    async fn give_up(&self, broken: &Live) {
        let mut state = self.state.lock().await;
        if matches!(&*state, State::Live(live) if live.is(broken)) {
            *state = State::Gone;
        }
    }
}

/// What a call's sudden end leaves open.
const UNKNOWN: &str = "whether the call took effect is not known";
