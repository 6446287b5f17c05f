//! An agent that plans, and is not let go before the plan is done.
//!
//! The model writes todos with the tools of `todo_tools`; `TodosDone` objects while one of them is open. Here the model
//! is content after the first of three inspections, and would have let a ferry sail that lacks fuel.

use std::{process::ExitCode, sync::Arc};

use agent_core::{
    Agent, BoxError, ChatAgent, ChatAgentOptions, ChatClient, Result, RunContext, Session, StopReason, Tool,
    ToolContext, tool_fn,
};
use agent_examples::{ModelArgs, print_run};
use agent_loop::{LoopAgent, LoopOptions, TodosDone, todo_tools};
use anstream::println;
use clap::Parser;
use schemars::JsonSchema;
use serde::Deserialize;

const REQUEST: &str = "May the ferry Skarven sail? Look at its life jackets, its fuel and its radio.";

/// Inspects a ferry until every todo is done.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
}

/// The tool's arguments.
#[derive(Deserialize, JsonSchema)]
struct Inspect {
    /// What to look at: `life jackets`, `fuel` or `radio`.
    thing: String,
}

fn inspect() -> impl Tool {
    tool_fn("inspect", "Looks at a part of the ferry.", |Inspect { thing }: Inspect, _: ToolContext| async move {
        match thing.as_str() {
            "life jackets" => Ok("212, for 200 seats"),
            "fuel" => Ok("900 l; the crossing takes 1,200 l"),
            "radio" => Ok("answers on channel 16"),
            _ => Err(BoxError::from("there are: life jackets, fuel, radio")),
        }
    })
}

fn inspection(model: Arc<dyn ChatClient>) -> impl Agent {
    let instructions = "You inspect ferries. Plan with `todo_add`, look with `inspect`, and complete each todo with \
                        `todo_complete` once you have looked. Then say in two sentences whether the ferry may sail.";
    let options = ChatAgentOptions { instructions: instructions.into(), ..ChatAgentOptions::default() };
    let inspector = ChatAgent::new("inspector", model, options).tool(inspect());
    let inspector = todo_tools().into_iter().fold(inspector, ChatAgent::tool);
    LoopAgent::new("inspection", inspector, LoopOptions::default()).evaluator(TodosDone::new())
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.in_order(include_str!("todo_loop.script.jsonl"), "todos")?;
    println!("{}\n{REQUEST}\n", cli.model.headline(&model));

    let mut session = Session::new();
    session.push(REQUEST);
    print_run(inspection(model).run(&mut session, &RunContext::default())).await
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
