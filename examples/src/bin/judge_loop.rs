//! A model that judges another, behind a floor that costs nothing.
//!
//! Evaluators are asked in order, and the first that objects decides. So what a program can tell stands first: while
//! the floor objects, the judge is not called. What the judge uses counts for the iteration that it judges, and for the
//! run's limits.
//!
//! The writer was recorded. Half a billion parameters are too few for a judge, so a person wrote its verdicts; their
//! tokens are those that the recorded model would have used.

use std::process::ExitCode;

use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Result, Session, StopReason, Usage};
use agent_examples::{ModelArgs, repeatable};
use agent_loop::{IterationRecord, Judge, LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use anstream::println;
use clap::Parser;

const REQUEST: &str = "What is a lighthouse for?";

/// Runs a writer until a floor and a judge are content.
#[derive(Parser)]
struct Cli {
    /// The model that judges, if it is another than the writer's.
    #[arg(long, value_name = "PROVIDER:NAME", requires = "model")]
    judge: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.recorded(include_str!("judge_loop.jsonl"), "writer")?;
    let judge = cli.model.or(cli.judge).in_order(include_str!("judge_loop.script.jsonl"), "judge")?;
    println!("{}; judge: {}\n{REQUEST}\n", cli.model.headline(&model), judge.model());
    let judge = Judge::new(judge).criteria(["It mentions ships."]).options(repeatable());
    let writer = ChatAgent::new("writer", model, ChatAgentOptions { chat: repeatable(), ..Default::default() });
    let floor = evaluate_fn("floor", |cx| match cx.last.text().split_whitespace().count() {
        0..=12 => LoopEvaluation::Satisfied,
        _ => LoopEvaluation::feedback("Shorter: at most 12 words, please."),
    });
    let agent = LoopAgent::new("judged", writer, LoopOptions::default()).evaluator(floor).evaluator(judge);

    let mut session = Session::new();
    let response = agent.ask(&mut session, REQUEST).await?;

    let mut written = Usage::default();
    for event in &response.events {
        if let Some((_, IterationRecord { usage, by, feedback, .. })) = IterationRecord::of(event) {
            let verdict = by.map_or("accepted".to_owned(), |by| format!("{by}: {}", feedback.unwrap_or_default()));
            let judged = usage.total() - written.total();
            println!("[{verdict}]\n[tokens: {} of the writer, {judged} of the judge]\n", written.total());
            written = Usage::default();
        } else {
            written += event.usage.unwrap_or_default();
        }
        for message in event.messages.iter().filter(|message| message.author.as_deref() == Some("writer")) {
            println!("{}", message.text());
        }
    }
    let iterations = LoopOutcome::of(&session, "judged").map_or(0, |outcome| outcome.iterations.len());
    println!("stop: {}; iterations: {iterations}; tokens: {}", response.stop, response.usage.total());
    Ok(response.stop)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
