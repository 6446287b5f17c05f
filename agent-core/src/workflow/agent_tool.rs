//! An agent as a tool of another.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Agent, BoxError, Session, StopReason, Tool, ToolContext, ToolFn, ToolOutput, Update, emitter::next_update,
    response::Fold, tool_fn,
};

/// What a model tells an agent that it uses as a tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct Request {
    /// What the agent is to do, with everything that it has to know.
    request: String,
}

/// An agent as a tool: each call is a run on a session of its own, under the same limits and cancellation.
///
/// The tool has the agent's name and description. Its result is the agent's last text if the run ended
/// [`Completed`](StopReason::Completed) or [`Escalated`](StopReason::Escalated); an escalation stays inside. Any
/// other end is an error result that names it, and so is an error. An approval cannot be answered from outside, so
/// an agent that asks for one ends with an error result: give such tools to the outer agent. The tokens that it used
/// are in [`ToolOutput::usage`].
///
/// Agents that are tools of each other nest 8 deep at most; a deeper call is an error result.
pub fn agent_tool(agent: impl Agent + 'static) -> impl Tool {
    let info = agent.info().clone();
    let agent = std::sync::Arc::new(agent);
    let run = move |args: Request, cx: ToolContext| {
        let agent = agent.clone();
        async move { Ok::<_, BoxError>(ask(&*agent, args.request, &cx).await) }
    };
    let tool: ToolFn<Request, _> = tool_fn(info.name, info.description, run);
    tool
}

/// How deep agents nest as tools. Each level is on the stack, which ends the process where it ends; a model must not be
/// able to bring that about.
const DEEPEST: u32 = 8;

/// What the agent says, whatever happens: tokens are counted also where the run fails.
async fn ask(agent: &dyn Agent, request: String, cx: &ToolContext) -> ToolOutput {
    if cx.run.depth() >= DEEPEST {
        let name = &agent.info().name;
        let context =
            format!("agent `{name}` was not run: agents nest {DEEPEST} deep as tools at most; answer without it");
        return ToolOutput::error(context);
    }
    let mut session = Session::new();
    session.push(request);
    let run = cx.run.for_tool();
    let mut updates = agent.run(&mut session, &run);
    let mut fold = Fold::default();
    let end = loop {
        match next_update(&mut updates).await {
            Err(error) => break Err(error),
            Ok(Update::Delta(_)) => (),
            Ok(Update::Event(event)) => fold.add(event),
            Ok(Update::Done(stop)) => break Ok(stop),
        }
    };
    let response = fold.end(StopReason::Completed);
    let output = match end {
        Ok(StopReason::Completed | StopReason::Escalated) => ToolOutput::text(response.text()),
        Ok(stop) => ToolOutput::error(format!("agent `{}` did not finish: {stop}", agent.info().name)),
        Err(error) => ToolOutput::error(format!("agent `{}` failed: {error:#}", agent.info().name)),
    };
    ToolOutput { usage: Some(response.usage), ..output }
}
