//! One turn of a session: its steps, its waits, its end. It knows a journal, and no engine.

use std::sync::Arc;

use agent_core::{AgentResponse, ChatMessage, Error, Event, LoopStep, Result, Step, StopReason, ToolCall};
use futures::future::BoxFuture;

use super::{
    live::Live,
    types::{Answer, Reply, Status},
};

/// Why the journal gives no result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failure {
    /// The turn is cancelled. Told once.
    Cancelled,
    /// The step failed for good.
    Failed { code: u16, message: String },
}

/// What is asked of the steps.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    /// The caller says this.
    Say(ChatMessage),
    /// Next.
    Next,
}

/// Asks the steps. A step that would make the session too large to be stored is an error, so that the turn ends while
/// what it did can be kept.
pub(super) async fn ask(live: Arc<Live>, asked: Ask) -> Result<Step> {
    let step = live.ask(async |steps| match asked {
        Ask::Say(message) => steps.say(message),
        Ask::Next => steps.next().await,
    });
    let step = step.await?;
    live.check(&step).await?;
    Ok(step)
}

/// What a turn needs of an engine.
pub(super) trait Journal: Send {
    /// The step of this name: the journal's, or what [`ask`] gives, then kept.
    fn take<'a>(&'a mut self, name: String, live: &'a Arc<Live>, asked: Ask) -> BoxFuture<'a, Result<Step, Failure>>;

    /// Shows the status, and waits for the answer to one of its approvals.
    fn answer<'a>(&'a mut self, status: &'a Status) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// Shows the status.
    fn show(&mut self, status: &Status);
}

/// Lets the caller speak, or not, and the agent run until it neither can go on nor waits.
pub(super) async fn turn(
    journal: &mut dyn Journal,
    live: &Arc<Live>,
    words: Option<ChatMessage>,
) -> Result<Reply, Failure> {
    let mut turn = Turn { journal, live, number: 0, events: Vec::new(), status: Status::default(), cancelled: false };
    let end = turn.run(words).await;
    let Turn { journal, mut status, events, .. } = turn;
    status.approvals = live.session().await.open_approvals();
    match &end {
        Ok(stop) => status.stop = Some(*stop),
        Err(Failure::Cancelled) => status.stop = Some(StopReason::Cancelled),
        Err(Failure::Failed { message, .. }) => status.error = Some(message.clone()),
    }
    journal.show(&status);
    let stop = end?;
    let usage = events.iter().filter_map(|event| event.usage).sum();
    let response = AgentResponse { events, usage, stop };
    Ok(Reply { stop, text: response.text(), usage })
}

struct Turn<'a> {
    journal: &'a mut dyn Journal,
    live: &'a Arc<Live>,
    /// How many steps were asked for.
    number: u32,
    events: Vec<Event>,
    status: Status,
    cancelled: bool,
}

impl Turn<'_> {
    async fn run(&mut self, words: Option<ChatMessage>) -> Result<StopReason, Failure> {
        self.journal.show(&self.status);
        if let Some(words) = words {
            self.take(Ask::Say(words)).await?;
        }
        loop {
            let step = match self.take(Ask::Next).await {
                Err(Failure::Cancelled) if !self.cancelled => {
                    // The run ends by itself now, and closes what is open.
                    self.live.cancel().await;
                    self.cancelled = true;
                    continue;
                }
                taken => taken?,
            };
            match step {
                Step::Event { event, .. } => self.see(event),
                Step::Done { stop: StopReason::AwaitingApproval, .. } if !self.cancelled => {
                    let Some(answer) = self.answer().await? else { return Ok(StopReason::Cancelled) };
                    self.take(Ask::Say(answer.into())).await?;
                }
                Step::Done { stop, .. } => return Ok(stop),
            }
        }
    }

    /// The next step, accepted.
    async fn take(&mut self, asked: Ask) -> Result<Step, Failure> {
        let name = match asked {
            Ask::Say(_) => format!("words {}", self.number),
            Ask::Next => format!("event {}", self.number),
        };
        self.number += 1;
        let step = self.journal.take(name, self.live, asked).await;
        self.live.accept(step.as_ref().ok()).await;
        step
    }

    fn see(&mut self, event: Event) {
        let mut moved = false;
        for LoopStep { name, iteration } in event.path.iter() {
            let known = self.status.iterations.iter_mut().find(|known| known.name == *name);
            moved |= known.as_ref().is_none_or(|known| known.iteration != *iteration);
            match known {
                Some(known) => known.iteration = *iteration,
                None => self.status.iterations.push(LoopStep { name: name.clone(), iteration: *iteration }),
            }
        }
        if moved {
            self.journal.show(&self.status);
        }
        self.events.push(event);
    }

    /// The next answer to a call that is open; none if the turn is cancelled before.
    async fn answer(&mut self) -> Result<Option<Answer>, Failure> {
        let open = self.live.session().await.open_approvals();
        self.status.approvals.clone_from(&open);
        let is_open = |answer: &Answer| open.iter().any(|call: &ToolCall| call.id == answer.call_id);
        loop {
            match self.journal.answer(&self.status).await {
                Ok(answer) if is_open(&answer) => {
                    self.status.approvals.retain(|call| call.id != answer.call_id);
                    self.journal.show(&self.status);
                    return Ok(Some(answer));
                }
                Ok(_) => (), // to a call that was closed without it
                Err(Failure::Cancelled) => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// Why an answer to this call finds nobody who waits for it; `waiting` are the calls whose answers are waited for.
pub(super) fn nobody_waits(call_id: &str, status: &Status, waiting: &[&str]) -> String {
    if status.approvals.iter().any(|call| call.id == call_id) {
        return format!(
            "answer to `{call_id}`, which is open, but its turn has ended; `say` a message with the answer"
        );
    }
    let open = waiting.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>();
    let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
    format!("answer to `{call_id}`, which does not wait for one; those that do: {open}")
}

/// An error for good, as the caller is told it: with a status of HTTP.
pub(super) fn failure(error: &Error) -> Failure {
    use agent_core::ErrorKind as Kind;
    let code = match error.kind() {
        Kind::Invalid | Kind::Template => 400,
        Kind::Unsupported => 501,
        Kind::Provider => 502,
        _ => 500,
    };
    Failure::Failed { code, message: format!("{error:#}") }
}
