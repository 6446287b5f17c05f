//! Runs that survive machines, on Restate.

mod handlers;
mod parts;
#[cfg(test)]
mod tests;
mod turn;
mod types;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Agent, Delta, Limits, RunContext, Session, Steps, StopReason};
use restate_sdk::prelude::{Endpoint, HttpServer, IntoServiceDefinition, RunRetryPolicy, ServiceDefinition};
use tokio::net::TcpListener;

use self::handlers::{Handlers, Running};
pub use self::types::{Rejection, Reply, Status, Words};

/// How a [`DurableAgent`] runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableOptions {
    /// What one turn may spend, across all processes that work at it.
    pub limits: Limits,
    /// How often a step that fails with a [transient](agent_core::Error::is_transient) error is tried in all, before
    /// the turn fails; 8 by default.
    pub attempts: u32,
    /// How long to wait before the second try; twice as long before each further one. Half a second by default.
    pub first_delay: Duration,
    /// The longest wait between two tries; half a minute by default.
    pub longest_delay: Duration,
}

impl Default for DurableOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            attempts: 8,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
        }
    }
}

/// An agent whose sessions are keyed objects of a [Restate](https://restate.dev) server.
#[derive(Clone)]
pub struct DurableAgent {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    agent: Arc<dyn Agent>,
    limits: Limits,
    retries: RunRetryPolicy,
    on_delta: Option<Arc<ShowDelta>>,
    end: Option<Arc<EndOf>>,
}

type ShowDelta = dyn Fn(&str, Delta) + Send + Sync;
type EndOf = dyn Fn(&Session) -> Option<StopReason> + Send + Sync;

impl DurableAgent {
    /// This agent's sessions.
    pub fn new(agent: impl Agent + 'static, options: DurableOptions) -> Self {
        let DurableOptions { limits, attempts, first_delay, longest_delay } = options;
        let retries = RunRetryPolicy::new().initial_delay(first_delay).exponentiation_factor(2.0);
        let retries = retries.max_delay(longest_delay).max_attempts(attempts);
        Self { inner: Arc::new(Inner { agent: Arc::new(agent), limits, retries, on_delta: None, end: None }) }
    }

    /// Shows the pieces of what is being written, with the session's key, in the process that writes it. They are not
    /// in the journal: a replay shows none.
    pub fn on_delta(mut self, show: impl Fn(&str, Delta) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).on_delta = Some(Arc::new(show));
        self
    }

    /// Reads from a session how the turn ended that left it so, if it ended; see [`Steps::ended_by`].
    pub fn ended_by(mut self, end: impl Fn(&Session) -> Option<StopReason> + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).end = Some(Arc::new(end));
        self
    }

    /// The service named `agent`, to be bound to an endpoint of your own, and to be given time-outs and retentions.
    pub fn service(self) -> ServiceDefinition {
        Handlers { inner: self.inner, running: Running::default() }.into_service_definition()
    }

    /// Serves it alone, until the process is interrupted. The Restate server has to know the address:
    /// `POST /deployments` at its admin port.
    pub async fn serve(self, listener: TcpListener) {
        HttpServer::new(Endpoint::builder().bind(self.service()).build()).serve(listener).await;
    }
}

impl Inner {
    fn steps(&self, key: &str, session: Session, run: RunContext) -> Steps {
        let mut steps = Steps::new(self.agent.clone(), session, run);
        if let Some(show) = self.on_delta.clone() {
            let key = key.to_owned();
            steps = steps.on_delta(move |delta| show(&key, delta));
        }
        if let Some(end) = self.end.clone() {
            steps = steps.ended_by(move |session| end(session));
        }
        steps
    }
}

impl fmt::Debug for DurableAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableAgent").field("agent", self.inner.agent.info()).finish_non_exhaustive()
    }
}
