//! Reason, act, observe: an agent looks for the cause of an incident with three tools, within bounds.
//!
//! - `ToolBudget` and `DuplicateCalls` answer a call too many with "skipped: …", and the run goes on: the model has to
//!   make do with what it knows.
//! - `Limits` end the run, whatever the model wants.
//! - What the model thinks goes to a trace; the answer has none of it.

mod tools;

use std::{fs::File, io::Write, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatClient, Content, DuplicateCalls, Error, ErrorKind, Limits, Result,
    RunContext, Session, StopReason, ToolBudget, Update,
};
use agent_examples::{ModelArgs, print_run};
use anstream::println;
use clap::Parser;
use futures::{StreamExt, TryStreamExt};

const INCIDENT: &str = "Since 14:05 customers cannot pay: checkout answers 500. What is the cause, and what helps?";

/// Finds the cause of an incident in the log, the metrics and the deploys of an invented shop.
#[derive(Parser)]
struct Cli {
    /// Write what the model thinks to this file instead of the standard error output.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
}

fn triage(model: Arc<dyn ChatClient>) -> impl Agent {
    let instructions = "You find the cause of incidents in a shop of three services: checkout, which calls payments, and \
                        catalog. Look at metrics, log and deploys before you answer. Then name the cause, the evidence \
                        and a remedy, in three sentences at most.";
    let options = ChatAgentOptions { instructions: instructions.into(), ..ChatAgentOptions::default() };
    ChatAgent::new("triage", model, options)
        .tool(tools::search_log())
        .tool(tools::read_metric())
        .tool(tools::list_deploys())
        .hook(DuplicateCalls::new())
        .hook(ToolBudget::new(8).tool("search_log", 2))
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.scripted(include_str!("script.jsonl"), "incident")?;
    println!("{}", cli.model.headline(&model));
    let agent = triage(model);
    let limits =
        Limits { model_calls: Some(12), tool_calls: Some(12), wall: Some(Duration::from_mins(5)), ..Limits::default() };
    let mut trace = open_trace(cli.trace)?;

    println!("{INCIDENT}\n");
    let (mut session, cx) = (Session::new(), RunContext::new(limits));
    session.push(INCIDENT);
    let updates = agent.run(&mut session, &cx).inspect_ok(|update| write_thoughts(update, &mut trace)).boxed();
    print_run(updates).await
}

fn open_trace(file: Option<PathBuf>) -> Result<Box<dyn Write + Send>> {
    let Some(path) = file else { return Ok(Box::new(std::io::stderr())) };
    let file = File::create(&path).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("write the trace {}", path.display())).with_source(error)
    })?;
    Ok(Box::new(file))
}

fn write_thoughts(update: &Update, trace: &mut dyn Write) {
    let Update::Event(event) = update else { return };
    for content in event.messages.iter().flat_map(|message| message.contents.iter()) {
        if let Content::Reasoning { text, .. } = content {
            // A trace that cannot be written does not end the run.
            let _ = writeln!(trace, "{} thinks: {text}", event.author);
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
