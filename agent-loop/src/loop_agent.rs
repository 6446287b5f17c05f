//! The loop.

use std::{fmt, sync::Arc};

use agent_core::{
    Agent, AgentInfo, AgentResponse, ChatMessage, Content, Draft, Emitter, Error, ErrorKind, LoopStep, Result,
    RunContext, Session, StopReason, Updates, Usage, updates,
};
use tokio::time::Instant;
use tracing::{Instrument, Span, field::Empty, info_span};

use crate::{
    ContextMode, Iteration, IterationRecord, LoopContext, LoopEvaluation, LoopEvaluator, LoopOptions,
    digest::digest,
    outcome::{Keys, Progress},
};

/// An agent that runs another until nobody objects.
///
/// After each iteration the evaluators are asked in order. The first that is not satisfied decides: its feedback is
/// said, and the inner agent runs again. The run ends with a [`StopReason`]:
///
/// | end | when |
/// |---|---|
/// | `Completed` | all evaluators are satisfied, or the inner agent escalated |
/// | `IterationLimit` | the cap is reached and somebody still objects |
/// | `Halted` | an evaluator forbade to go on |
/// | `AwaitingApproval`, `Cancelled`, `BudgetExhausted` | the iteration ended so, or was interrupted; run the session again to go on |
/// | the inner agent's own | there are no evaluators |
///
/// [`LoopOutcome::of`](crate::LoopOutcome::of) reads from the session who decided and what each iteration cost.
pub struct LoopAgent {
    info: AgentInfo,
    name: Arc<str>,
    keys: Keys,
    inner: Box<dyn Agent>,
    options: LoopOptions,
    evaluators: Vec<Arc<dyn LoopEvaluator>>,
}

impl LoopAgent {
    /// The cap of a loop that sets none.
    pub const DEFAULT_MAX_ITERATIONS: u32 = 10;

    /// A loop of this name around an agent. The name is the author of the loop's messages, and where its record is
    /// kept: unique among the loops of a session.
    pub fn new(name: impl Into<String>, inner: impl Agent + 'static, options: LoopOptions) -> Self {
        let info = AgentInfo { name: name.into(), description: inner.info().description.clone() };
        Self {
            name: info.name.as_str().into(),
            keys: Keys::new(&info.name),
            info,
            inner: Box::new(inner),
            options,
            evaluators: Vec::new(),
        }
    }

    /// Adds an evaluator, asked after those that were added before. Guards come first.
    pub fn evaluator(mut self, evaluator: impl LoopEvaluator + 'static) -> Self {
        self.evaluators.push(Arc::new(evaluator));
        self
    }

    /// Adds evaluators, in order.
    pub fn evaluators(mut self, evaluators: impl IntoIterator<Item = Arc<dyn LoopEvaluator>>) -> Self {
        self.evaluators.extend(evaluators);
        self
    }

    async fn go(&self, session: &mut Session, out: Emitter) -> Result<StopReason> {
        self.check(out.cx())?;
        let mut run = Run::begin(self, session, &out).await;
        loop {
            if out.cx().cancel().is_cancelled() {
                return run.end(session, StopReason::Cancelled).await;
            }
            if run.iteration > self.options.max_iterations.get() {
                return run.end_at_lowered_cap(session).await;
            }
            run.open_iteration(session).await;
            let started = Instant::now();
            let span = iteration_span(&self.info.name, run.iteration);
            let last = run.pass(session).instrument(span.clone()).await?;
            let (by, evaluation) = match run.judge(session, &last).instrument(span.clone()).await? {
                Judgement::Interrupted(stop) => return run.end(session, stop).await,
                Judgement::Verdict(by, evaluation) => (by, evaluation),
            };
            record_verdict(&span, &last, by.as_deref());
            let end = run.conclude(last, by, evaluation, started);
            if let Some(stop) = end {
                return run.end(session, stop).await;
            }
        }
    }

    fn check(&self, cx: &RunContext) -> Result<()> {
        let name = &self.info.name;
        let invalid = |problem: &str| Err(Error::new(ErrorKind::Invalid, format!("run loop `{name}`{problem}")));
        if cx.path().iter().any(|step| step.name == self.name) {
            return invalid(" inside a loop of the same name: they would share one record; rename one");
        }
        if Keys::are_ambiguous(name) {
            return invalid(": names that end in `:iterations` are the framework's; rename it");
        }
        if **name == *agent_core::Event::CALLER {
            return invalid(": that name is the caller's; rename it");
        }
        Ok(())
    }
}

impl Agent for LoopAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.name.clone(), cx, |out| self.go(session, out))
    }
}

impl fmt::Debug for LoopAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let evaluators: Vec<&str> = self.evaluators.iter().map(super::evaluator::LoopEvaluator::name).collect();
        f.debug_struct("LoopAgent")
            .field("name", &self.info.name)
            .field("inner", &self.inner.info().name)
            .field("options", &self.options)
            .field("evaluators", &evaluators)
            .finish_non_exhaustive()
    }
}

/// A run of a loop.
struct Run<'a> {
    agent: &'a LoopAgent,
    out: &'a Emitter,
    /// Which iteration is next, or runs: from 1.
    iteration: u32,
    earlier: Vec<Iteration>,
    progress: Progress,
    /// `progress` as the session's state has it.
    stored: Progress,
    /// A finished iteration that is not recorded yet.
    step: Option<IterationRecord>,
    /// Billed tokens that no event reports yet.
    owed: Option<Usage>,
}

enum Judgement {
    Verdict(Option<String>, LoopEvaluation),
    Interrupted(StopReason),
}

impl<'a> Run<'a> {
    /// Takes up an interrupted loop of this turn, or begins anew, which forgets what an earlier one came to.
    async fn begin(agent: &'a LoopAgent, session: &mut Session, out: &'a Emitter) -> Self {
        if let Some(stored) = Progress::interrupted(session, &agent.keys) {
            let mut progress = stored.clone();
            if out.cx().is_branch() {
                progress.rebase(session);
            }
            let records: Vec<IterationRecord> = session.get(&agent.keys.iterations).unwrap_or_default();
            let earlier: Vec<Iteration> = records.into_iter().map(without_events).collect();
            let iteration = u32::try_from(earlier.len()).unwrap_or(u32::MAX).saturating_add(1);
            return Self { agent, out, iteration, earlier, progress, stored, step: None, owed: None };
        }
        let progress = Progress::begin(session);
        let mut draft = Draft::default();
        if session.state().contains_key(&*agent.keys.iterations) {
            draft = draft.remove(agent.keys.iterations.clone());
        }
        draft = draft.set(agent.keys.record.clone(), &progress);
        out.record(session, draft).await;
        let stored = progress.clone();
        Self { agent, out, iteration: 1, earlier: Vec::new(), progress, stored, step: None, owed: None }
    }

    /// Ends the last iteration and begins this one, in one event; none if there is nothing to say or take back.
    async fn open_iteration(&mut self, session: &mut Session) {
        let resumed = self.progress.stop.take().is_some();
        let input = self.progress.input.take();
        if !resumed && input.is_none() {
            return;
        }
        (self.progress.by, self.progress.why) = (None, None);
        let mut draft = self.draft();
        if let Some(messages) = input {
            if self.agent.options.context == ContextMode::Fresh {
                draft = draft.rewind(kept(session.messages(), self.progress.mark));
            }
            draft = messages.into_iter().fold(draft, Draft::say);
        }
        self.out.record(session, draft).await;
    }

    /// Runs the inner agent once.
    async fn pass(&mut self, session: &mut Session) -> Result<AgentResponse> {
        let step = LoopStep { name: self.agent.name.clone(), iteration: self.iteration };
        let cx = self.out.cx().enter(step);
        let mut last = self.out.forward(self.agent.inner.run(session, &cx)).await?;
        self.progress.partial += last.usage;
        self.take_bill();
        last.usage = self.progress.partial;
        Ok(last)
    }

    /// Asks who objects.
    async fn judge(&mut self, session: &mut Session, last: &AgentResponse) -> Result<Judgement> {
        let LoopOptions { max_iterations, verdict_at_cap, .. } = self.agent.options;
        let is_last = self.iteration >= max_iterations.get();
        if last.stop.is_suspended() {
            return Ok(Judgement::Interrupted(last.stop));
        }
        if last.stop == StopReason::Escalated {
            return Ok(Judgement::Verdict(Some(self.escalated_by(last)), LoopEvaluation::Satisfied));
        }
        if is_last && !verdict_at_cap {
            return Ok(Judgement::Verdict(None, LoopEvaluation::again()));
        }
        let judgement = self.ask(session, last, is_last).await;
        self.take_bill();
        if judgement.is_err() && (self.owed.is_some() || self.progress != self.stored) {
            let draft = self.draft();
            self.out.record(session, draft).await;
        }
        judgement
    }

    /// Asks the evaluators in order; the first that is not satisfied decides.
    async fn ask(&self, session: &Session, last: &AgentResponse, is_last: bool) -> Result<Judgement> {
        let run = self.out.cx();
        let cx = LoopContext {
            session,
            request: session.messages().get(self.progress.request.clone()).unwrap_or_default(),
            iteration: self.iteration,
            is_last,
            earlier: &self.earlier,
            last,
            run,
        };
        for evaluator in &self.agent.evaluators {
            if run.cancel().is_cancelled() {
                return Ok(Judgement::Interrupted(StopReason::Cancelled));
            }
            let evaluation = tokio::select! {
                biased;
                evaluation = evaluate(&**evaluator, &cx) => evaluation?,
                stop = run.interrupted() => return Ok(Judgement::Interrupted(stop)),
            };
            if evaluation != LoopEvaluation::Satisfied {
                return Ok(Judgement::Verdict(Some(evaluator.name().to_owned()), evaluation));
            }
        }
        Ok(Judgement::Verdict(None, LoopEvaluation::Satisfied))
    }

    /// Notes the finished iteration and what follows from the verdict: the end, or the next iteration's input.
    fn conclude(
        &mut self,
        last: AgentResponse,
        by: Option<String>,
        evaluation: LoopEvaluation,
        started: Instant,
    ) -> Option<StopReason> {
        let is_last = self.iteration >= self.agent.options.max_iterations.get();
        let feedback = match &evaluation {
            LoopEvaluation::Continue(Some(text)) if !text.trim().is_empty() => Some(text.clone()),
            LoopEvaluation::Satisfied
            | LoopEvaluation::Continue(_)
            | LoopEvaluation::ContinueWith(_)
            | LoopEvaluation::Halt(_) => None,
        };
        let stop = last.stop;
        let digest = digest(&last);
        let usage = std::mem::take(&mut self.progress.partial);
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.step = Some(IterationRecord { usage, millis, by: by.clone(), feedback: feedback.clone(), digest });
        self.earlier.push(Iteration {
            response: AgentResponse { usage, ..last },
            by: by.clone(),
            feedback: feedback.clone(),
            digest,
        });
        let (end, why) = match evaluation {
            LoopEvaluation::Satisfied if stop == StopReason::Escalated => (StopReason::Completed, None),
            LoopEvaluation::Satisfied if self.agent.evaluators.is_empty() => (stop, None),
            LoopEvaluation::Satisfied => (StopReason::Completed, None),
            LoopEvaluation::Halt(why) => (StopReason::Halted, Some(why)),
            LoopEvaluation::Continue(_) | LoopEvaluation::ContinueWith(_) if is_last => {
                (StopReason::IterationLimit, feedback)
            }
            LoopEvaluation::ContinueWith(messages) => return self.go_on(messages),
            LoopEvaluation::Continue(_) => {
                let messages = self.feedback_message(feedback);
                return self.go_on(messages);
            }
        };
        (self.progress.by, self.progress.why) = (by, why);
        Some(end)
    }

    fn go_on(&mut self, input: Vec<ChatMessage>) -> Option<StopReason> {
        self.progress.input = Some(input);
        self.iteration += 1;
        None
    }

    /// What the next iteration is told: the feedback as it is, or, if it forgets the rest, all feedback so far.
    fn feedback_message(&self, feedback: Option<String>) -> Vec<ChatMessage> {
        let text = match self.agent.options.context {
            ContextMode::Shared => feedback,
            ContextMode::Fresh => {
                let items: Vec<String> =
                    self.earlier.iter().filter_map(|i| i.feedback.as_ref()).map(|text| format!("- {text}")).collect();
                (!items.is_empty()).then(|| format!("## Feedback\n\n{}", items.join("\n")))
            }
        };
        text.map(ChatMessage::user).into_iter().collect()
    }

    async fn end(mut self, session: &mut Session, stop: StopReason) -> Result<StopReason> {
        self.progress.stop = Some(stop);
        let draft = self.draft();
        self.out.record(session, draft).await;
        Ok(stop)
    }

    /// The loop was taken up with a cap that it has passed already.
    async fn end_at_lowered_cap(mut self, session: &mut Session) -> Result<StopReason> {
        if let Some(last) = self.earlier.last() {
            (self.progress.by, self.progress.why) = (last.by.clone(), last.feedback.clone());
        }
        self.progress.input = None;
        self.end(session, StopReason::IterationLimit).await
    }

    /// What is to be recorded: the finished iteration, the tokens owed, and the record if it changed.
    fn draft(&mut self) -> Draft {
        let mut draft = Draft::default();
        if let Some(step) = self.step.take() {
            draft = draft.append(self.agent.keys.iterations.clone(), step);
        }
        if self.progress != self.stored {
            draft = draft.set(self.agent.keys.record.clone(), &self.progress);
            self.stored.clone_from(&self.progress);
        }
        if let Some(usage) = self.owed.take() {
            draft = draft.usage(usage);
        }
        draft
    }

    fn take_bill(&mut self) {
        if let Some(bill) = self.out.cx().take_bill() {
            self.progress.partial += bill;
            *self.owed.get_or_insert_default() += bill;
        }
    }

    /// Who asked this loop to end. Deeper in the path are nested loops, which consumed what they were asked.
    fn escalated_by(&self, last: &AgentResponse) -> String {
        let depth = self.out.cx().path().len() + 1;
        let event = last.events.iter().rev().find(|event| event.escalate && event.path.len() == depth);
        event.map_or_else(|| self.agent.inner.info().name.clone(), |event| event.author.to_string())
    }
}

fn iteration_span(name: &str, iteration: u32) -> Span {
    info_span!(
        "iteration",
        otel.name = %format_args!("iteration {name}#{iteration}"),
        agent.loop.name = name,
        agent.iteration = iteration,
        agent.stop_reason = Empty,
        agent.loop.decided_by = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
    )
}

fn record_verdict(span: &Span, last: &AgentResponse, by: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    span.record("agent.stop_reason", tracing::field::debug(last.stop));
    span.record("agent.loop.decided_by", by);
    span.record("gen_ai.usage.input_tokens", last.usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", last.usage.output_tokens);
}

/// Asks one evaluator, in a span that tells its verdict and none of its words.
async fn evaluate(evaluator: &dyn LoopEvaluator, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
    let span = info_span!(
        "evaluate",
        otel.name = %format_args!("evaluate {}", evaluator.name()),
        gen_ai.evaluation.name = evaluator.name(),
        gen_ai.evaluation.score.label = Empty,
        agent.iteration = cx.iteration,
        error.type = Empty,
        otel.status_code = Empty,
    );
    let evaluation = evaluator.evaluate(cx).instrument(span.clone()).await;
    match &evaluation {
        Ok(evaluation) => drop(span.record("gen_ai.evaluation.score.label", verdict(evaluation))),
        Err(error) => {
            span.record("error.type", tracing::field::debug(error.kind()));
            span.record("otel.status_code", "ERROR");
        }
    }
    evaluation
}

fn verdict(evaluation: &LoopEvaluation) -> &'static str {
    match evaluation {
        LoopEvaluation::Satisfied => "satisfied",
        LoopEvaluation::Continue(_) | LoopEvaluation::ContinueWith(_) => "continue",
        LoopEvaluation::Halt(_) => "halt",
    }
}

/// How many messages a fresh iteration keeps: those before the mark, and on to the last result of a call from before
/// it. Without its result, a call that the caller approved would run once more.
fn kept(messages: &[ChatMessage], mark: usize) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut kept = mark;
    for (at, message) in messages.iter().enumerate().skip(mark) {
        for content in message.contents.iter() {
            match content {
                Content::ToolCall(call) => open.push(&call.id),
                Content::InvalidToolCall { id, .. } => open.push(id),
                Content::ToolResult(result) => match open.iter().position(|id| *id == result.call_id) {
                    Some(call) => drop(open.swap_remove(call)),
                    None => kept = at + 1,
                },
                Content::Text(_)
                | Content::Reasoning { .. }
                | Content::Data { .. }
                | Content::Uri { .. }
                | Content::Native { .. }
                | Content::ApprovalRequest(_)
                | Content::ApprovalResponse { .. } => (),
            }
        }
    }
    kept
}

/// An iteration that another run finished.
fn without_events(record: IterationRecord) -> Iteration {
    let IterationRecord { usage, by, feedback, digest, .. } = record;
    let response = AgentResponse { events: Vec::new(), usage, stop: StopReason::Completed };
    Iteration { response, by, feedback, digest }
}
