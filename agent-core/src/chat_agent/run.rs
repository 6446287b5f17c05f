//! A run of a chat agent.

use std::pin::pin;

use futures_util::StreamExt;
use tracing::Instrument;

use super::{
    ChatAgent,
    settle::Calls,
    transcript::{Window, transcript},
};
use crate::{
    ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Draft, Emitter, Error, ErrorKind, Result, Role,
    Session, StopReason,
    calls::{CallLog, TrackedCall, check_answers},
    telemetry,
};

pub(super) async fn run(agent: &ChatAgent, session: &mut Session, out: Emitter) -> Result<StopReason> {
    check_tools(agent)?;
    let mut calls = Calls::new(agent, &out, session);
    let (window, plan) = {
        let open = open_calls(agent, session)?;
        let window = Window::of(agent.options.history, session, open.iter().map(|call| call.message));
        (window, calls.plan(session, open))
    };
    if let Some(stop) = calls.settle(session, plan).await {
        return Ok(stop);
    }
    for turn in 1..=agent.options.max_turns.get() {
        if calls.exit.end_turn {
            return Ok(calls.leave(session).await);
        }
        let answer = match ask(agent, session, &out, &window, turn).await? {
            Ok(answer) => answer,
            Err(stop) => return Ok(stop),
        };
        let stop = answer.stop;
        let (asked, thoughts_only) = (answer.message.has_calls(), is_only_thoughts(&answer));
        record(agent, session, &out, answer).await;
        if asked {
            let plan = calls.plan(session, new_calls(session));
            if let Some(stop) = calls.settle(session, plan).await {
                return Ok(stop);
            }
        } else if !thoughts_only {
            return Ok(if calls.exit.escalate { calls.leave(session).await } else { stop });
        }
    }
    let left = calls.exit.end_turn || calls.exit.escalate;
    Ok(if left { calls.leave(session).await } else { StopReason::TurnLimit })
}

/// What the run has to settle first: this agent's calls, and nobody's. Parallel branches share a session.
fn open_calls<'m>(agent: &ChatAgent, session: &'m Session) -> Result<Vec<TrackedCall<'m>>> {
    let log = CallLog::of(session.messages());
    check_answers(session, &log)?;
    let mine = |call: &TrackedCall<'_>| call.author.is_none_or(|author| author == agent.info.name);
    Ok(log.unsettled().filter(mine).collect())
}

/// The calls of the answer that was just recorded.
fn new_calls(session: &Session) -> impl Iterator<Item = TrackedCall<'_>> {
    let at = session.messages().len() - 1;
    let calls = CallLog::of(&session.messages()[at..]).calls;
    calls.into_iter().map(move |call| TrackedCall { message: at + call.message, ..call })
}

/// Asks the model: its answer, or why it was not asked or not heard.
async fn ask(
    agent: &ChatAgent,
    session: &mut Session,
    out: &Emitter,
    window: &Window,
    turn: u32,
) -> Result<Result<ChatResponse, StopReason>> {
    let cx = out.cx();
    if let Err(stop) = cx.check() {
        return Ok(Err(stop));
    }
    let mut request = request(agent, session, out, window)?;
    for hook in &agent.hooks {
        hook.before_model(&mut request, cx).await?;
    }
    if let Err(stop) = cx.take_model_call() {
        return Ok(Err(stop));
    }
    let span = telemetry::chat(&*agent.client, turn, cx, &request);
    let mut answer = match listen(agent, out, request).instrument(span.clone()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(stop)) => {
            telemetry::stopped(&span, stop);
            return Ok(Err(stop));
        }
        Err(error) => {
            telemetry::failed(&span, &error);
            return Err(error);
        }
    };
    telemetry::answered(&span, cx, &answer);
    drop(span);
    cx.spend(answer.usage);
    for hook in &agent.hooks {
        if let Err(error) = hook.after_model(&mut answer, cx).await {
            out.record(session, Draft::default().usage(answer.usage)).await;
            return Err(error);
        }
    }
    Ok(Ok(answer))
}

fn request(agent: &ChatAgent, session: &Session, out: &Emitter, window: &Window) -> Result<ChatRequest> {
    let mut options = agent.options.chat.clone();
    if let Some(format) = out.cx().format() {
        options.format = format.clone();
    }
    Ok(ChatRequest {
        instructions: agent.options.instructions.render(session)?,
        messages: transcript(session.messages(), &agent.info.name, window),
        tools: agent.specs.clone(),
        options,
    })
}

/// Forwards an answer's deltas until it is whole, or the run is interrupted.
async fn listen(agent: &ChatAgent, out: &Emitter, request: ChatRequest) -> Result<Result<ChatResponse, StopReason>> {
    let mut answer = agent.client.stream(request);
    let mut interrupted = pin!(out.cx().interrupted());
    loop {
        let update = tokio::select! {
            biased;
            stop = &mut interrupted => return Ok(Err(stop)),
            update = answer.next() => update,
        };
        match update {
            Some(Ok(ChatUpdate::Delta(delta))) => out.delta(delta).await,
            Some(Ok(ChatUpdate::Done(response))) => return Ok(Ok(response)),
            Some(Err(error)) => return Err(error),
            None => {
                let context =
                    format!("model `{}` stopped without saying that its answer is whole", agent.client.model());
                return Err(Error::new(ErrorKind::Contract, context));
            }
        }
    }
}

async fn record(agent: &ChatAgent, session: &mut Session, out: &Emitter, answer: ChatResponse) {
    let ChatResponse { message, usage, .. } = answer;
    let text = match &agent.output_key {
        Some(key) if !message.has_calls() => Some((key, message.text())).filter(|(_, text)| !text.is_empty()),
        _ => None,
    };
    let author = Some(agent.author.clone());
    let mut draft = Draft::message(ChatMessage { role: Role::Assistant, author, contents: message.contents });
    draft = draft.usage(usage);
    if let Some((key, text)) = text {
        draft = draft.set(key.clone(), text);
    }
    out.record(session, draft).await;
}

/// Thoughts that ran into the output limit would do so again, so only a completed answer counts.
fn is_only_thoughts(answer: &ChatResponse) -> bool {
    let contents = &answer.message.contents;
    let thought = |content: &Content| matches!(content, Content::Reasoning { .. } | Content::Native { .. });
    answer.stop == StopReason::Completed && !contents.is_empty() && contents.iter().all(thought)
}

fn check_tools(agent: &ChatAgent) -> Result<()> {
    let names = agent.specs.iter().map(|spec| &spec.name);
    let twice = names.clone().enumerate().find(|(at, name)| names.clone().take(*at).any(|other| other == *name));
    match twice {
        None => Ok(()),
        Some((_, name)) => {
            let context = format!("agent `{}` has two tools named `{name}`; rename one", agent.info.name);
            Err(Error::new(ErrorKind::Invalid, context))
        }
    }
}
