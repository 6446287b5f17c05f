//! The smallest loop: a writer, and an evaluator that objects until the answer is short enough.

use std::process::ExitCode;

use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, Result, Session, StopReason};
use agent_examples::{ModelArgs, repeatable};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use anstream::println;
use clap::Parser;

/// Runs a writer until its answer is short enough.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.recorded(include_str!("hello_loop.jsonl"), "hello")?;
    let writer = ChatAgent::new("writer", model, ChatAgentOptions { chat: repeatable(), ..Default::default() });
    let is_short = evaluate_fn("is_short", |cx| match cx.last.text().split_whitespace().count() {
        0..=12 => LoopEvaluation::Satisfied,
        _ => LoopEvaluation::feedback("Shorter: at most 12 words, please."),
    });
    let agent = LoopAgent::new("shorten", writer, LoopOptions::default()).evaluator(is_short);

    let mut session = Session::new();
    let response = agent.ask(&mut session, "What is a lighthouse for?").await?;

    for message in session.messages() {
        println!("{}: {}", message.author.as_deref().unwrap_or("user"), message.text());
    }
    let iterations = LoopOutcome::of(&session, "shorten").map_or(0, |outcome| outcome.iterations.len());
    println!("stopped after {iterations} iterations: {}", response.stop);
    Ok(response.stop)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
