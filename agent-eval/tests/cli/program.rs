//! A program with the command: this test binary, started again.

use std::{num::NonZeroU32, process::exit, sync::Arc, time::Duration};

use agent_core::{
    Agent, ChatClient, ChatMessage, Draft, Error, ErrorKind, Result, StopReason, Usage, agent_fn,
    testing::ScriptedAgent,
};
use agent_eval::{EvalCommand, EvalSet, ModelSource, Project, SetupError, Subject, TrialSpec, subject_fn};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use clap::Parser;

use crate::support::{ARGUMENTS, BEGIN};

/// What a user's own program is: its subjects, and ten lines.
#[derive(Debug, Parser)]
#[command(name = "eval")]
struct Program {
    #[command(flatten)]
    eval: EvalCommand,
}

/// Runs the command with the arguments that the tests give, and exits with its code.
#[test]
#[ignore = "started by the other tests"]
fn program() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let arguments: Vec<String> = serde_json::from_str(&arguments).unwrap();
    println!("{BEGIN}");
    let program = Program::parse_from(std::iter::once("eval".to_owned()).chain(arguments));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let code = runtime.block_on(program.eval.run(&Scripted));
    exit(if code == std::process::ExitCode::SUCCESS { 0 } else { code_of(code) });
}

/// The number in an exit code, which has no accessor.
fn code_of(code: std::process::ExitCode) -> i32 {
    (1..=255_u8).find(|number| std::process::ExitCode::from(*number) == code).map_or(1, Into::into)
}

struct Scripted;

impl Project for Scripted {
    fn subjects(&self) -> Vec<&str> {
        vec!["acts", "loops"]
    }

    fn subject(&self, name: &str, _: &EvalSet, source: &ModelSource) -> Result<Option<Box<dyn Subject>>> {
        Ok(match name {
            "acts" => Some(Box::new(Versioned(subject_fn(acts), source.model.clone()))),
            "loops" => Some(Box::new(subject_fn(loops))),
            "nested" => Some(Box::new(subject_fn(nested))),
            "no-cassette" => return Err(Error::new(ErrorKind::Store, "read the cassette answers.jsonl")),
            _ => None,
        })
    }

    fn client(&self, model: &str, _: Option<&str>) -> Result<Arc<dyn ChatClient>> {
        Err(Error::new(ErrorKind::Invalid, format!("find the model `{model}`; known are none")))
    }
}

/// A subject whose fingerprint is its model.
struct Versioned<S>(S, Option<String>);

#[async_trait::async_trait]
impl<S: Subject> Subject for Versioned<S> {
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        self.0.agent(trial).await
    }

    fn fingerprint(&self) -> serde_json::Value {
        serde_json::json!({ "model": self.1 })
    }
}

type Made<'a> = futures::future::BoxFuture<'a, Result<Arc<dyn Agent>>>;

/// An agent that acts as the case's metadata say.
fn acts<'a>(trial: &'a TrialSpec<'a>) -> Made<'a> {
    let act = trial.case.metadata.get("act").and_then(serde_json::Value::as_str).unwrap_or("good").to_owned();
    let repeat = trial.key.repeat;
    let agent = agent_fn("actor", move |session, out| {
        let act = act.clone();
        Box::pin(async move {
            let text = match act.as_str() {
                "flaky" if repeat.is_multiple_of(2) => "good",
                "bad" | "flaky" => "bad",
                "down" => return Err(Error::new(ErrorKind::Provider, "ask the service").transient()),
                "unrecorded" => {
                    let why = SetupError::new("the call is not in the cassette; record it");
                    return Err(Error::new(ErrorKind::Invalid, "replay a call").with_source(why));
                }
                "hangs" => std::future::pending().await,
                "slow" => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    "good"
                }
                _ => "good",
            };
            let usage = Usage { input_tokens: 100, ..Usage::default() };
            out.record(session, Draft::message(ChatMessage::assistant(text)).usage(usage)).await;
            Ok(StopReason::Completed)
        })
    });
    Box::pin(async { Ok(Arc::new(agent) as _) })
}

/// A loop whose draft is good from the iteration that the case's metadata say.
fn loops<'a>(trial: &'a TrialSpec<'a>) -> Made<'a> {
    const CAP: u64 = 3;
    let good_at = trial.case.metadata.get("good_at").and_then(serde_json::Value::as_u64).unwrap_or(1);
    let mut writer = ScriptedAgent::new("writer");
    for iteration in 1..=good_at.min(CAP) {
        writer = writer.says(if iteration == good_at { "good".to_owned() } else { format!("draft {iteration}") });
    }
    let agent = until_good("refine", writer, 3);
    Box::pin(async { Ok(Arc::new(agent) as _) })
}

/// A loop in a loop: the inner one ends at its cap, with the draft that it began with, before a good one follows; and
/// the same in the next turn.
fn nested<'a>(_: &'a TrialSpec<'a>) -> Made<'a> {
    let drafts = ["draft", "draft", "good", "other", "other", "good"];
    let writer = drafts.into_iter().fold(ScriptedAgent::new("writer"), ScriptedAgent::says);
    let agent = until_good("outer", until_good("inner", writer, 2), 3);
    Box::pin(async { Ok(Arc::new(agent) as _) })
}

fn until_good(name: &str, inner: impl Agent + 'static, cap: u32) -> LoopAgent {
    let is_good = evaluate_fn("is-good", |cx| {
        if cx.last.text() == "good" { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback("not good") }
    });
    let options = LoopOptions { max_iterations: NonZeroU32::new(cap).unwrap(), ..LoopOptions::default() };
    LoopAgent::new(name, inner, options).evaluator(is_good)
}
