//! What a loop's context costs: the same task with a shared and with a fresh one.
//!
//! Shared, each iteration sends all earlier drafts and objections again: its input grows with everything that was said.
//! Fresh, it sends the request and one list of all objections: its input grows with the objections only. The session's
//! state is kept in both.
//!
//! Tokens are not all: the small model that was recorded here, shown its drafts, repeats itself and never gets all facts
//! into one notice. A large model may do better with its drafts before it.

use std::{num::NonZeroU32, process::ExitCode, sync::Arc};

use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, ChatClient, Result, Session, StopReason};
use agent_examples::{ModelArgs, repeatable};
use agent_loop::{ContextMode, LoopAgent, LoopContext, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use anstream::println;
use clap::Parser;

const REQUEST: &str = "Write a notice for the passengers of the ferry Skarven.";

/// What the notice has to say; the author learns it one by one.
const WANTED: [(&str, &str); 4] = [
    ("09:30", "Say that it departs at 09:30."),
    ("149", "Say that a ticket costs 149 crowns."),
    ("dogs", "Say that dogs are welcome."),
    ("Storøy", "Say that it goes to Storøy."),
];

const CAP: NonZeroU32 = NonZeroU32::new(6).expect("not zero");

/// Counts what each iteration of a loop sends to the model, with a shared and with a fresh context.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
}

fn first_gap(cx: &LoopContext<'_>) -> LoopEvaluation {
    let text = cx.last.text();
    match WANTED.iter().find(|(word, _)| !text.contains(word)) {
        Some((_, wish)) => LoopEvaluation::feedback(*wish),
        None => LoopEvaluation::Satisfied,
    }
}

/// The notice that came of it, and how the loop went.
async fn write(model: Arc<dyn ChatClient>, context: ContextMode) -> Result<(String, LoopOutcome)> {
    let author = ChatAgent::new("author", model, ChatAgentOptions { chat: repeatable(), ..Default::default() });
    let options = LoopOptions { max_iterations: CAP, context, ..LoopOptions::default() };
    let agent = LoopAgent::new("notice", author, options).evaluator(evaluate_fn("gaps", first_gap));
    let mut session = Session::new();
    let response = agent.ask(&mut session, REQUEST).await?;
    Ok((response.text(), LoopOutcome::of(&session, "notice").unwrap_or_default()))
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.recorded(include_str!("fresh_context.jsonl"), "notice")?;
    println!("{}\n{REQUEST}", cli.model.headline(&model));
    let mut end = StopReason::Completed;
    for (name, context) in [("shared", ContextMode::Shared), ("fresh", ContextMode::Fresh)] {
        let (notice, outcome) = write(model.clone(), context).await?;
        println!("\n{name}");
        for (at, record) in (1..).zip(&outcome.iterations) {
            let verdict = record.feedback.as_deref().unwrap_or("accepted");
            println!(
                "iteration {at}: {:4} tokens in, {:3} out; {verdict}",
                record.usage.input_tokens, record.usage.output_tokens
            );
        }
        let tokens: u64 = outcome.iterations.iter().map(|record| record.usage.input_tokens).sum();
        let stop = outcome.stop.unwrap_or(StopReason::Completed);
        println!("stop: {stop}; {tokens} tokens in\n{notice}");
        end = stop;
    }
    Ok(end)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
