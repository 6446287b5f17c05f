//! Three writers at once, then a picker, and a loop around them.
//!
//! ```text
//! LoopAgent "advertisement"          until the pick names the time
//! └── SequentialAgent "round"
//!     ├── ParallelAgent "drafts"     each branch on a fork of the session
//!     │   ├── ChatAgent "families"   → state "families"
//!     │   ├── ChatAgent "painters"   → state "painters"
//!     │   └── ChatAgent "truckers"   → state "truckers"
//!     └── agent_fn "picker"          takes the shortest → state "pick"
//! ```
//!
//! The branches do not see each other's drafts of a round, and the picker finds them under their keys in the same order,
//! whoever was ready first. The objection to the pick goes to all three; the fresh context spares them the drafts of the
//! round before.

use std::{num::NonZeroU32, process::ExitCode, sync::Arc};

use agent_core::{
    Agent, AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, Draft, ParallelAgent, Result,
    SequentialAgent, Session, StopReason, agent_fn,
};
use agent_examples::{ModelArgs, repeatable};
use agent_loop::{ContextMode, IterationRecord, LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use anstream::println;
use clap::Parser;

const REQUEST: &str = "Advertise the night ferry to Storøy.";
const READERS: [&str; 3] = ["families", "painters", "truckers"];
const ROUNDS: NonZeroU32 = NonZeroU32::new(4).expect("not zero");

/// Lets three writers draft an advertisement at once, and picks one, until it says when to come.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
}

fn writer(readers: &str, model: Arc<dyn ChatClient>) -> ChatAgent {
    let instructions = format!(
        "You write advertisements for {readers}. Answer with one sentence that says what {readers} like about it."
    );
    let options = ChatAgentOptions {
        instructions: instructions.into(),
        output_key: Some(readers.to_owned()),
        chat: repeatable(),
        ..ChatAgentOptions::default()
    };
    ChatAgent::new(readers, model, options)
}

fn advertisement(model: &Arc<dyn ChatClient>) -> impl Agent {
    let drafts = READERS
        .into_iter()
        .fold(ParallelAgent::new("drafts"), |drafts, readers| drafts.branch(writer(readers, model.clone())));
    let round = SequentialAgent::new("round").then(drafts).then(picker());
    let has_time = evaluate_fn("has_time", |cx| {
        let pick: String = cx.session.get("pick").unwrap_or_default();
        if pick.contains("22:00") {
            LoopEvaluation::Satisfied
        } else {
            LoopEvaluation::feedback("Say that it departs at 22:00.")
        }
    });
    let options = LoopOptions { max_iterations: ROUNDS, context: ContextMode::Fresh, ..LoopOptions::default() };
    LoopAgent::new("advertisement", round, options).evaluator(has_time)
}

/// The shortest draft; of equals the first.
fn picker() -> impl Agent {
    agent_fn("picker", |session, out| {
        Box::pin(async move {
            let drafts = READERS.map(|readers| session.get::<String>(readers).unwrap_or_default());
            let pick = drafts.into_iter().min_by_key(String::len).unwrap_or_default();
            let said = Draft::message(ChatMessage::assistant(pick.as_str())).set("pick", &pick);
            out.record(session, said).await;
            Ok(StopReason::Completed)
        })
    })
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.recorded(include_str!("parallel_drafts.jsonl"), "advertisement")?;
    println!("{}\n{REQUEST}\n", cli.model.headline(&model));
    let agent = advertisement(&model);
    let mut session = Session::new();
    let response = agent.ask(&mut session, REQUEST).await?;

    // The drafts of a round come as they are ready; shown in order of their names they are the same in every run.
    let mut drafts = Vec::new();
    for event in &response.events {
        match IterationRecord::of(event) {
            Some((_, record)) => println!("[{}]\n", record.feedback.as_deref().unwrap_or("accepted")),
            None if READERS.contains(&&*event.author) => {
                drafts.extend(event.messages.iter().map(|message| format!("{}: {}", event.author, message.text())));
            }
            None if &*event.author == "picker" => {
                drafts.sort_unstable();
                drafts.drain(..).for_each(|draft| println!("{draft}"));
                event.messages.iter().for_each(|message| println!("{}: {}", event.author, message.text()));
            }
            None => (), // where the round and its branches stand
        }
    }
    let usage = response.usage;
    println!("stop: {}; tokens: {} in, {} out", response.stop, usage.input_tokens, usage.output_tokens);
    Ok(response.stop)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
