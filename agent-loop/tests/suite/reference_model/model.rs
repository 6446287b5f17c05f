//! The loop as its contract tells it: lines and numbers, no sessions, no events. A crash leaves what was committed.

use agent_core::{ChatMessage, StopReason};
use agent_loop::{ContextMode, LoopEvaluation};

use super::{End, Fault, Script, Seen};
use crate::support::show;

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) seen: Seen,
    /// The loop has begun in the caller's current turn.
    begun: bool,
    /// An agent has recorded something in the turn.
    recorded: bool,
    turn: usize,
    mark: usize,
    request: Vec<String>,
    /// What the next iteration begins with, while unsaid.
    input: Option<Vec<String>>,
    /// What an interrupted pass used.
    partial: u64,
    /// Billed, and in no event yet.
    owed: u64,
    commits: Vec<Model>,
}

impl Model {
    pub(super) fn ask(&mut self) {
        if self.recorded {
            (self.turn, self.recorded) = (self.seen.said.len(), false);
        }
        self.begun = false;
        self.seen.said.push("user: go".to_owned());
    }

    /// Approves the call that the loop waits for.
    pub(super) fn approve(&mut self) -> String {
        let call = format!("c{}", self.seen.records.len() + 1);
        self.seen.said.push(format!("user: approve {call}"));
        call
    }

    pub(super) fn run(&mut self, script: &Script, fault: Fault) -> End {
        let before = self.clone();
        let end = self.go(script, fault);
        let mut commits = std::mem::take(&mut self.commits);
        match (fault, end) {
            (Fault::Crash(after), _) if after <= commits.len() => {
                commits.truncate(after);
                *self = commits.pop().unwrap_or(before);
                End::Crash
            }
            (_, End::Error) => {
                let asked = std::mem::take(&mut self.seen.asked);
                *self = commits.pop().unwrap_or(before);
                self.seen.asked = asked;
                end
            }
            (_, end) => end,
        }
    }

    fn go(&mut self, script: &Script, fault: Fault) -> End {
        if !(self.begun && self.seen.stop.is_none_or(StopReason::is_suspended)) {
            self.begin();
        }
        let mut cancelled = fault == Fault::CancelledBefore;
        let mut spent = self.partial;
        loop {
            if cancelled {
                return self.suspend(StopReason::Cancelled, spent);
            }
            let iteration = self.seen.records.len() + 1;
            let (pass, is_last) =
                (&script.passes[iteration - 1], iteration == script.options.max_iterations.get() as usize);
            self.open(script);
            let Some(end) = self.pass(script, iteration, &mut spent, fault, &mut cancelled) else { return End::Error };
            if end.is_suspended() {
                return self.suspend(end, spent);
            }
            let used = spent;
            let mut verdict = (None, LoopEvaluation::Satisfied);
            if end == StopReason::Escalated {
                verdict.0 = Some("w".to_owned());
            } else if is_last && !script.options.verdict_at_cap {
                verdict.1 = LoopEvaluation::Continue(None);
            } else {
                for evaluator in 0..script.evaluators {
                    if cancelled {
                        return self.suspend(StopReason::Cancelled, spent);
                    }
                    let earlier: Vec<_> = self.seen.records.iter().map(|(_, _, feedback)| feedback).collect();
                    let asked = format!("{evaluator}#{iteration} {is_last} {:?} {earlier:?} {used}", self.request);
                    self.seen.asked.push(asked);
                    let (evaluation, bill) = &pass.evaluations[evaluator];
                    spent += bill;
                    self.owed += bill;
                    if fault == (Fault::EvaluatorFails { iteration, evaluator }) {
                        if self.owed > 0 || spent != self.partial {
                            self.partial = spent;
                            self.commit();
                        }
                        return End::Error;
                    }
                    let here = |answers| Fault::CancelledInEvaluator { iteration, evaluator, answers };
                    cancelled |= fault == here(true) || fault == here(false);
                    if fault == here(false) {
                        return self.suspend(StopReason::Cancelled, spent);
                    }
                    if *evaluation != LoopEvaluation::Satisfied {
                        verdict = (Some(format!("e{evaluator}")), evaluation.clone());
                        break;
                    }
                }
            }
            let (by, evaluation) = verdict;
            let feedback = match &evaluation {
                LoopEvaluation::Continue(Some(text)) if !text.trim().is_empty() => Some(text.clone()),
                _ => None,
            };
            self.seen.records.push((std::mem::take(&mut spent), by.clone(), feedback.clone()));
            self.partial = 0;
            let (stop, why) = match evaluation {
                LoopEvaluation::Satisfied if script.evaluators == 0 && end != StopReason::Escalated => (end, None),
                LoopEvaluation::Satisfied => (StopReason::Completed, None),
                LoopEvaluation::Halt(why) => (StopReason::Halted, Some(why)),
                _ if is_last => (StopReason::IterationLimit, feedback),
                LoopEvaluation::ContinueWith(messages) => {
                    let by_loop = |message: ChatMessage| match message.author {
                        Some(_) => message,
                        None => message.by("loop"),
                    };
                    self.input = Some(messages.into_iter().map(|message| show(&by_loop(message))).collect());
                    continue;
                }
                LoopEvaluation::Continue(_) => {
                    self.input = Some(self.told(script, feedback));
                    continue;
                }
            };
            (self.seen.by, self.seen.why) = (by, why);
            return self.end(stop);
        }
    }

    fn begin(&mut self) {
        let said = &self.seen.said;
        let by_agent = |line: &&String| line.starts_with("w: ");
        let pending = said.iter().rev().take_while(|line| !by_agent(line)).count();
        let pending = &said[said.len() - pending..];
        let of_turn = || said[self.turn..].iter().take_while(|line| !by_agent(line)).cloned().collect();
        self.request = if pending.is_empty() { of_turn() } else { pending.to_vec() };
        (self.mark, self.begun, self.input, self.partial) = (said.len(), true, None, 0);
        (self.seen.stop, self.seen.by, self.seen.why, self.seen.records) = (None, None, None, Vec::new());
        self.commit();
    }

    /// The end of the last iteration and the beginning of this one.
    fn open(&mut self, script: &Script) {
        if self.input.is_none() && self.seen.stop.is_none() {
            return;
        }
        if let Some(words) = self.input.take() {
            if script.options.context == ContextMode::Fresh {
                self.seen.said.truncate(self.mark);
            }
            self.seen.said.extend(words);
        }
        (self.seen.stop, self.seen.by, self.seen.why) = (None, None, None);
        self.commit();
    }

    /// The inner agent, as scripted; none if it fails.
    fn pass(
        &mut self,
        script: &Script,
        iteration: usize,
        spent: &mut u64,
        fault: Fault,
        cancelled: &mut bool,
    ) -> Option<StopReason> {
        let pass = &script.passes[iteration - 1];
        self.commit();
        let has = |said: &[String], line: String| said.iter().filter(|other| **other == line).count();
        if pass.asks_approval && has(&self.seen.said, format!("user: approve c{iteration}")) == 0 {
            let question = format!("w: may pay c{iteration}?");
            if has(&self.seen.said, question.clone()) == 0 {
                self.seen.said.push(question);
                self.commit();
            }
            return Some(StopReason::AwaitingApproval);
        }
        self.seen.said.push(format!("w: {iteration}"));
        self.seen.tokens += pass.tokens;
        *spent += pass.tokens;
        self.commit();
        if fault == (Fault::AgentFails { iteration }) {
            return None;
        }
        let notices = fault == (Fault::CancelledInAgent { iteration, notices: true });
        *cancelled |= notices || fault == (Fault::CancelledInAgent { iteration, notices: false });
        let again = has(&self.seen.said, format!("w: {iteration}")) > 1;
        Some(match pass.end {
            _ if notices => StopReason::Cancelled,
            StopReason::BudgetExhausted if again => StopReason::Completed,
            end => end,
        })
    }

    fn told(&self, script: &Script, feedback: Option<String>) -> Vec<String> {
        let log: Vec<String> = self.seen.records.iter().filter_map(|(_, _, feedback)| feedback.clone()).collect();
        let text = match script.options.context {
            ContextMode::Shared => feedback,
            ContextMode::Fresh if log.is_empty() => None,
            ContextMode::Fresh => Some(format!("## Feedback\n\n- {}", log.join("\n- "))),
        };
        text.into_iter().map(|text| format!("loop: {text}")).collect()
    }

    fn suspend(&mut self, stop: StopReason, spent: u64) -> End {
        self.partial = spent;
        self.end(stop)
    }

    fn end(&mut self, stop: StopReason) -> End {
        self.seen.stop = Some(stop);
        self.commit();
        End::Stop(stop)
    }

    fn commit(&mut self) {
        self.recorded = true;
        self.seen.tokens += std::mem::take(&mut self.owed);
        let copy = Self { commits: Vec::new(), ..self.clone() };
        self.commits.push(copy);
    }
}
