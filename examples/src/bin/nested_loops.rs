//! A loop in a loop: the inner one refines a part, the outer one goes from part to part.
//!
//! ```text
//! LoopAgent "outer"                     until every season has its line
//! └── SequentialAgent "part"
//!     ├── LoopAgent "inner"             until the line has the word that it needs
//!     │   └── ChatAgent "poet"
//!     └── agent_fn "keep" (finally)     what became of it → state "lines"
//! ```
//!
//! Each event knows which iterations it is of, outermost first. The inner loop begins anew in each iteration of the
//! outer one, and its end is no end of the outer one, which only asks whether to go on.

use std::{num::NonZeroU32, process::ExitCode, sync::Arc};

use agent_core::{
    Agent, AgentExt, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, Draft, Event, Result, SequentialAgent,
    Session, StopReason, agent_fn,
};
use agent_examples::{ModelArgs, repeatable};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use anstream::println;
use clap::Parser;

/// What is written about, and the word that the line has to have.
const PARTS: [(&str, &str); 3] = [("spring", "wind"), ("summer", "swim"), ("winter", "ice")];
const TRIES: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// Writes a line for each season, each until it holds.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
}

fn wish(season: &str) -> String {
    format!("Write one sentence about the sea in {season}.")
}

fn lines(session: &Session) -> Vec<String> {
    session.get("lines").unwrap_or_default()
}

fn poem(model: Arc<dyn ChatClient>) -> impl Agent {
    let poet = ChatAgent::new("poet", model, ChatAgentOptions { chat: repeatable(), ..Default::default() });
    let holds = evaluate_fn("holds", |cx| {
        let (_, word) = PARTS[lines(cx.session).len()];
        if cx.last.text().contains(word) {
            LoopEvaluation::Satisfied
        } else {
            LoopEvaluation::feedback(format!("Use the word {word}."))
        }
    });
    let inner = LoopAgent::new("inner", poet, LoopOptions { max_iterations: TRIES, ..Default::default() });
    let keep = agent_fn("keep", |session, out| {
        Box::pin(async move {
            let line = session.messages().last().map(ChatMessage::text).unwrap_or_default();
            out.record(session, Draft::default().append("lines", line)).await;
            Ok(StopReason::Completed)
        })
    });
    let part = SequentialAgent::new("part").then(inner.evaluator(holds)).finally(keep);
    let all_there = evaluate_fn("all_there", |cx| match PARTS.get(lines(cx.session).len()) {
        Some((next, _)) => LoopEvaluation::feedback(wish(next)),
        None => LoopEvaluation::Satisfied,
    });
    LoopAgent::new("outer", part, LoopOptions::default()).evaluator(all_there)
}

/// Such as `outer#2/inner#1`.
fn path(event: &Event) -> String {
    let steps: Vec<String> = event.path.iter().map(|step| format!("{}#{}", step.name, step.iteration)).collect();
    steps.join("/")
}

async fn run(cli: Cli) -> Result<StopReason> {
    let model = cli.model.recorded(include_str!("nested_loops.jsonl"), "poem")?;
    println!("{}\n{}\n", cli.model.headline(&model), wish(PARTS[0].0));
    let mut session = Session::new();
    let response = poem(model).ask(&mut session, wish(PARTS[0].0)).await?;

    for event in &response.events {
        for message in &event.messages {
            println!("{:16}{}: {}", path(event), event.author, message.text());
        }
    }
    println!();
    for name in ["outer", "inner"] {
        let outcome = LoopOutcome::of(&session, name).unwrap_or_default();
        let stop = outcome.stop.map(|stop| stop.to_string()).unwrap_or_default();
        println!("{name}: {stop} after {} iterations in its last run", outcome.iterations.len());
    }
    println!("\n{}", lines(&session).join("\n"));
    println!(
        "\nstop: {}; tokens: {} in, {} out",
        response.stop, response.usage.input_tokens, response.usage.output_tokens
    );
    Ok(response.stop)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
