//! The evaluator that waits.

use std::time::Duration;

use agent_core::{Result, StateChange, StopReason};
use async_trait::async_trait;

use super::{
    log::{Change, Log, TaskRecord},
    registry::{Registry, Tasks},
};
use crate::{Interrupted, LoopContext, LoopEvaluation, LoopEvaluator, Verdict, text::cut};

/// How many characters of results are told at once; they are shared out equally.
const TOLD: usize = 40_000;
/// How many characters of one result are told at least, and at most. The state has all of it.
const TOLD_OF_ONE: (usize, usize) = (200, 8_000);

/// `background_done`: satisfied once every background task has ended and its end was told. Made by
/// [`BackgroundTasks::done`](crate::BackgroundTasks::done).
///
/// While tasks run it waits for the next end instead of spending iterations, and then goes on: the feedback tells which
/// tasks ended and what they came to, and the same event records it. A task whose run is gone is told as lost. If
/// nothing ends within the longest wait, the loop goes on with feedback that names what still runs, so that the agent
/// can do something else, wait or cancel; that, too, is one of the loop's iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundDone {
    max_wait: Duration,
}

impl BackgroundDone {
    pub(super) fn new(max_wait: Duration) -> Self {
        Self { max_wait }
    }
}

#[async_trait]
impl LoopEvaluator for BackgroundDone {
    fn name(&self) -> &'static str {
        "background_done"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        Ok(self.verdict(cx).await?.evaluation)
    }

    async fn verdict(&self, cx: &LoopContext<'_>) -> Result<Verdict> {
        Log::of(cx.session)?;
        let registry = Registry::of(cx.run);
        let sorted = || registry.sort(Log::of(cx.session).unwrap_or_default(), cx.run);
        let settled =
            registry.wait_for(|| Some(sorted()).filter(|tasks| !tasks.news.is_empty() || tasks.running.is_empty()));
        let tasks = match tokio::time::timeout(self.max_wait, settled).await {
            Ok(tasks) => tasks,
            Err(_) => sorted(),
        };
        if cx.run.cancel().is_cancelled() {
            return Err(Interrupted(StopReason::Cancelled).into()); // tasks that end by it are no news
        }
        let Tasks { running, news, told } = &tasks;
        cx.run.owe(registry.take_usage(running.iter().chain(news).chain(told), cx.run));
        if !news.is_empty() {
            let state = news.iter().map(recorded).collect();
            return Ok(Verdict { evaluation: LoopEvaluation::feedback(tell(news)), state });
        }
        if running.is_empty() {
            return Ok(LoopEvaluation::Satisfied.into());
        }
        let names: Vec<String> = running.iter().map(|task| format!("- task {} ({})", task.id, task.agent)).collect();
        let feedback = format!(
            "These background tasks still run, and none ended within {:?}:\n\n{}\n\nDo something else meanwhile, \
             wait with `task_wait`, or stop what hangs with `task_cancel`.",
            self.max_wait,
            names.join("\n")
        );
        Ok(LoopEvaluation::feedback(feedback).into())
    }
}

/// The change that records an end.
pub(super) fn recorded(task: &TaskRecord) -> StateChange {
    Change::End { id: task.id, status: task.status, result: task.result.clone() }.into()
}

/// What a model reads of tasks that ended.
pub(super) fn tell(tasks: &[TaskRecord]) -> String {
    let share = (TOLD / tasks.len().max(1)).clamp(TOLD_OF_ONE.0, TOLD_OF_ONE.1);
    let ended = |task: &TaskRecord| {
        let TaskRecord { id, agent, status, result, .. } = task;
        format!("## Task {id} ({agent}): {status}\n\n{}", cut(result, share))
    };
    let ended: Vec<String> = tasks.iter().map(ended).collect();
    format!("Background tasks that ended:\n\n{}", ended.join("\n\n"))
}
