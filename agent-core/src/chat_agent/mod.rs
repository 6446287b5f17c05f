//! Reason, act, observe: an agent over a model and its tools.

mod hooks;
mod instructions;
mod run;
mod settle;
mod transcript;

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
};

use crate::{Agent, AgentInfo, ChatClient, ChatOptions, RunContext, Session, Tool, ToolSpec, Updates, updates};

pub use hooks::{ChatHook, DuplicateCalls, ToolBudget};
pub use instructions::Instructions;

/// What a [`ChatAgent`] may be told beside its name and its model.
#[derive(Debug, Clone)]
pub struct ChatAgentOptions {
    /// What the agent is for; shown to models that may call it as a tool.
    pub description: String,
    /// Its standing orders.
    pub instructions: Instructions,
    /// The state key that gets the text of each answer without calls.
    pub output_key: Option<String>,
    /// What of the session the model sees.
    pub history: History,
    /// How often the model is asked in one run; 32 by default.
    pub max_turns: NonZeroU32,
    /// How many calls of one answer run at once; 8 by default.
    pub tool_concurrency: NonZeroUsize,
    /// How the model is to answer.
    pub chat: ChatOptions,
}

impl Default for ChatAgentOptions {
    fn default() -> Self {
        const TURNS: NonZeroU32 = NonZeroU32::new(32).expect("not zero");
        const AT_ONCE: NonZeroUsize = NonZeroUsize::new(8).expect("not zero");
        Self {
            description: String::new(),
            instructions: Instructions::default(),
            output_key: None,
            history: History::Full,
            max_turns: TURNS,
            tool_concurrency: AT_ONCE,
            chat: ChatOptions::default(),
        }
    }
}

/// What of a session a model sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum History {
    /// Everything.
    #[default]
    Full,
    /// The caller's request, what was pending or open when the run began, and what the run adds.
    CurrentTurn,
}

/// An agent that asks a model, runs the tools that it calls, shows it their results, and so on until it answers
/// without a call.
///
/// A run first settles what is open: calls that the caller approved run, rejected ones get the reason, calls that the
/// caller has passed over are closed. So a session can be continued after an approval, a cancellation or a crash by
/// running it again.
///
/// - A tool's failure, an unknown name or unreadable arguments are error results that the model reads.
/// - A tool that [needs approval](ToolSpec::needs_approval) is asked about, once, and the run ends
///   [`AwaitingApproval`](crate::StopReason::AwaitingApproval). Answer with
///   [`ChatMessage::approve`](crate::ChatMessage::approve) or [`reject`](crate::ChatMessage::reject) and run again.
/// - After [`max_turns`](ChatAgentOptions::max_turns) model calls the run ends
///   [`TurnLimit`](crate::StopReason::TurnLimit).
/// - Out of budget or cancelled, each open call gets an error result before the run ends, so that the session stays
///   one that services accept.
pub struct ChatAgent {
    info: AgentInfo,
    author: Arc<str>,
    /// The state key of an exit that waits for approvals.
    exit_key: Arc<str>,
    client: Box<dyn ChatClient>,
    options: ChatAgentOptions,
    output_key: Option<Arc<str>>,
    tools: Vec<Box<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    hooks: Vec<Box<dyn ChatHook>>,
}

impl ChatAgent {
    /// An agent of this name over this model. The name is unique among the agents of a session.
    pub fn new(name: impl Into<String>, client: impl ChatClient + 'static, options: ChatAgentOptions) -> Self {
        let info = AgentInfo { name: name.into(), description: options.description.clone() };
        Self {
            author: info.name.as_str().into(),
            exit_key: format!("exit:{}", info.name).into(),
            info,
            client: Box::new(client),
            output_key: options.output_key.as_deref().map(Arc::from),
            options,
            tools: Vec::new(),
            specs: Arc::from([]),
            hooks: Vec::new(),
        }
    }

    /// Gives the model a tool. Names are unique: two tools of one name are an error of the run.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Box::new(tool));
        self.specs = self.tools.iter().map(|tool| tool.spec().clone()).collect();
        self
    }

    /// Adds a hook, asked after those that were added before.
    pub fn hook(mut self, hook: impl ChatHook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    fn find_tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).map(|tool| &**tool)
    }
}

impl Agent for ChatAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, cx: &'a RunContext) -> Updates<'a> {
        updates(self.author.clone(), cx, |out| run::run(self, session, out))
    }
}

impl fmt::Debug for ChatAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        f.debug_struct("ChatAgent")
            .field("info", &self.info)
            .field("model", &self.client.model())
            .field("options", &self.options)
            .field("tools", &tools)
            .field("hooks", &self.hooks.len())
            .finish_non_exhaustive()
    }
}
