//! Tools from an MCP server, and an agent as one.
//!
//! Without more words it starts itself as a server (`--serve`): a loop that writes headlines is a tool there, and a
//! planner in this process calls it. Any other server takes its place: what follows `--` is started as one, its tools are
//! listed, and the agent makes the calls that it is told to, or those that a model (`--model`) finds right.
//!
//! A server that does not start is an error that says what it said: try `-- false`. One that dies later is an error
//! result, which the agent reads.

use std::{ffi::OsString, process::ExitCode};

use agent_core::{Agent, ChatAgent, ChatAgentOptions, Error, ErrorKind, Result, RunContext, Session, StopReason};
use agent_examples::{ModelArgs, Script, print_run, repeatable};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use agent_providers::{McpCommand, McpOptions, McpServer, McpTools};
use anstream::println;
use clap::Parser;
use serde_json::{Value, json};

/// Lets an agent use the tools of an MCP server.
#[derive(Parser)]
struct Cli {
    /// Be the server: an agent as a tool, over standard input and output.
    #[arg(long)]
    serve: bool,
    /// What the agent is asked.
    #[arg(long, default_value = "The ferry Skarven sails again on Monday after its repair. Tell the passengers.")]
    question: String,
    /// Call this tool of the server, such as `echo={"message":"hello"}`; may be given several times. Without a model.
    #[arg(long = "call", value_name = "TOOL=JSON", value_parser = call, conflicts_with = "model")]
    calls: Vec<(String, Value)>,
    #[command(flatten)]
    model: ModelArgs,
    /// The server's program and its arguments.
    #[arg(last = true, value_name = "SERVER")]
    server: Vec<OsString>,
}

fn call(text: &str) -> Result<(String, Value), String> {
    let (name, arguments) = text.split_once('=').ok_or("write it like TOOL={\"name\":\"value\"}")?;
    let arguments = serde_json::from_str(arguments).map_err(|error| format!("the arguments are no JSON: {error}"))?;
    Ok((name.to_owned(), arguments))
}

/// What is served: like every agent, a loop is one tool.
fn headline(cli: &Cli) -> Result<impl Agent + 'static> {
    let options = ChatAgentOptions {
        description: "Writes a short headline about what it is told.".to_owned(),
        instructions: "Answer with a headline and nothing else.".into(),
        chat: repeatable(),
        ..ChatAgentOptions::default()
    };
    let model = cli.model.in_order(include_str!("headline.script.jsonl"), "headline")?;
    let is_short = evaluate_fn("is_short", |cx| match cx.last.text().chars().count() {
        0..=30 => LoopEvaluation::Satisfied,
        n => LoopEvaluation::feedback(format!("That is {n} characters; 30 at most.")),
    });
    Ok(LoopAgent::new("headline", ChatAgent::new("writer", model, options), LoopOptions::default()).evaluator(is_short))
}

/// The server of the command line, or this program with the same words, so that both ask the same model.
fn server(cli: &Cli) -> Result<McpCommand> {
    if let [program, args @ ..] = &cli.server[..] {
        return Ok(McpCommand::new(program).args(args));
    }
    let this = std::env::current_exe();
    let this = this.map_err(|error| Error::new(ErrorKind::Invalid, "find this program").with_source(error))?;
    Ok(McpCommand::new(this).arg("--serve").args(std::env::args_os().skip(1)).inherit_env())
}

/// What the model says where there is none: the calls, one after the other.
fn script(cli: &Cli) -> Result<Script> {
    if cli.server.is_empty() && cli.calls.is_empty() {
        return Script::parse(include_str!("planner.script.jsonl"));
    }
    let lines = cli.calls.iter().map(|call| json!({ "calls": [call] })).chain([json!({ "says": "That is all." })]);
    Script::parse(&lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n"))
}

async fn run(cli: Cli) -> Result<StopReason> {
    if cli.serve {
        // From here on, standard output belongs to the protocol.
        McpServer::new(headline(&cli)?).serve_stdio().await?;
        return Ok(StopReason::Completed);
    }
    let model = cli.model.client_or("planner", || script(&cli))?;
    println!("{}", cli.model.headline(&model));
    let server = McpTools::stdio(server(&cli)?, McpOptions::default()).await?;
    let instructions = "You help the passengers of a ferry. Use your tools.";
    let options =
        ChatAgentOptions { instructions: instructions.into(), chat: repeatable(), ..ChatAgentOptions::default() };
    let mut agent = ChatAgent::new("planner", model, options);
    for tool in server.tools().await? {
        let spec = tool.spec();
        println!("tool: {}: {}", spec.name, spec.description.lines().next().unwrap_or_default());
        agent = agent.tool(tool);
    }
    println!("\n{}\n", cli.question);
    let (mut session, cx) = (Session::new(), RunContext::default());
    session.push(cli.question);
    let stop = print_run(agent.run(&mut session, &cx)).await;
    server.close().await;
    stop
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
