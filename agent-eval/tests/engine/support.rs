//! Sets, subjects and judges that the tests share.

use std::{
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use agent_core::{
    Agent, ChatMessage, Draft, Error, ErrorKind, Result, StopReason, Usage, agent_fn, testing::ScriptedAgent,
};
use agent_eval::{
    Check, CheckContext, EvalSet, Outcome, Progress, RunOptions, Scorer, SetReport, Subject, Trial, TrialSpec,
    subject_fn,
};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use serde_json::{Value, json};

/// A set of cases that say "go" and expect "good".
pub(crate) fn set_of(ids: impl IntoIterator<Item = impl Into<String>>) -> EvalSet {
    let case = |id: String| json!({ "id": id, "input": { "text": "go" }, "expected": ["good"] });
    set_with(ids.into_iter().map(|id| case(id.into())))
}

/// A set of these cases.
pub(crate) fn set_with(cases: impl IntoIterator<Item = Value>) -> EvalSet {
    let cases: Vec<Value> = cases.into_iter().collect();
    serde_json::from_value(json!({ "schema": "agent-eval/1", "name": "set", "cases": cases })).unwrap()
}

/// Ids whose order is that of their numbers.
pub(crate) fn ids(count: u32) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("case-{number:04}"))
}

/// The number in a case's id.
pub(crate) fn number(trial: &TrialSpec<'_>) -> u32 {
    trial.case.id.trim_start_matches("case-").parse().unwrap()
}

pub(crate) fn repeats(count: u32) -> RunOptions {
    RunOptions { repeats: NonZeroU32::new(count), ..RunOptions::default() }
}

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Good,
    Bad,
    Fails(ErrorKind),
    Panics,
    Hangs,
}

/// A subject whose agent acts once, as the function says for the trial.
pub(crate) fn acts(act: impl Fn(&TrialSpec<'_>) -> Act + Send + Sync + 'static) -> impl Subject {
    subject_fn(move |trial| {
        let act = act(trial);
        Box::pin(async move { Ok(agent(act)) })
    })
}

pub(crate) fn agent(act: Act) -> Arc<dyn Agent> {
    Arc::new(agent_fn("worker", move |session, out| {
        Box::pin(async move {
            let text = match act {
                Act::Good => "good",
                Act::Bad => "bad",
                Act::Fails(kind) => return Err(Error::new(kind, "reach the model")),
                Act::Panics => panic!("out of paper"),
                Act::Hangs => std::future::pending().await,
            };
            let usage = Usage { input_tokens: 10, ..Usage::default() };
            out.record(session, Draft::message(ChatMessage::assistant(text)).usage(usage)).await;
            Ok(StopReason::Completed)
        })
    }))
}

/// When a scripted loop's draft is good.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writer {
    /// From this iteration on.
    GoodAt(u32),
    Never,
    /// It fails in this iteration.
    FailsAt(u32),
}

/// A loop that asks until the draft is good, at most `cap` times; iteration k uses 800 + 200 k tokens.
pub(crate) fn writing_loop(writer: Writer, cap: u32) -> Arc<dyn Agent> {
    let mut script = ScriptedAgent::new("writer");
    let last = match writer {
        Writer::GoodAt(last) => last,
        Writer::Never => cap,
        Writer::FailsAt(broken) => broken - 1,
    };
    for iteration in 1..=last {
        let is_good = matches!(writer, Writer::GoodAt(good) if iteration >= good);
        let text = if is_good { "good".to_owned() } else { format!("bad {iteration}") };
        let usage = Usage { input_tokens: 800 + 200 * u64::from(iteration), ..Usage::default() };
        script = script.turn(Draft::message(ChatMessage::assistant(text)).usage(usage), StopReason::Completed);
    }
    Arc::new(until_good("refine", script, cap))
}

/// A loop around an agent until its answer is "good".
pub(crate) fn until_good(name: &str, inner: impl Agent + 'static, cap: u32) -> LoopAgent {
    let is_good = evaluate_fn("is-good", |cx| {
        if cx.last.text() == "good" { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback("not good") }
    });
    let options = LoopOptions { max_iterations: NonZeroU32::new(cap).unwrap(), ..LoopOptions::default() };
    LoopAgent::new(name, inner, options).evaluator(is_good)
}

/// A subject whose agent is a [`writing_loop`].
pub(crate) fn writes(cap: u32, writer: impl Fn(&TrialSpec<'_>) -> Writer + Send + Sync + 'static) -> impl Subject {
    subject_fn(move |trial| {
        let writer = writer(trial);
        Box::pin(async move { Ok(writing_loop(writer, cap)) })
    })
}

/// A subject with a fingerprint.
pub(crate) struct Versioned<S>(pub(crate) S, pub(crate) Value);

#[async_trait::async_trait]
impl<S: Subject> Subject for Versioned<S> {
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        self.0.agent(trial).await
    }

    fn fingerprint(&self) -> Value {
        self.1.clone()
    }
}

/// A judge of a fixed opinion; none is a crash.
pub(crate) struct Opinion(pub(crate) Option<Outcome>);

#[async_trait::async_trait]
impl Scorer for Opinion {
    fn name(&self) -> &'static str {
        "opinion"
    }

    async fn score(&self, _: &CheckContext<'_>) -> Outcome {
        self.0.clone().expect("the judge crashed")
    }
}

/// A check from a function.
pub(crate) struct Holds(pub(crate) &'static str, pub(crate) fn(&CheckContext<'_>) -> Outcome);

impl Check for Holds {
    fn name(&self) -> &'static str {
        self.0
    }

    fn check(&self, cx: &CheckContext<'_>) -> Outcome {
        (self.1)(cx)
    }
}

/// Keeps the trials, in the order of their keys.
#[derive(Default)]
pub(crate) struct Kept {
    trials: Mutex<Vec<Trial>>,
    pub(crate) began: AtomicU32,
}

impl Kept {
    pub(crate) fn trials(&self) -> Vec<Trial> {
        let mut trials = self.trials.lock().unwrap().clone();
        trials.sort_by(|a, b| a.key.cmp(&b.key));
        trials
    }
}

impl Progress for Kept {
    fn trial_began(&self, _: &agent_eval::TrialKey) {
        self.began.fetch_add(1, Relaxed);
    }

    fn trial_ended(&self, trial: &Trial) {
        self.trials.lock().unwrap().push(trial.clone());
    }
}

/// The only set's report, and the trials.
pub(crate) async fn run(set: &EvalSet, subject: &dyn Subject, options: RunOptions) -> (SetReport, Vec<Trial>) {
    let kept = Arc::new(Kept::default());
    let report = set.run(subject, RunOptions { progress: Some(kept.clone()), ..options }).await.unwrap();
    (report.sets.into_iter().next().unwrap(), kept.trials())
}

/// A report as JSON without what differs between equal runs: the run's id and times.
pub(crate) fn timeless(report: &agent_eval::Report) -> String {
    let mut value = serde_json::to_value(report).unwrap();
    value["manifest"]["run"] = Value::Null;
    value["manifest"]["began"] = Value::Null;
    erase_times(&mut value);
    serde_json::to_string_pretty(&value).unwrap()
}

fn erase_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("wall_ms");
            fields.values_mut().for_each(erase_times);
        }
        Value::Array(items) => items.iter_mut().for_each(erase_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}
