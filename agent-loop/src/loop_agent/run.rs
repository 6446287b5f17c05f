//! A run of a loop, step by step.

use std::pin::pin;

use agent_core::{
    AgentResponse, ChatMessage, Draft, Emitter, LoopStep, Result, RunContext, Session, StateChange, StopReason, Usage,
};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::{
    LoopAgent,
    input::{kept, note, told},
    judgment::{Judgment, ask},
};
use crate::{
    ContextMode, Iteration, IterationRecord, LoopContext, LoopEvaluation, Verdict,
    digest::{cut_off, digest},
    outcome::{Progress, read},
    telemetry,
    text::is_blank,
};

/// A run of a loop.
pub(super) struct Run<'a> {
    agent: &'a LoopAgent,
    out: &'a Emitter,
    /// Which iteration is next, or runs: from 1.
    pub(super) iteration: u32,
    earlier: Vec<Iteration>,
    /// All feedback so far, an item each: what a fresh context is told.
    notes: String,
    progress: Progress,
    /// `progress` as the session's state has it.
    stored: Progress,
    /// A finished iteration that is not recorded yet.
    step: Option<Value>,
    /// What its evaluators change in the state.
    changes: Vec<StateChange>,
    /// Billed tokens that no event reports yet.
    owed: Option<Usage>,
    /// Whether the next pass is the rest of one that was cut off.
    is_rest: bool,
}

impl<'a> Run<'a> {
    /// Takes up an interrupted loop of this turn, or begins anew, which forgets what an earlier one came to.
    ///
    /// # Errors
    /// A record of this turn that cannot be read: a loop that began anew would do again what was done.
    pub(super) async fn begin(agent: &'a LoopAgent, session: &mut Session, out: &'a Emitter) -> Result<Self> {
        if let Some(stored) = Progress::interrupted(session, &agent.keys)? {
            let mut progress = stored.clone();
            if out.cx().is_branch() {
                progress.rebase(session);
            }
            let records: Option<Vec<IterationRecord>> = read(session, &agent.keys.iterations)?;
            let earlier: Vec<Iteration> = records.into_iter().flatten().map(Iteration::without_events).collect();
            let is_rest = stored.stop.is_none() && !out.cx().is_branch();
            return Ok(Self { is_rest, ..Self::new(agent, out, earlier, progress, stored) });
        }
        let progress = Progress::begin(session);
        let mut draft = Draft::default();
        if session.state().contains_key(&*agent.keys.iterations) {
            draft = draft.remove(agent.keys.iterations.clone());
        }
        draft = draft.set(agent.keys.record.clone(), &progress);
        out.record(session, draft).await;
        let stored = progress.clone();
        Ok(Self::new(agent, out, Vec::new(), progress, stored))
    }

    fn new(
        agent: &'a LoopAgent,
        out: &'a Emitter,
        earlier: Vec<Iteration>,
        progress: Progress,
        stored: Progress,
    ) -> Self {
        let iteration = u32::try_from(earlier.len()).unwrap_or(u32::MAX).saturating_add(1);
        let (step, changes, owed) = (None, Vec::new(), None);
        let mut notes = String::new();
        earlier.iter().filter_map(|iteration| iteration.feedback.as_deref()).for_each(|text| note(&mut notes, text));
        Self { agent, out, iteration, earlier, notes, progress, stored, step, changes, owed, is_rest: false }
    }

    /// Ends the last iteration and begins this one, in one event; none if there is nothing to say or take back.
    pub(super) async fn open_iteration(&mut self, session: &mut Session) {
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
            draft = draft.say_all(messages);
        }
        self.out.record(session, draft).await;
    }

    /// Runs the inner agent once and asks who objects. Says whether the loop ends.
    pub(super) async fn iterate(&mut self, session: &mut Session) -> Result<Option<StopReason>> {
        let span = telemetry::iteration(&self.agent.info.name, self.iteration);
        let end = {
            let work = pin!(self.work(session, &span));
            work.instrument(span.clone()).await
        };
        end.inspect_err(|error| telemetry::failed(&span, error))
    }

    async fn work(&mut self, session: &mut Session, span: &Span) -> Result<Option<StopReason>> {
        let started = Instant::now();
        let cx = self.out.cx().enter(LoopStep { name: self.agent.name.clone(), iteration: self.iteration });
        let last = self.pass(session, &cx).await?;
        let judgment = self.judge(session, &last, &cx).await?;
        let usage = self.progress.partial;
        match judgment {
            Judgment::Interrupted(stop) => {
                telemetry::iterated(span, stop, usage, None);
                Ok(Some(stop))
            }
            Judgment::Verdict(by, verdict) => {
                telemetry::iterated(span, last.stop, usage, by.as_deref());
                Ok(self.conclude(last, by, verdict, started))
            }
        }
    }

    /// Runs the inner agent once.
    async fn pass(&mut self, session: &mut Session, cx: &RunContext) -> Result<AgentResponse> {
        let last = self.out.forward(self.agent.inner.run(session, cx)).await;
        self.take_bill();
        if last.is_err() && self.owed.is_some() {
            self.record(session).await;
        }
        let mut last = last?;
        self.progress.partial += last.usage;
        last.usage = self.progress.partial;
        if std::mem::take(&mut self.is_rest) {
            let begun = || cut_off(session, &self.agent.name, &self.earlier, &last);
            self.progress.digest = self.progress.digest.or_else(begun);
        }
        if last.stop.is_suspended() {
            self.progress.digest = Some(digest(self.progress.digest, &last));
        }
        Ok(last)
    }

    /// Asks who objects.
    async fn judge(&mut self, session: &mut Session, last: &AgentResponse, cx: &RunContext) -> Result<Judgment> {
        if last.stop.is_suspended() {
            return Ok(Judgment::Interrupted(last.stop));
        }
        if last.stop == StopReason::Escalated {
            return Ok(Judgment::Verdict(Some(self.escalated_by(last)), LoopEvaluation::Satisfied.into()));
        }
        if self.is_last() && !self.agent.options.verdict_at_cap {
            return Ok(Judgment::Verdict(None, LoopEvaluation::again().into()));
        }
        let judgment = ask(
            &self.agent.evaluators,
            &LoopContext {
                session,
                request: session.messages().get(self.progress.request.clone()).unwrap_or_default(),
                iteration: self.iteration,
                is_last: self.is_last(),
                earlier: &self.earlier,
                last,
                run: cx,
            },
        )
        .await;
        self.take_bill();
        if judgment.is_err() && (self.owed.is_some() || self.progress != self.stored) {
            self.record(session).await;
        }
        judgment
    }

    /// Notes the finished iteration and what follows from the verdict: the end, or the next iteration's input.
    fn conclude(
        &mut self,
        last: AgentResponse,
        by: Option<String>,
        verdict: Verdict,
        started: Instant,
    ) -> Option<StopReason> {
        let Verdict { evaluation, state } = verdict;
        self.changes = state;
        let (feedback, next) = match evaluation {
            LoopEvaluation::Satisfied if self.agent.evaluators.is_empty() && last.stop != StopReason::Escalated => {
                (None, Next::End(last.stop, None))
            }
            LoopEvaluation::Satisfied => (None, Next::End(StopReason::Completed, None)),
            LoopEvaluation::Halt(why) => (None, Next::End(StopReason::Halted, Some(why))),
            LoopEvaluation::ContinueWith(messages) => (None, Next::Say(messages)),
            LoopEvaluation::Continue(feedback) => (feedback.filter(|text| !is_blank(text)), Next::Feedback),
        };
        self.keep(last, by, feedback.clone(), started);
        let (stop, why) = match next {
            Next::End(stop, why) => (stop, why),
            Next::Say(_) | Next::Feedback if self.is_last() => (StopReason::IterationLimit, feedback),
            Next::Say(messages) => return self.go_on(messages),
            Next::Feedback => {
                let messages = self.feedback_message(feedback);
                return self.go_on(messages);
            }
        };
        self.progress.by = self.earlier.last().and_then(|iteration| iteration.by.clone());
        self.progress.why = why;
        Some(stop)
    }

    /// Puts the finished iteration with the earlier ones, and into the next event.
    fn keep(&mut self, last: AgentResponse, by: Option<String>, feedback: Option<String>, started: Instant) {
        if let (ContextMode::Fresh, Some(feedback)) = (self.agent.options.context, &feedback) {
            note(&mut self.notes, feedback);
        }
        let digest = digest(self.progress.digest.take(), &last);
        let usage = std::mem::take(&mut self.progress.partial);
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = IterationRecord { digest, by, feedback, millis, usage };
        self.step = Some(record.to_json());
        let IterationRecord { by, feedback, .. } = record;
        self.earlier.push(Iteration { response: AgentResponse { usage, ..last }, by, feedback, digest });
    }

    /// Whether the cap allows no iteration after this one.
    fn is_last(&self) -> bool {
        self.iteration >= self.agent.options.max_iterations.get()
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
            ContextMode::Fresh => told(&self.notes),
        };
        text.map(ChatMessage::user).into_iter().collect()
    }

    pub(super) async fn end(&mut self, session: &mut Session, stop: StopReason) -> Result<StopReason> {
        self.progress.stop = Some(stop);
        self.record(session).await;
        Ok(stop)
    }

    /// The loop was taken up with a cap that it has passed already.
    pub(super) async fn end_at_lowered_cap(&mut self, session: &mut Session) -> Result<StopReason> {
        if let Some(last) = self.earlier.last() {
            (self.progress.by, self.progress.why) = (last.by.clone(), last.feedback.clone());
        }
        self.progress.input = None;
        self.end(session, StopReason::IterationLimit).await
    }

    async fn record(&mut self, session: &mut Session) {
        let draft = self.draft();
        self.out.record(session, draft).await;
    }

    /// What is to be recorded: the finished iteration, the tokens owed, and the record if it changed.
    fn draft(&mut self) -> Draft {
        let mut draft = Draft::default();
        if let Some(step) = self.step.take() {
            draft = draft.change(StateChange::Append { key: self.agent.keys.iterations.clone(), value: step });
        }
        draft = std::mem::take(&mut self.changes).into_iter().fold(draft, Draft::change);
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

/// What follows from a verdict.
enum Next {
    End(StopReason, Option<String>),
    Say(Vec<ChatMessage>),
    Feedback,
}
