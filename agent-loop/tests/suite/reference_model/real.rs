//! The real loop, with agents and evaluators that do what a script says.

use std::sync::{Arc, Mutex};

use agent_core::{
    Agent, ChatMessage, Content, Draft, Emitter, Error, ErrorKind, Result, Role, RunContext, Session, StopReason,
    ToolCall, Update, agent_fn,
};
use agent_loop::{LoopAgent, LoopContext, LoopEvaluation, LoopOutcome, evaluate_async_fn};
use futures::StreamExt;
use serde_json::json;

use super::{End, Fault, Pass, Script, Seen};
use crate::support::{Log, block_on, reloaded, said, show, tokens};

pub(super) struct Real {
    agent: LoopAgent,
    session: Session,
    fault: Arc<Mutex<Fault>>,
    asked: Log,
    tokens: u64,
}

impl Real {
    pub(super) fn new(script: &Script) -> Self {
        let (fault, asked) = (Arc::new(Mutex::new(Fault::None)), Log::default());
        let (passes, faults) = (Arc::new(script.passes.clone()), fault.clone());
        let inner = agent_fn("w", move |session, out| {
            let iteration = out.cx().path()[0].iteration as usize;
            let (pass, fault) = (passes[iteration - 1].clone(), *faults.lock().unwrap());
            Box::pin(act(pass, fault, iteration, session, out))
        });
        let mut agent = LoopAgent::new("loop", inner, script.options);
        for evaluator in 0..script.evaluators {
            let (passes, faults, asked) = (script.passes.clone(), fault.clone(), asked.clone());
            agent = agent.evaluator(evaluate_async_fn(format!("e{evaluator}"), move |cx| {
                asked.add(shown(cx, evaluator));
                let (evaluation, bill) = passes[cx.iteration as usize - 1].evaluations[evaluator].clone();
                Box::pin(judge(cx, evaluator, evaluation, bill, *faults.lock().unwrap()))
            }));
        }
        Self { agent, session: Session::new(), fault, asked, tokens: 0 }
    }

    pub(super) fn ask(&mut self) {
        self.session.push("go");
    }

    pub(super) fn approve(&mut self, call: &str) {
        self.session.push(ChatMessage::approve(call));
    }

    /// Runs the session as another process finds it.
    pub(super) fn run(&mut self, fault: Fault) -> End {
        *self.fault.lock().unwrap() = fault;
        self.session = reloaded(&self.session);
        let cx = RunContext::default();
        if fault == Fault::CancelledBefore {
            cx.cancel().cancel();
        }
        let updates = if let Fault::Crash(after) = fault { after } else { usize::MAX };
        let mut run = self.agent.run(&mut self.session, &cx);
        block_on(async {
            for _ in 0..updates {
                match run.next().await.expect("a run has an end") {
                    Ok(Update::Event(event)) => self.tokens += event.usage.unwrap_or_default().total(),
                    Ok(Update::Delta(delta)) => panic!("nobody said {delta:?}"),
                    Ok(Update::Done(stop)) => return End::Stop(stop),
                    Err(_) => return End::Error,
                }
            }
            End::Crash
        })
    }

    pub(super) fn seen(&self) -> Seen {
        let outcome = LoopOutcome::of(&self.session, "loop").unwrap_or_default();
        let records = outcome.iterations.into_iter().map(|it| (it.usage.total(), it.by, it.feedback)).collect();
        let (stop, by, why) = (outcome.stop, outcome.by, outcome.why);
        Seen { said: said(&self.session), stop, by, why, records, asked: self.asked.get(), tokens: self.tokens }
    }
}

fn shown(cx: &LoopContext<'_>, evaluator: usize) -> String {
    let request: Vec<String> = cx.request.iter().map(show).collect();
    let earlier: Vec<_> = cx.earlier.iter().map(|iteration| &iteration.feedback).collect();
    let LoopContext { iteration, is_last, last, .. } = cx;
    format!("{evaluator}#{iteration} {is_last} {request:?} {earlier:?} {}", last.usage.total())
}

async fn judge(
    cx: &LoopContext<'_>,
    evaluator: usize,
    evaluation: LoopEvaluation,
    bill: u64,
    fault: Fault,
) -> Result<LoopEvaluation> {
    let iteration = cx.iteration as usize;
    if bill > 0 {
        cx.run.bill(tokens(bill, 0));
    }
    if fault == (Fault::EvaluatorFails { iteration, evaluator }) {
        return Err(Error::new(ErrorKind::Evaluator, "judge"));
    }
    let here = |answers| Fault::CancelledInEvaluator { iteration, evaluator, answers };
    if fault == here(true) || fault == here(false) {
        cx.run.cancel().cancel();
    }
    if fault == here(false) {
        std::future::pending::<()>().await;
    }
    Ok(evaluation)
}

async fn act(pass: Pass, fault: Fault, iteration: usize, session: &mut Session, out: Emitter) -> Result<StopReason> {
    out.record(session, Draft::state("iteration", iteration)).await;
    let lines = said(session);
    let call = ToolCall { id: format!("c{iteration}"), name: "pay".to_owned(), arguments: json!({}) };
    if pass.asks_approval && !lines.contains(&format!("user: approve {}", call.id)) {
        let question = ChatMessage::new(Role::Assistant, [Content::ApprovalRequest(call)]).by("w");
        if !lines.contains(&show(&question)) {
            out.record(session, Draft::message(question)).await;
        }
        return Ok(StopReason::AwaitingApproval);
    }
    let text = iteration.to_string();
    let again = lines.contains(&format!("w: {text}"));
    let draft = Draft::message(ChatMessage::assistant(text)).usage(tokens(pass.tokens, 0));
    out.record(session, if pass.end == StopReason::Escalated { draft.escalate() } else { draft }).await;
    match fault {
        Fault::AgentFails { iteration: failing } if failing == iteration => {
            Err(Error::new(ErrorKind::Provider, "answer"))
        }
        Fault::CancelledInAgent { iteration: cancelled, notices } if cancelled == iteration => {
            out.cx().cancel().cancel();
            Ok(if notices { StopReason::Cancelled } else { ended(pass.end, again) })
        }
        _ => Ok(ended(pass.end, again)),
    }
}

/// Out of budget once; then there is a new one.
fn ended(end: StopReason, again: bool) -> StopReason {
    if end == StopReason::BudgetExhausted && again { StopReason::Completed } else { end }
}
