//! Tools to start tasks and to hear of them.

use std::{sync::Arc, time::Duration};

use agent_core::{Agent, BoxError, Tool, ToolContext, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    done::{recorded, tell},
    log::{Change, Log, TaskRecord},
    registry::{Registry, Tasks},
};
use crate::text::cut;

/// How many characters of a request a list shows.
const SHOWN: usize = 100;
/// How long `task_wait` waits if it is not told, in seconds.
const WAIT: u64 = 60;

#[derive(Deserialize, JsonSchema)]
struct Start {
    /// The agent's name.
    agent: String,
    /// What the agent is to do, with everything that it has to know.
    request: String,
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    /// The longest wait, in seconds; 60 if absent.
    seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct Results {
    /// The tasks to read; if absent, all that ended and were not told yet.
    ids: Option<Vec<u64>>,
}

#[derive(Deserialize, JsonSchema)]
struct Cancel {
    /// The task to stop.
    id: u64,
}

pub(super) fn tools(agents: &[Arc<dyn Agent>]) -> Vec<Arc<dyn Tool>> {
    let agents = agents.to_vec();
    let start = tool_fn("task_start", about(&agents), move |args: Start, cx: ToolContext| {
        let agents = agents.clone();
        async move { start(&agents, args, &cx) }
    });
    let list =
        tool_fn("task_list", "Lists the background tasks and how they are.", |_: Value, cx: ToolContext| async move {
            list(&cx)
        });
    let wait = tool_fn(
        "task_wait",
        "Waits until a background task ends, and tells what it came to.",
        |args: Wait, cx: ToolContext| async move { wait(args.seconds.unwrap_or(WAIT), &cx).await },
    );
    let results =
        tool_fn("task_results", "Tells what background tasks came to.", |args: Results, cx: ToolContext| async move {
            results(args.ids.as_deref(), &cx)
        });
    let cancel = tool_fn("task_cancel", "Stops a background task.", |args: Cancel, cx: ToolContext| async move {
        cancel(args.id, &cx)
    });
    vec![Arc::new(start), Arc::new(list), Arc::new(wait), Arc::new(results), Arc::new(cancel)]
}

fn about(agents: &[Arc<dyn Agent>]) -> String {
    let agents = agents.iter().map(Agent::info);
    let lines: Vec<String> = agents.map(|info| format!("\n- `{}`: {}", info.name, info.description)).collect();
    format!(
        "Starts an agent in the background and returns at once; you hear of its end later. Agents:{}",
        lines.concat()
    )
}

fn start(agents: &[Arc<dyn Agent>], args: Start, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let Start { agent, request } = args;
    let Some(found) = agents.iter().find(|known| known.info().name == agent) else {
        let known: Vec<String> = agents.iter().map(|agent| format!("`{}`", agent.info().name)).collect();
        return Err(format!("there is no agent named `{agent}`; there are: {}", known.join(", ")).into());
    };
    let log = Log::of(&cx.session)?;
    let id = Registry::of(&cx.run).start(found.clone(), request.clone(), &log, &cx.run);
    let text = format!("Task {id} runs.");
    let started = Change::Start { id, agent, request, run: cx.run.id() };
    Ok(ToolOutput { state: vec![started.into()], ..ToolOutput::text(text) })
}

fn list(cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let Tasks { running, news, told } = Registry::of(&cx.run).sort(Log::of(&cx.session)?, &cx.run);
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (tasks, note) in [(running, ""), (news, ", not read yet"), (told, "")] {
        lines.extend(tasks.into_iter().map(|task| {
            let TaskRecord { id, agent, request, status, .. } = task;
            (id, format!("- task {id} ({agent}): {status}{note}. Request: {}", cut(&request, SHOWN)))
        }));
    }
    lines.sort_unstable();
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    Ok(if lines.is_empty() { "There are no tasks.".into() } else { lines.join("\n").into() })
}

async fn wait(seconds: u64, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let registry = Registry::of(&cx.run);
    let log = || Log::of(&cx.session).unwrap_or_default();
    let settled = |tasks: &Tasks| !tasks.news.is_empty() || tasks.running.is_empty();
    let settled = registry.wait_for(|| Some(registry.sort(log(), &cx.run)).filter(settled));
    let limit = Duration::from_secs(seconds);
    match tokio::time::timeout(limit, settled).await {
        Ok(_) => results(None, cx),
        Err(_) => Ok(format!("No task ended within {limit:?}.").into()),
    }
}

/// Tells ends: each that is new is recorded with the result.
fn results(ids: Option<&[u64]>, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let registry = Registry::of(&cx.run);
    let Tasks { running, news, told } = registry.sort(Log::of(&cx.session)?, &cx.run);
    let usage = registry.take_usage(running.iter().chain(&news).chain(&told), &cx.run);
    let wanted = |task: &TaskRecord| ids.is_none_or(|ids| ids.contains(&task.id));
    let mut news = news;
    news.retain(|task| wanted(task) && registry.may_tell(task, &cx.session));
    let state = news.iter().map(recorded).collect();
    let mut tasks = news;
    if let Some(ids) = ids {
        tasks.extend(told.into_iter().filter(wanted));
        tasks.sort_unstable_by_key(|task| task.id);
        let unknown = |id: &&u64| !tasks.iter().chain(&running).any(|task| task.id == **id);
        if tasks.is_empty()
            && let Some(id) = ids.iter().find(unknown)
        {
            return Err(format!("no task {id} has a result to read here; see `task_list`").into());
        }
    }
    let running: Vec<String> = running.iter().filter(|task| wanted(task)).map(|task| task.id.to_string()).collect();
    let text = match (tasks.is_empty(), running.is_empty()) {
        (true, true) => "No task has an end to tell, and none runs.".to_owned(),
        (true, false) => format!("Still running: {}.", running.join(", ")),
        (false, true) => tell(&tasks),
        (false, false) => format!("{}\n\nStill running: {}.", tell(&tasks), running.join(", ")),
    };
    Ok(ToolOutput { state, usage: Some(usage).filter(|usage| usage.total() > 0), ..ToolOutput::text(text) })
}

fn cancel(id: u64, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let registry = Registry::of(&cx.run);
    let Tasks { running, news, told } = registry.sort(Log::of(&cx.session)?, &cx.run);
    if running.iter().any(|task| task.id == id) {
        registry.cancel(id);
        return results(Some(&[id]), cx);
    }
    match news.iter().chain(&told).find(|task| task.id == id) {
        Some(task) => Ok(format!("Task {id} is {} already.", task.status).into()),
        None => Err(format!("there is no task {id}").into()),
    }
}
