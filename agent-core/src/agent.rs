//! The agent trait, and agents from functions.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;

use crate::{AgentResponse, ChatMessage, Emitter, Result, RunContext, Session, StopReason, Updates, updates};

/// What an agent is called, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInfo {
    /// The author of its events and messages; unique among the agents of a session.
    pub name: String,
    /// What it is for; shown to models that may call it as a tool.
    pub description: String,
}

impl AgentInfo {
    /// A name without a description.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: String::new() }
    }
}

/// Something that continues a session.
///
/// The caller has spoken into the session before; "go on", "resume after an approval" and "resume after a crash" are
/// the same call. An agent changes the session only by the events that it yields, so the session after a run is the
/// session before with these events applied.
pub trait Agent: Send + Sync {
    /// What it is called.
    fn info(&self) -> &AgentInfo;

    /// Continues the session: updates, then one [`Done`](crate::Update::Done) or one error.
    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a>;
}

/// Runs that are folded into one response.
pub trait AgentExt: Agent {
    /// Runs to the end.
    ///
    /// # Errors
    /// The run's; what it recorded before is in the session.
    fn complete(&self, session: &mut Session, cx: &RunContext) -> impl Future<Output = Result<AgentResponse>> + Send {
        async move { AgentResponse::collect(self.run(session, cx)).await }
    }

    /// Says something and runs to the end, with default [`Limits`](crate::Limits).
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    fn ask(
        &self,
        session: &mut Session,
        message: impl Into<ChatMessage>,
    ) -> impl Future<Output = Result<AgentResponse>> + Send {
        session.push(message);
        async move { self.complete(session, &RunContext::default()).await }
    }
}

impl<A: Agent + ?Sized> AgentExt for A {}

macro_rules! forward_agent {
    ($pointer:ty) => {
        impl<A: Agent + ?Sized> Agent for $pointer {
            fn info(&self) -> &AgentInfo {
                (**self).info()
            }

            fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
                (**self).run(session, cx)
            }
        }
    };
}

forward_agent!(&A);
forward_agent!(Box<A>);
forward_agent!(Arc<A>);

/// An agent from a function, see [`agent_fn`].
pub struct AgentFn<F> {
    info: AgentInfo,
    author: Arc<str>,
    run: F,
}

/// An agent from a function of the session and an emitter.
///
/// ```
/// use agent_core::{AgentExt, ChatMessage, Draft, Session, StopReason, agent_fn};
///
/// # tokio_test(async {
/// let echo = agent_fn("echo", |session, out| {
///     Box::pin(async move {
///         let heard = session.pending().iter().map(ChatMessage::text).collect::<String>();
///         out.record(session, Draft::message(ChatMessage::assistant(heard))).await;
///         Ok(StopReason::Completed)
///     })
/// });
/// let response = echo.ask(&mut Session::new(), "hello").await?;
/// assert_eq!(response.text(), "hello");
/// # Ok::<_, agent_core::Error>(())
/// # });
/// # fn tokio_test(f: impl Future<Output = agent_core::Result<()>>) {
/// #     tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(f).unwrap();
/// # }
/// ```
pub fn agent_fn<F>(name: impl Into<String>, f: F) -> AgentFn<F>
where
    F: for<'a> Fn(&'a mut Session, Emitter) -> BoxFuture<'a, Result<StopReason>> + Send + Sync,
{
    let info = AgentInfo::named(name);
    AgentFn { author: info.name.as_str().into(), info, run: f }
}

impl<F> Agent for AgentFn<F>
where
    F: for<'a> Fn(&'a mut Session, Emitter) -> BoxFuture<'a, Result<StopReason>> + Send + Sync,
{
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.author.clone(), cx, |out| (self.run)(session, out))
    }
}

impl<F> fmt::Debug for AgentFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentFn").field("info", &self.info).finish_non_exhaustive()
    }
}
