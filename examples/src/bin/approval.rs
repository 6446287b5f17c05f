//! A tool that needs a person's consent, given in another process.
//!
//! ```text
//! $ approval                          the agent wants to refund: the run stops, the process ends (or is killed)
//! $ approval answer --approve         another process answers and goes on: the refund is made, once
//! ```
//!
//! Nothing waits in memory. The session is a file of events; "go on after an answer" and "go on after a crash" are the
//! same call. What a tool does to the world is no event, and a crash may come between the two; so this tool notes each
//! refund under its call, and makes none twice.

use std::{
    fs::{OpenOptions, read_to_string},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use agent_core::{
    Agent, BoxError, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, Error, ErrorKind, JsonlStore, Result, Role,
    RunContext, Runner, Session, SessionStore, StopReason, Tool, ToolContext, tool_fn,
};
use agent_examples::{ModelArgs, call_text, print_run};
use anstream::println;
use clap::{ArgGroup, Parser, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;

const REQUEST: &str = "The ferry of booking 17 did not sail. It cost 149 crowns. Please pay me back.";
const SESSION: &str = "booking-17";

/// Asks before it pays: an agent whose tool needs approval, and the answer to it from another process.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    step: Option<Step>,
    /// Where the session and the ledger are kept.
    #[arg(long, global = true, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("agent-approval"))]
    dir: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Subcommand)]
enum Step {
    /// A customer asks for a refund; stops where the agent wants to make it. The default.
    Start,
    /// Answers what the agent asked, and goes on.
    #[command(group = ArgGroup::new("answer").required(true))]
    Answer {
        /// Let the agent do it.
        #[arg(long, group = "answer")]
        approve: bool,
        /// Do not, for this reason.
        #[arg(long, group = "answer", value_name = "REASON")]
        reject: Option<String>,
    },
    /// Goes on without a word, after a crash.
    Resume,
}

/// The tool's arguments.
#[derive(Deserialize, JsonSchema)]
struct Refund {
    /// The number of the booking.
    booking: u32,
    /// How much, in crowns.
    crowns: u32,
}

/// Pays money back, and writes it into the ledger.
fn refund(ledger: PathBuf) -> impl Tool {
    let description = "Pays the price of a booking back to its customer.";
    let tool = tool_fn("refund", description, move |args: Refund, cx: ToolContext| {
        let ledger = ledger.clone();
        async move { enter(&ledger, &args, &cx) }
    });
    tool.needs_approval()
}

/// Makes an entry, unless it is there: a crash between the entry and the event that records it runs the tool again.
fn enter(ledger: &Path, args: &Refund, cx: &ToolContext) -> Result<String, BoxError> {
    let Refund { booking, crowns } = args;
    let entry = format!("turn {} {}: {crowns} crowns for booking {booking}", cx.session.turn().number, cx.call.id);
    let mut file = OpenOptions::new().create(true).append(true).open(ledger)?;
    if !read_to_string(ledger)?.lines().any(|line| line == entry) {
        file.write_all(format!("{entry}\n").as_bytes())?;
        file.sync_all()?;
    }
    Ok(format!("paid {crowns} crowns back for booking {booking}"))
}

fn clerk(model: Arc<dyn ChatClient>, ledger: PathBuf) -> impl Agent {
    let instructions = "You serve the customers of a ferry line. Refund with the tool `refund`, then say in one sentence \
                        what you did. If a refund is refused, say why.";
    let options = ChatAgentOptions { instructions: instructions.into(), ..ChatAgentOptions::default() };
    ChatAgent::new("clerk", model, options).tool(refund(ledger))
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.scripted(include_str!("approval.script.jsonl"), "approval")?;
    println!("{}", cli.model.headline(&model));
    let store = JsonlStore::open(cli.dir.join("sessions"))?;
    let session = store.load(SESSION).await?.session;
    let message = match cli.step.unwrap_or(Step::Start) {
        Step::Start => {
            println!("{REQUEST}\n");
            Some(ChatMessage::user(REQUEST))
        }
        Step::Answer { reject, .. } => Some(answer(&session, reject, &cli.dir)?),
        Step::Resume if is_done(&session) => {
            println!("nothing to go on with");
            return Ok(StopReason::Completed);
        }
        Step::Resume => None,
    };

    let runner = Runner::new(clerk(model, cli.dir.join("ledger")), store.clone());
    let stop = print_run(runner.run(SESSION, message, RunContext::default())).await?;

    for call in store.load(SESSION).await?.session.open_approvals() {
        println!("\nmay it run {}?", call_text(&call));
        let dir = cli.dir.display();
        println!(
            "  cargo run --bin approval -- answer --dir {dir} --approve\n  cargo run --bin approval -- answer --dir {dir} --reject REASON"
        );
    }
    println!("\nkept in {}", cli.dir.display());
    Ok(stop)
}

/// The customer's answer to what was asked.
fn answer(session: &Session, reject: Option<String>, dir: &Path) -> Result<ChatMessage> {
    let asked = session.open_approvals();
    let Some(call) = asked.first() else {
        let context = format!("answer in {}: nothing was asked there, or it is answered already", dir.display());
        return Err(Error::new(ErrorKind::Invalid, context));
    };
    Ok(match reject {
        Some(reason) => ChatMessage::reject(&call.id, reason),
        None => ChatMessage::approve(&call.id),
    })
}

/// Whether the last word is an answer of the agent's.
fn is_done(session: &Session) -> bool {
    let is_answer = |message: &ChatMessage| message.role == Role::Assistant && message.tool_calls().next().is_none();
    session.open_approvals().is_empty() && session.messages().last().is_none_or(is_answer)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
