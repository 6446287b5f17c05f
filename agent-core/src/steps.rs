//! A session, step by step, for engines that keep a journal.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use tracing::Span;
use uuid::Uuid;

use crate::{
    Agent, ChatMessage, Delta, Event, Result, RunContext, Session, Spent, StopReason, Update, Updates,
    calls::{CallLog, check_answers},
    emitter::{next_update, updates_in},
};

/// What one step of a session came to: what an engine writes into its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Something was recorded.
    Event {
        /// What.
        event: Event,
        /// What the run had spent by then.
        spent: Spent,
    },
    /// The agent's run ended.
    Done {
        /// Why.
        stop: StopReason,
        /// What the run had spent by then.
        spent: Spent,
    },
}

impl Step {
    /// What the run had spent by then.
    pub fn spent(&self) -> Spent {
        match self {
            Self::Event { spent, .. } | Self::Done { spent, .. } => *spent,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Event { event, .. }, Self::Event { event: other, .. }) => event.id == other.id,
            (Self::Done { .. }, Self::Done { .. }) => self == other,
            (Self::Event { .. }, Self::Done { .. }) | (Self::Done { .. }, Self::Event { .. }) => false,
        }
    }
}

/// A session and the agent that continues it, one step at a time: the seam for engines that keep a journal, such as
/// durable execution, or a queue of work in a database.
///
/// [`next`](Self::next) runs the agent up to its next event and hands that out. The engine makes it durable, and says
/// so with [`accept`](Self::accept). Between the two, and until `next` is called again, the agent does not move, so its
/// code after an event stands on committed ground. Between steps its run is kept; no step costs a new start.
///
/// Where the process is lost, a new one makes `Steps` of the same first session and accepts the steps of the journal:
/// they are applied, and nothing runs. `next` then lets the agent go on from the session, which is what agents do in any
/// case. What it did after the last step in the journal, it does again: a tool's effect **at least once**, what is
/// accepted exactly once.
///
/// An engine that runs a closure unless its journal has the result writes just this:
///
/// ```
/// use agent_core::{Agent, Result, RunContext, Session, Step, Steps, StopReason};
///
/// /// A journal in memory: the closure runs only if there is no entry yet.
/// #[derive(Default)]
/// struct Journal {
///     entries: Vec<String>, // JSON
///     read: usize,
/// }
///
/// impl Journal {
///     async fn run(&mut self, step: impl Future<Output = Result<Step>>) -> Result<Step> {
///         if self.read == self.entries.len() {
///             self.entries.push(serde_json::to_string(&step.await?).expect("a step is JSON"));
///         }
///         self.read += 1;
///         Ok(serde_json::from_str(&self.entries[self.read - 1]).expect("an entry is a step"))
///     }
/// }
///
/// async fn turn(journal: &mut Journal, agent: impl Agent + 'static, words: &str) -> Result<(StopReason, Session)> {
///     let mut steps = Steps::new(agent, Session::new(), RunContext::default());
///     let said = journal.run(async { steps.say(words) }).await?;
///     steps.accept(&said);
///     loop {
///         let step = journal.run(steps.next()).await?;
///         steps.accept(&step);
///         if let Step::Done { stop, .. } = step {
///             return Ok((stop, steps.session().clone()));
///         }
///     }
/// }
///
/// # use agent_core::{ChatAgent, testing::{ScriptedAgent, ScriptedClient}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let mut journal = Journal::default();
/// let agent = ChatAgent::new("greeter", ScriptedClient::new().says("Hello!"), Default::default());
/// let first = turn(&mut journal, agent, "Hi").await?;
///
/// // Another process with the same journal: this agent would fail if it were run.
/// journal.read = 0;
/// assert_eq!(turn(&mut journal, ScriptedAgent::new("greeter"), "Hi").await?, first);
/// assert_eq!(journal.entries.len(), 3); // the words, the answer, the end
/// # Ok(())
/// # }
/// ```
///
/// # Limits
/// Each step carries what the run had [spent](Step::spent), so the run's [`Limits`](crate::Limits) bind it as a whole,
/// across processes and across the pauses between a suspended run and the next; time counts only while a run is at work.
/// What was spent after the last step in the journal is forgotten with the process: the engine bounds that by the
/// number of its retries. All steps carry one run id. What hooks keep in [`RunContext::scratch`] is a process's own.
///
/// # Cost
/// The session is held twice while a run is alive, as the agent sees it and as it is committed: one copy of the state
/// and of the history's pointers for each run, and each event is applied twice.
pub struct Steps {
    agent: Arc<dyn Agent>,
    /// What the accepted steps come to.
    session: Session,
    cx: RunContext,
    /// What was spent when the last run stopped.
    spent: Spent,
    run: Option<Updates<'static>>,
    /// Handed out and not accepted yet.
    handed: Option<Step>,
    on_delta: Option<Box<dyn FnMut(Delta) + Send>>,
    end: Option<Box<EndOf>>,
    /// Whether the last accepted step is an agent's event.
    recorded: bool,
}

/// How a run ended, read from the session that its last event left.
type EndOf = dyn Fn(&Session) -> Option<StopReason> + Send;

impl Steps {
    /// The steps of this agent on this session, which is as it was before the journal begins.
    pub fn new(agent: impl Agent + 'static, session: Session, cx: RunContext) -> Self {
        let (agent, spent) = (Arc::new(agent), cx.spent());
        Self { agent, session, cx, spent, run: None, handed: None, on_delta: None, end: None, recorded: false }
    }

    /// Shows the pieces of what is being written to this function. They are never in a step, and a step from the journal
    /// has none.
    pub fn on_delta(mut self, show: impl FnMut(Delta) + Send + 'static) -> Self {
        self.on_delta = Some(Box::new(show));
        self
    }

    /// Reads from a session how its current [turn](Session::turn) ended, if it ended: asked where a run is taken up after
    /// an event of another process. Without it, a process that is lost between a run's last event and its end lets a
    /// finished run begin anew; a loop's outcome, for one, says that there is nothing left to do. It must not tell the
    /// end of an earlier turn, nor that of a part of the agent: either would end the turn early. For a loop that is the
    /// outermost agent, `LoopOutcome::stop_of_turn` does it.
    pub fn ended_by(mut self, end: impl Fn(&Session) -> Option<StopReason> + Send + 'static) -> Self {
        self.end = Some(Box::new(end));
        self
    }

    /// Runs the agent to its next event, or to its end. A step that is not accepted yet is handed out again, and nothing
    /// moves. After an end or an error, the agent is run anew: it goes on from the session.
    ///
    /// It may be dropped while it waits, and asked again: nothing is lost.
    ///
    /// # Errors
    /// The run's. The session is as the last accepted step left it.
    pub async fn next(&mut self) -> Result<Step> {
        if let Some(step) = &self.handed {
            return Ok(step.clone());
        }
        if self.run.is_none()
            && self.recorded
            && let Some(stop) = self.end.as_ref().and_then(|end| end(&self.session))
        {
            return Ok(self.handed.insert(Step::Done { stop, spent: self.spent }).clone());
        }
        let run = self.run.get_or_insert_with(|| {
            self.cx = self.cx.taken_up(self.cx.id(), self.spent); // time begins
            begin(self.agent.clone(), self.session.clone(), self.cx.clone())
        });
        let step = loop {
            let update = next_update(run).await;
            let spent = self.cx.spent();
            match update {
                Ok(Update::Event(event)) => break Step::Event { event, spent },
                Ok(Update::Done(stop)) => break Step::Done { stop, spent },
                Ok(Update::Delta(delta)) => {
                    if let Some(show) = &mut self.on_delta {
                        show(delta);
                    }
                }
                Err(error) => {
                    self.take_up(self.cx.id(), spent);
                    return Err(error);
                }
            }
        };
        Ok(self.handed.insert(step).clone())
    }

    /// The caller speaks: the next step is an event by [`Event::CALLER`]. It ends a run that is under way, and a step
    /// that was handed out and not accepted is forgotten.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the message answers an approval request that is not open. No step is
    /// handed out then.
    pub fn say(&mut self, message: impl Into<ChatMessage>) -> Result<Step> {
        let event = Event::by_caller(message.into(), &self.cx);
        let mut session = self.session.clone();
        session.apply(&event);
        check_answers(&session, &CallLog::of(session.messages()))?;
        if self.run.is_some() {
            self.take_up(self.cx.id(), self.cx.spent());
        }
        Ok(self.handed.insert(Step::Event { event, spent: self.spent }).clone())
    }

    /// The step is in the journal. One that was not handed out here comes from another process: it is applied, and a run
    /// that is under way here, on other ground, is dropped.
    pub fn accept(&mut self, step: &Step) {
        let is_known = self.handed.take().is_some_and(|handed| handed.is(step));
        self.recorded = false;
        if let Step::Event { event, .. } = step {
            self.session.apply(event);
            self.recorded = &*event.author != Event::CALLER;
        }
        match step {
            Step::Event { .. } if is_known => (),
            Step::Event { event, spent } => self.take_up(event.run, *spent),
            Step::Done { spent, .. } => self.take_up(self.cx.id(), *spent),
        }
    }

    /// The session as the accepted steps left it.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether a run is under way here: it stands where it handed out its last step.
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// The context of the run: another one for each run, with the cancellation of the one that the steps were made with.
    pub fn cx(&self) -> &RunContext {
        &self.cx
    }

    /// Without a run, time stands still.
    fn take_up(&mut self, run: Uuid, spent: Spent) {
        (self.run, self.spent) = (None, spent);
        self.cx = self.cx.taken_up(run, spent);
    }
}

/// A run that owns what it works on.
fn begin(agent: Arc<dyn Agent>, mut session: Session, cx: RunContext) -> Updates<'static> {
    let author: Arc<str> = agent.info().name.as_str().into();
    let context = cx.clone();
    updates_in(
        Span::none(),
        author,
        &context,
        |out| async move { out.relay(agent.run(&mut session, &cx), |_| ()).await },
    )
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("agent", self.agent.info()).field("cx", &self.cx).finish_non_exhaustive()
    }
}
