//! An agent as a tool of another: a planner calls a specialist, which is a loop.
//!
//! The specialist works on a session of its own: it knows what the planner tells it, and the planner reads its last
//! word. But both are one run: they share its limits, its cancellation and its count of tokens. Try
//! `--model-calls 2`: the budget ends inside the specialist, and with it the run.

use std::{process::ExitCode, sync::Arc};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatClient, Limits, Result, RunContext, Session, StopReason, agent_tool,
};
use agent_examples::{ModelArgs, print_run};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use anstream::println;
use clap::Parser;

const REQUEST: &str = "The ferry Skarven sails again on Monday after its repair. Tell the passengers.";

/// Lets a planner call a specialist that writes headlines until they are short.
#[derive(Parser)]
struct Cli {
    /// How many model calls planner and specialist have together.
    #[arg(long, value_name = "N", default_value_t = 8)]
    model_calls: u32,
    #[command(flatten)]
    model: ModelArgs,
}

/// The tool's name is the loop's, its description is the inner agent's.
fn headline(model: Arc<dyn ChatClient>) -> impl Agent {
    let options = ChatAgentOptions {
        description: "Writes a short headline about what it is told.".into(),
        instructions: "Answer with a headline and nothing else.".into(),
        ..ChatAgentOptions::default()
    };
    let writer = ChatAgent::new("writer", model, options);
    let is_short = evaluate_fn("is_short", |cx| match cx.last.text().split_whitespace().count() {
        0..=5 => LoopEvaluation::Satisfied,
        words => LoopEvaluation::feedback(format!("{words} words are too many: use 5 at most.")),
    });
    LoopAgent::new("headline", writer, LoopOptions::default()).evaluator(is_short)
}

fn planner(model: Arc<dyn ChatClient>, specialist: impl Agent + 'static) -> impl Agent {
    let instructions = "You write notices for passengers: a headline, which you get from the tool `headline`, and one \
                        sentence.";
    let options = ChatAgentOptions { instructions: instructions.into(), ..ChatAgentOptions::default() };
    ChatAgent::new("planner", model, options).tool(agent_tool(specialist))
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.in_order(include_str!("planner.script.jsonl"), "planner")?;
    let specialist = cli.model.in_order(include_str!("writer.script.jsonl"), "writer")?;
    println!("{}\n{REQUEST}\n", cli.model.headline(&model));
    let agent = planner(model, headline(specialist));

    let (mut session, cx) =
        (Session::new(), RunContext::new(Limits { model_calls: Some(cli.model_calls), ..Limits::default() }));
    session.push(REQUEST);
    let stop = print_run(agent.run(&mut session, &cx)).await?;
    println!("spent: {} of {} model calls, the specialist's included", cx.spent().model_calls, cli.model_calls);
    Ok(stop)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
