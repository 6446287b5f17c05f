//! Runs that survive machines, on Restate.

mod handlers;
mod live;
mod parts;
#[cfg(test)]
mod tests;
mod turn;
mod types;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Agent, Delta, Limits, RunContext, Session, Steps, StopReason};
use restate_sdk::prelude::{Endpoint, HttpServer, IntoServiceDefinition, RunRetryPolicy, ServiceDefinition};
use tokio::net::TcpListener;

pub use self::types::{Rejection, Reply, Status, Words};
use self::{handlers::Handlers, live::Lives};

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

/// An agent whose sessions are keyed objects of a [Restate](https://restate.dev) server: runs that survive machines.
///
/// ```no_run
/// use agent_core::{ChatAgent, ChatAgentOptions};
/// use agent_providers::{DurableAgent, DurableOptions, OpenAi};
/// use tokio::net::TcpListener;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clerk = ChatAgent::new("clerk", OpenAi::from_env()?, ChatAgentOptions::default());
/// let listener = TcpListener::bind("127.0.0.1:9080").await?;
/// DurableAgent::new(clerk, DurableOptions::default()).serve(listener).await;
/// # Ok(())
/// # }
/// ```
///
/// The process is a worker: any number of them, of one address or behind a balancer, serve the same sessions. A client
/// talks to the server's ingress, `POST /agent/KEY/HANDLER` with JSON:
///
/// | handler | takes | gives |
/// |---|---|---|
/// | `say` | [`Words`]: a text or a message; `null` goes on | [`Reply`], at the end of the turn; `…/say/send` does not wait |
/// | `status` | | [`Status`]: how the turn ended, the loops' iterations, what waits for approval |
/// | `approve` | a call's id | |
/// | `reject` | [`Rejection`]: a call's id, and why not | |
/// | `cancel` | | whether there was a turn to cancel |
/// | `session` | | the [`Session`] as the last turn left it |
///
/// One turn of a session runs at a time; further words wait for it, also where it waits for an approval: answer or cancel
/// it first. The other handlers may be called at any time. Of several answers to one call the first counts.
///
/// # What is journaled
///
/// **One event is one entry**: the agent runs to its next event ([`Steps`]), and Restate keeps it before the agent goes on.
/// After a crash another worker applies the entries, runs nothing, and lets the agent go on from the session. Between the
/// steps of a turn the run is kept in memory, so a step costs one entry and no start. Why an event: it is the smallest cut
/// after which an agent may stop. One entry for each model or tool call would need every client and tool wrapped, and
/// would know nothing of calls that run at once; one for each iteration would repeat a model's work.
///
/// | | how often |
/// |---|---|
/// | an event, a finished iteration, the caller's words, an answer | exactly once |
/// | a model call, a tool's effect | at least once: again only if the process was lost between the effect and its entry |
/// | pieces of text ([`on_delta`](Self::on_delta)) | at most once: they are in no entry |
///
/// An agent's run has an end of its own, an entry after its last event. A process that is lost between the two leaves a
/// finished run that looks interrupted; [`ended_by`](Self::ended_by) tells them apart. Give it for loops:
/// `.ended_by(|session| LoopOutcome::stop_of_turn(session, "my loop"))`, only where the loop is the outermost agent.
///
/// **An approval** suspends the invocation on an awakeable, one for each call: nothing waits in the worker, however long it
/// takes, and calls may be answered one by one. **A cancellation** lets the run end by itself, so that each call has a
/// result and a loop its record; at once in the worker that gets it, else after the step that is under way. A turn that is
/// cancelled while it waits ends where it is: the calls stay open, and the next `say` may bring the answers, as a message.
///
/// # What is kept
///
/// Each turn is an invocation with a journal of its own, so a journal grows with its turn, not with the conversation;
/// the server drops it a day after the turn (its `journal-retention`). The session is in the object's own state,
/// written at the end of a turn, also of one that failed: a head (state, turn) and the messages in pieces of 64 KiB. So
/// no value comes near the server's limit of 32 MiB for one message, whatever the conversation's length, and a turn
/// writes what it said and the last piece, not the history again. A step that would bring the messages over 64 MiB, or
/// that is itself over 15 MiB, fails before it is kept, and ends the turn; so does a state of that size. A key for each
/// event would make as many entries as a long session has events, at each start of a turn; one value for all would
/// write the whole history each turn. A turn that is taken up finds the pieces in its journal: they are read once,
/// lazily. An administrator's *kill*, unlike `cancel`, ends a turn without storing it.
///
/// # Limits and errors
///
/// [`DurableOptions::limits`] bind one turn as a whole: each entry carries what was spent, so neither a replay nor a wait
/// resets them, and time counts only while an agent is at work. What a lost process spent after its last entry is not
/// counted; that is one step for each crash or try. Hooks that count in a run's scratch count within a process.
///
/// A [transient](agent_core::Error::is_transient) error is tried again, [`DurableOptions::attempts`] times in all, each time
/// from the session as it stands; any other ends the turn at once, and the caller gets its text with a status: 400 for
/// what it said wrong, 502 for a model service, 501 for what is not supported, else 500. A worker that cannot be reached is
/// the server's to try again (`default-retry-policy`: 70 times, then the invocation is paused, and an administrator
/// resumes it).
///
/// After ten minutes without a step (`inactivity_timeout` of `say`) the server suspends an invocation. If a step is under
/// way, it is finished first, and its run stands still in its worker until the invocation comes back, which it does at
/// once. If it comes back to another worker, the agent begins from the session there: a pass whose answer is in the journal,
/// and whose end is not, is asked again. So raise the time-out, with [`service`](Self::service), where single calls take
/// that long and a balancer has several workers.
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

    /// Reads from a session how its current turn ended, if it ended; see [`Steps::ended_by`].
    pub fn ended_by(mut self, end: impl Fn(&Session) -> Option<StopReason> + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).end = Some(Arc::new(end));
        self
    }

    /// The service named `agent`, to be bound to an endpoint of your own, and to be given time-outs and retentions. Restate's
    /// SDK fixes a service's name when it is compiled, so a server has one such service: where agents differ, let one agent
    /// choose by the session, or run a server for each.
    pub fn service(self) -> ServiceDefinition {
        Handlers { inner: self.inner, lives: Lives::default() }.into_service_definition()
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
