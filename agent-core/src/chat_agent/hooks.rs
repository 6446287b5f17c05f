//! Hooks around model and tool calls, and two guards made of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

use crate::{ChatRequest, ChatResponse, Result, RunContext, ToolContext, ToolOutput};

/// What is asked before and after each model and tool call, in the order in which hooks were added. An error of a
/// model hook ends the run; an error of a tool hook is the call's result.
#[async_trait]
pub trait ChatHook: Send + Sync {
    /// May change the request.
    async fn before_model(&self, request: &mut ChatRequest, run: &RunContext) -> Result<()> {
        let _ = (request, run);
        Ok(())
    }

    /// May change the answer before it is recorded.
    async fn after_model(&self, response: &mut ChatResponse, run: &RunContext) -> Result<()> {
        let _ = (response, run);
        Ok(())
    }

    /// May give the result itself: then the tool neither runs nor counts, and no other hook is asked about the call.
    async fn before_tool(&self, cx: &ToolContext) -> Result<Option<ToolOutput>> {
        let _ = cx;
        Ok(None)
    }

    /// May change a tool's output before it is recorded.
    async fn after_tool(&self, cx: &ToolContext, output: &mut ToolOutput) -> Result<()> {
        let _ = (cx, output);
        Ok(())
    }
}

/// A hook that lets a run call tools only so often. A call too many gets an error result that says so, and the run
/// goes on; [`Limits::tool_calls`](crate::Limits::tool_calls) instead ends it.
#[derive(Debug, Clone)]
pub struct ToolBudget {
    key: Uuid,
    total: u32,
    tools: BTreeMap<String, u32>,
}

impl ToolBudget {
    /// At most `total` calls in one run, of all tools together.
    pub fn new(total: u32) -> Self {
        Self { key: Uuid::now_v7(), total, tools: BTreeMap::new() }
    }

    /// And of the tool of this name at most `max`.
    pub fn tool(mut self, name: impl Into<String>, max: u32) -> Self {
        self.tools.insert(name.into(), max);
        self
    }
}

#[derive(Default)]
struct Used {
    total: u32,
    tools: HashMap<String, u32>,
}

#[async_trait]
impl ChatHook for ToolBudget {
    async fn before_tool(&self, cx: &ToolContext) -> Result<Option<ToolOutput>> {
        let used = cx.run.scratch::<Mutex<Used>>(self.key);
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        let name = &cx.call.name;
        let calls = used.tools.get(name).copied().unwrap_or_default();
        if let Some(max) = self.tools.get(name).filter(|max| calls >= **max) {
            return Ok(Some(skipped(&format!("`{name}` may be called {max}× in this run, and was"))));
        }
        if used.total >= self.total {
            return Ok(Some(skipped(&format!(
                "all {} tool calls of this run are used; answer with what you know",
                self.total
            ))));
        }
        used.total += 1;
        used.tools.insert(name.clone(), calls + 1);
        Ok(None)
    }
}

/// A hook that refuses a call whose tool and arguments were called before in the same run: the model has the answer
/// already. A call too many gets an error result that says so, and the run goes on.
#[derive(Debug, Clone)]
pub struct DuplicateCalls {
    key: Uuid,
    allowed: u32,
}

impl DuplicateCalls {
    /// Each call once.
    pub fn new() -> Self {
        Self::allow(1)
    }

    /// Each call at most so often.
    pub fn allow(times: u32) -> Self {
        Self { key: Uuid::now_v7(), allowed: times }
    }
}

impl Default for DuplicateCalls {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ChatHook for DuplicateCalls {
    async fn before_tool(&self, cx: &ToolContext) -> Result<Option<ToolOutput>> {
        let seen = cx.run.scratch::<Mutex<HashMap<String, u32>>>(self.key);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let times = seen.entry(call_key(&cx.call.name, &cx.call.arguments)).or_default();
        if *times >= self.allowed {
            let name = &cx.call.name;
            return Ok(Some(skipped(&format!(
                "`{name}` was already called with these arguments; use its earlier result"
            ))));
        }
        *times += 1;
        Ok(None)
    }
}

fn skipped(why: &str) -> ToolOutput {
    ToolOutput::error(format!("skipped: {why}"))
}

/// A call as text: equal calls are equal, however their arguments' keys are ordered.
fn call_key(name: &str, arguments: &Value) -> String {
    let mut arguments = arguments.clone();
    arguments.sort_all_objects();
    format!("{name}\n{arguments}")
}
