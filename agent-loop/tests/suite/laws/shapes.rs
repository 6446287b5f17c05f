//! Random agents: loops, sequences and parallels of chat agents over a model that improvises.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, ChatRequest, ChatResponse, ChatUpdate, Content, Delta,
    History, ParallelAgent, Result, Role, SequentialAgent, StopReason, ToolContext, ToolOutput, exit_loop,
    testing::PairingClient, tool_fn,
};
use agent_loop::{LoopAgent, UntilEscalated, any_of, at_most};
use futures::{StreamExt, stream, stream::BoxStream};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value;

use crate::support::{cap, fresh, tokens, tool_call, until};

#[derive(Debug, Clone)]
pub(super) enum Shape {
    Chat { moves: Vec<(Move, u64)>, current_turn: bool },
    Sequence { stages: Vec<Shape>, finally: bool },
    Parallel(Vec<Shape>),
    Loop { inner: Box<Shape>, max: u32, fresh: bool, good: Option<u32> },
}

/// What a model answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    Say,
    Think,
    Look,
    Pay,
    LookAndPay,
    PayTwice,
    Exit,
    ExitAndPay,
    Unknown,
    Unreadable,
}

/// What the caller does about a call that waits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Answer {
    #[default]
    Approve,
    Reject,
    LeaveOpen,
    SpeakOn,
    ApproveAndSpeakOn,
}

pub(super) fn answers() -> impl Strategy<Value = Vec<Answer>> {
    use Answer::{Approve, ApproveAndSpeakOn, LeaveOpen, Reject, SpeakOn};
    vec(select(vec![Approve, Approve, Reject, LeaveOpen, SpeakOn, ApproveAndSpeakOn]), 0..6)
}

/// A loop around anything.
pub(super) fn looped() -> impl Strategy<Value = Shape> {
    shape().prop_flat_map(around)
}

fn shape() -> impl Strategy<Value = Shape> {
    use Move::{Exit, ExitAndPay, Look, LookAndPay, Pay, PayTwice, Say, Think, Unknown, Unreadable};
    let step = select(vec![Say, Say, Think, Look, Pay, LookAndPay, PayTwice, Exit, ExitAndPay, Unknown, Unreadable]);
    let chat = (vec((step, 0..3_u64), 0..5), prop::bool::weighted(0.2))
        .prop_map(|(moves, current_turn)| Shape::Chat { moves, current_turn });
    chat.prop_recursive(3, 6, 3, |inner| {
        prop_oneof![
            (vec(inner.clone(), 1..3), any::<bool>()).prop_map(|(stages, finally)| Shape::Sequence { stages, finally }),
            vec(inner.clone(), 1..3).prop_map(Shape::Parallel),
            inner.prop_flat_map(around),
        ]
    })
}

fn around(inner: Shape) -> impl Strategy<Value = Shape> {
    (1..4_u32, any::<bool>(), prop::option::weighted(0.8, 1..4_u32)).prop_map(move |(max, fresh, good)| Shape::Loop {
        inner: Box::new(inner.clone()),
        max,
        fresh,
        good,
    })
}

impl Shape {
    pub(super) fn agent(&self) -> Box<dyn Agent> {
        self.named(&mut (0..))
    }

    fn named(&self, names: &mut impl Iterator<Item = u32>) -> Box<dyn Agent> {
        let number = names.next().unwrap();
        match self {
            Self::Chat { moves, current_turn } => {
                let name = format!("chat{number}");
                let client = Improviser { name: name.clone(), moves: moves.clone(), asked: Arc::default() };
                let history = if *current_turn { History::CurrentTurn } else { History::Full };
                let options = ChatAgentOptions { history, ..ChatAgentOptions::default() };
                let tool = |name| {
                    tool_fn(name, "Does it.", |_: Value, cx: ToolContext| async move {
                        Ok(ToolOutput::text("done").append(cx.call.name, cx.call.id))
                    })
                };
                let agent = ChatAgent::new(name, PairingClient::new(client), options);
                Box::new(agent.tool(tool("look")).tool(tool("pay").needs_approval()).tool(exit_loop()))
            }
            Self::Sequence { stages, finally } => {
                let agents: Vec<_> = stages.iter().map(|stage| stage.named(names)).collect();
                let last = agents.len() - 1;
                let sequence = SequentialAgent::new(format!("sequence{number}"));
                Box::new(agents.into_iter().enumerate().fold(sequence, |sequence, (at, agent)| {
                    if *finally && at == last { sequence.finally(agent) } else { sequence.then(agent) }
                }))
            }
            Self::Parallel(branches) => {
                let parallel = ParallelAgent::new(format!("parallel{number}"));
                Box::new(branches.iter().fold(parallel, |parallel, branch| parallel.branch(branch.named(names))))
            }
            Self::Loop { inner, max, fresh: forgets, good } => {
                let options = if *forgets { fresh(*max) } else { cap(*max) };
                let agent = LoopAgent::new(format!("loop{number}"), inner.named(names), options);
                Box::new(match good {
                    Some(good) => agent.evaluator(any_of("good", [until(*good)])),
                    None => agent.evaluator(at_most(2, UntilEscalated)),
                })
            }
        }
    }
}

/// A model that makes its moves in turn and then only talks.
struct Improviser {
    name: String,
    moves: Vec<(Move, u64)>,
    asked: Arc<AtomicUsize>,
}

impl ChatClient for Improviser {
    fn model(&self) -> &'static str {
        "improviser"
    }

    fn stream(&self, _: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let number = self.asked.fetch_add(1, SeqCst);
        let (step, delay) = self.moves.get(number).copied().unwrap_or((Move::Say, 0));
        // Ids are reused by the next answer, as some services do.
        let id = |part: u32| format!("{}-{}-{part}", self.name, number / 2);
        let unreadable = || Content::InvalidToolCall {
            id: id(1),
            name: "look".to_owned(),
            raw: "{\"a\":".to_owned(),
            why: "cut".to_owned(),
        };
        let contents = match step {
            Move::Say => vec![Content::Text(format!("said {number}"))],
            Move::Think => vec![Content::Reasoning { text: "hm".to_owned(), signature: None }],
            Move::Look => vec![tool_call(&id(1), "look")],
            Move::Pay => vec![tool_call(&id(1), "pay")],
            Move::LookAndPay => vec![tool_call(&id(1), "look"), tool_call(&id(2), "pay")],
            Move::PayTwice => vec![tool_call(&id(1), "pay"), tool_call(&id(2), "pay")],
            Move::Exit => vec![tool_call(&id(1), "exit_loop")],
            Move::ExitAndPay => vec![tool_call(&id(1), "exit_loop"), tool_call(&id(2), "pay")],
            Move::Unknown => vec![tool_call(&id(1), "no_such_tool")],
            Move::Unreadable => vec![unreadable(), tool_call(&id(2), "look")],
        };
        let message = ChatMessage::new(Role::Assistant, contents);
        let text = message.text();
        let done =
            ChatResponse { message, usage: tokens(3, 1), stop: StopReason::Completed, model: self.model().to_owned() };
        let delta = (!text.is_empty()).then_some(Ok(ChatUpdate::Delta(Delta::Text(text))));
        let waits = stream::once(async move {
            if delay > 0 {
                tokio::time::sleep(Duration::from_millis(delay)).await;
            }
        });
        let answer = stream::iter(delta.into_iter().chain([Ok(ChatUpdate::Done(done))]));
        waits.filter_map(|()| async { None }).chain(answer).boxed()
    }
}
