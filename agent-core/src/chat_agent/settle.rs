//! Calls: run, refused, asked about, or waiting.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use serde::{Deserialize, Serialize};
use tracing::Instrument;

use super::ChatAgent;
use crate::{
    ChatMessage, Content, Draft, Emitter, Error, Role, Session, StateChange, StopReason, ToolCall, ToolContext,
    ToolOutput, ToolResult,
    calls::{Answer, Asked, TrackedCall},
    error::describe,
    session::to_json,
    telemetry,
};

/// What a tool asked for beside its result, kept under `exit:<agent>` while calls beside it wait for approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    /// The request that it belongs to: new words forget it.
    turn: u64,
    pub(super) escalate: bool,
    pub(super) end_turn: bool,
}

/// A run's calls, from one answer to the next.
pub(super) struct Calls<'a> {
    pub(super) agent: &'a ChatAgent,
    pub(super) out: &'a Emitter,
    /// What tools asked for so far.
    pub(super) exit: Exit,
    /// Whether the state holds an exit record.
    recorded: bool,
}

/// What becomes of calls, in their order.
pub(super) struct Plan {
    todos: Vec<Todo>,
    /// Whether the caller was asked about any of them before.
    requested: bool,
}

enum Todo {
    Run(ToolCall),
    Refuse(ToolCall, String),
    Ask(ToolCall),
    Wait,
}

impl Todo {
    /// The call that gets its result now.
    fn settled_id(&self) -> Option<&str> {
        match self {
            Self::Run(call) | Self::Refuse(call, _) => Some(&call.id),
            Self::Ask(_) | Self::Wait => None,
        }
    }
}

impl<'a> Calls<'a> {
    pub(super) fn new(agent: &'a ChatAgent, out: &'a Emitter, session: &Session) -> Self {
        let turn = session.turn().number;
        let exit: Option<Exit> = session.get(&agent.exit_key);
        let exit = exit.filter(|exit| exit.turn == turn).unwrap_or(Exit { turn, ..Exit::default() });
        Self { agent, out, exit, recorded: session.state().contains_key(&*agent.exit_key) }
    }

    /// What is to become of these calls of the session.
    pub(super) fn plan<'m>(&self, session: &'m Session, calls: impl IntoIterator<Item = TrackedCall<'m>>) -> Plan {
        let start = session.turn().start;
        let mut requested = false;
        let todo = |call: TrackedCall<'m>| {
            requested |= call.requested;
            self.todo(call, start)
        };
        let todos = calls.into_iter().map(todo).collect();
        Plan { todos, requested }
    }

    /// Settles calls, in order. `None`: each has its result. Otherwise the run ends with that reason, which is
    /// `AwaitingApproval` while one of them waits.
    pub(super) async fn settle(&mut self, session: &mut Session, plan: Plan) -> Option<StopReason> {
        let Plan { todos, requested } = plan;
        let waits = todos.iter().any(|todo| matches!(todo, Todo::Ask(_) | Todo::Wait));
        // Of two calls of one id a result would be taken for the first, unless that one was asked about before.
        let settles = |id: &str| todos.iter().any(|todo| todo.settled_id() == Some(id));
        let ask_first = todos.iter().any(|todo| matches!(todo, Todo::Ask(call) if settles(&call.id)));
        let (mut questions, mut work) = (Vec::new(), Vec::<BoxFuture<'a, _>>::new());
        for todo in todos {
            match todo {
                Todo::Run(call) => work.push(self.run_tool(call, session).boxed()),
                Todo::Refuse(call, why) => work.push(std::future::ready((call, ToolOutput::error(why), None)).boxed()),
                Todo::Ask(call) => questions.push(call),
                Todo::Wait => (),
            }
        }
        if ask_first {
            self.ask(session, std::mem::take(&mut questions)).await;
        }
        let mut stop = None;
        let mut results = stream::iter(work).buffered(self.agent.options.tool_concurrency.get());
        while let Some((call, output, refused)) = results.next().await {
            stop = stop.or(refused);
            let draft = self.result(call, output, waits || requested);
            self.out.record(session, draft).await;
        }
        if stop.is_some() {
            return stop;
        }
        self.ask(session, questions).await;
        waits.then_some(StopReason::AwaitingApproval)
    }

    /// Asks the caller about calls, if there are any.
    async fn ask(&mut self, session: &mut Session, calls: Vec<ToolCall>) {
        if calls.is_empty() {
            return;
        }
        let mut draft =
            Draft::message(ChatMessage::new(Role::Assistant, calls.into_iter().map(Content::ApprovalRequest)));
        if let Some(change) = self.note_exit(true) {
            draft = draft.change(change);
        }
        self.out.record(session, draft).await;
    }

    /// Ends the run as its tools asked, and forgets that they did.
    pub(super) async fn leave(&mut self, session: &mut Session) -> StopReason {
        if self.recorded {
            let draft = Draft::default().remove(self.agent.exit_key.clone());
            self.recorded = false;
            self.out.record(session, if self.exit.escalate { draft.escalate() } else { draft }).await;
        }
        if self.exit.escalate { StopReason::Escalated } else { StopReason::Completed }
    }

    fn todo(&self, tracked: TrackedCall<'_>, turn_start: usize) -> Todo {
        let TrackedCall { call, message, requested, answer, .. } = tracked;
        let call = match call {
            Asked::Call(call) => call.clone(),
            Asked::Invalid { id, name, why } => {
                let why = format!("not run: the arguments of `{name}` could not be read: {why}");
                let (id, name) = (id.to_owned(), name.to_owned());
                return Todo::Refuse(ToolCall { id, name, arguments: serde_json::Value::Null }, why);
            }
        };
        match answer {
            Some(Answer { approved: true, .. }) => return Todo::Run(call),
            Some(Answer { approved: false, reason }) => {
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                return Todo::Refuse(call, format!("not run: the caller rejected it{reason}"));
            }
            None if message < turn_start => {
                return Todo::Refuse(call, "not run: the caller went on to something else".to_owned());
            }
            None if requested => return Todo::Wait,
            None => (),
        }
        match self.agent.find_tool(&call.name) {
            None => {
                let why = self.unknown(&call.name);
                Todo::Refuse(call, why)
            }
            Some(tool) if tool.spec().needs_approval => Todo::Ask(call),
            Some(_) => Todo::Run(call),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<String> = self.agent.specs.iter().map(|spec| format!("`{}`", spec.name)).collect();
        if known.is_empty() {
            format!("there is no tool named `{name}`; there are none")
        } else {
            format!("there is no tool named `{name}`; there are: {}", known.join(", "))
        }
    }

    /// One call with its hooks: its output, and why the run has to end if it was refused or interrupted.
    fn run_tool(
        &self,
        call: ToolCall,
        session: &Session,
    ) -> impl Future<Output = (ToolCall, ToolOutput, Option<StopReason>)> + Send + 'a {
        let agent = self.agent;
        let Some(tool) = agent.find_tool(&call.name) else {
            let why = self.unknown(&call.name);
            return std::future::ready((call, ToolOutput::error(why), None)).left_future();
        };
        let cx = ToolContext { call, session: session.clone(), run: self.out.cx().clone() };
        let span = telemetry::tool(&cx.call);
        let seen = span.clone();
        let work = async move {
            let run = cx.run.clone();
            if let Some(stop) = run.interruption() {
                return (cx.call, not_run(stop), Some(stop));
            }
            tokio::select! {
                biased;
                (output, refused) = with_hooks(agent, tool, &cx) => {
                    telemetry::called(&seen, &run, &cx.call, &output);
                    (cx.call, output, refused)
                }
                stop = run.interrupted() => {
                    telemetry::stopped(&seen, stop);
                    let why = format!("interrupted while it ran: {stop}; it may have taken effect");
                    (cx.call, ToolOutput::error(why), Some(stop))
                }
            }
        };
        work.instrument(span).right_future()
    }

    fn result(&mut self, call: ToolCall, output: ToolOutput, beside_requests: bool) -> Draft {
        let ToolOutput { contents, is_error, state, usage, escalate, end_turn } = output;
        let result = Content::ToolResult(ToolResult { call_id: call.id, contents, is_error });
        let mut draft = Draft::message(ChatMessage::new(Role::Tool, [result]));
        draft = state.into_iter().fold(draft, Draft::change);
        if let Some(usage) = usage {
            draft = draft.usage(usage);
        }
        if escalate {
            draft = draft.escalate();
        }
        self.exit.escalate |= escalate;
        self.exit.end_turn |= end_turn;
        match self.note_exit(beside_requests && (escalate || end_turn)) {
            Some(change) => draft.change(change),
            None => draft,
        }
    }

    /// The state change that keeps an exit beside calls that the caller was asked about, or forgets one of an earlier
    /// request.
    fn note_exit(&mut self, beside_requests: bool) -> Option<StateChange> {
        let key = || Arc::clone(&self.agent.exit_key);
        let asked = self.exit.escalate || self.exit.end_turn;
        if beside_requests && asked {
            self.recorded = true;
            return Some(StateChange::Set { key: key(), value: to_json(self.exit) });
        }
        if self.recorded && !asked {
            self.recorded = false;
            return Some(StateChange::Remove { key: key() });
        }
        None
    }
}

async fn with_hooks(agent: &ChatAgent, tool: &dyn crate::Tool, cx: &ToolContext) -> (ToolOutput, Option<StopReason>) {
    for hook in &agent.hooks {
        match hook.before_tool(cx).await {
            Ok(None) => (),
            Ok(Some(output)) => return (output, None),
            Err(error) => return (failed(&error), None),
        }
    }
    if let Err(stop) = cx.run.take_tool_call() {
        return (not_run(stop), Some(stop));
    }
    let mut output = match tool.call(cx.clone()).await {
        Ok(output) => output,
        Err(error) => ToolOutput::error(describe(&*error)),
    };
    for hook in &agent.hooks {
        if let Err(error) = hook.after_tool(cx, &mut output).await {
            return (ToolOutput { usage: output.usage, ..failed(&error) }, None); // what it used is used
        }
    }
    (output, None)
}

fn failed(error: &Error) -> ToolOutput {
    ToolOutput::error(format!("{error:#}"))
}

fn not_run(stop: StopReason) -> ToolOutput {
    ToolOutput::error(format!("not run: {stop}"))
}
