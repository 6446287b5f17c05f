//! An agent that acts from a script.

use std::sync::{Arc, Mutex};

use super::lock;
use crate::{
    Agent, AgentInfo, ChatMessage, Draft, Error, ErrorKind, RunContext, Session, StopReason, Updates, updates,
};

/// An agent that does one step of its script in each run. A run past the script's end is a
/// [`Contract`](ErrorKind::Contract) error.
#[derive(Debug, Clone)]
pub struct ScriptedAgent {
    info: AgentInfo,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    turns: Vec<(Draft, StopReason)>,
    runs: u32,
}

impl ScriptedAgent {
    /// An agent with an empty script.
    pub fn new(name: impl Into<String>) -> Self {
        Self { info: AgentInfo::named(name), script: Arc::default() }
    }

    /// The next run says this and completes.
    pub fn says(self, text: impl Into<String>) -> Self {
        self.turn(Draft::message(ChatMessage::assistant(text)), StopReason::Completed)
    }

    /// The next run records one event that escalates, and ends [`Escalated`](StopReason::Escalated).
    pub fn escalates(self) -> Self {
        self.turn(Draft::default().escalate(), StopReason::Escalated)
    }

    /// The next run records this and ends so.
    pub fn turn(self, draft: Draft, stop: StopReason) -> Self {
        lock(&self.script).turns.push((draft, stop));
        self
    }

    /// How often it was run.
    pub fn runs(&self) -> u32 {
        lock(&self.script).runs
    }
}

impl Agent for ScriptedAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.info.name.as_str(), cx, |out| async move {
            let turn = {
                let mut script = lock(&self.script);
                let turn = script.turns.get(script.runs as usize).cloned();
                script.runs += 1;
                turn
            };
            let Some((draft, stop)) = turn else {
                let context = format!("run `{}` once more: its script has no more steps", self.info.name);
                return Err(Error::new(ErrorKind::Contract, context));
            };
            out.record(session, draft).await;
            Ok(stop)
        })
    }
}
