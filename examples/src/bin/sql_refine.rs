//! Text to SQL that holds: a writer, a checker, and a loop around both until the checker accepts.
//!
//! ```text
//! SequentialAgent "sql_refine"
//! ├── LoopAgent "refine", at most 5 iterations, each with a fresh context (sql/agent.rs)
//! │   ├── ChatAgent "writer"         question and feedback → answer
//! │   └── CheckEvaluator "explain"   compiles the statement → done, or go on with the feedback
//! └── agent_fn "report"              runs the statement, or says plainly that there is none
//! ```
//!
//! The writer is told the tables' names and not their columns, as if there were hundreds. It guesses, and learns from
//! the checker's feedback. `evals/sql` asks the same agent fifty questions, and tells how often the answer is right.

use std::{process::ExitCode, sync::Arc};

use agent_core::{
    Agent, ChatClient, ChatMessage, Draft, Emitter, Error, ErrorKind, Result, RunContext, SequentialAgent, Session,
    StopReason, agent_fn,
};
use agent_examples::{
    ModelArgs, print_run,
    sql::{Database, RefineOptions, refine, statement_of},
};
use agent_loop::LoopOutcome;
use anstream::println;
use clap::Parser;

/// Questions with recorded answers of a real model, one of half a billion parameters.
const QUESTIONS: [&str; 5] = [
    "What is the average fare of each vessel?",
    "Which vessel is the oldest?",
    "Which passengers cancelled a booking?",
    "Which ports are on the island Storøy?",
    "Name the five most expensive sailings with their departure and vessel name.",
];

/// Answers a question about a ferry line with a SQL statement that is checked before it is run.
#[derive(Parser)]
#[command(after_help = list_of_questions())]
struct Cli {
    /// The number of a question below, or, with `--model`, one of your own.
    #[arg(long, value_name = "N | TEXT", default_value = "1")]
    question: String,
    #[command(flatten)]
    model: ModelArgs,
}

impl Cli {
    /// The question, and its case in the cassette.
    fn question(&self) -> Result<(&str, String)> {
        let number: usize = self.question.parse().unwrap_or_default();
        match QUESTIONS.get(number.wrapping_sub(1)) {
            Some(question) => Ok((question, format!("question {number}"))),
            None if self.model.is_live() => Ok((&self.question, "own question".to_owned())),
            None => {
                let (asked, count) = (&self.question, QUESTIONS.len());
                let context = format!(
                    "answer `{asked}` offline: only the questions 1 to {count} are recorded (see --help); name a real \
                     model with --model"
                );
                Err(Error::new(ErrorKind::Invalid, context))
            }
        }
    }
}

fn list_of_questions() -> String {
    let lines = QUESTIONS.iter().enumerate().map(|(at, question)| format!("\n  {}  {question}", at + 1));
    format!("Questions:{}", lines.collect::<String>())
}

fn sql_refine(model: Arc<dyn ChatClient>, database: Arc<Database>) -> impl Agent {
    let refine = refine(model, &database, RefineOptions::default());
    SequentialAgent::new("sql_refine").then(refine).finally(report(database))
}

fn report(database: Arc<Database>) -> impl Agent {
    agent_fn("report", move |session, out| Box::pin(tell(database.clone(), session, out)))
}

/// The last stage: it runs after a success as after the cap.
async fn tell(database: Arc<Database>, session: &mut Session, out: Emitter) -> Result<StopReason> {
    let outcome = LoopOutcome::of(session, "refine").unwrap_or_default();
    let count = outcome.iterations.len();
    let answer: String = session.get("answer").unwrap_or_default();
    let last = statement_of(&answer).to_owned();
    let text = if outcome.passed() {
        let statement = last.clone();
        let rows = tokio::task::spawn_blocking(move || database.query(&statement, 10)).await;
        let rows = rows.expect("a query does not panic, and is not aborted")?;
        format!("Attempt {count} was accepted:\n\n{last}\n\n{rows}")
    } else {
        let why = outcome.why.unwrap_or_default();
        format!("No answer: none of {count} attempts was accepted. The last one:\n\n{last}\n\nrefused: {why}")
    };
    out.record(session, Draft::message(ChatMessage::assistant(text.trim_end()))).await;
    Ok(StopReason::Completed)
}

async fn run(cli: Cli) -> Result<StopReason> {
    let (question, case) = cli.question()?;
    let model = cli.model.recorded(include_str!("sql_refine.jsonl"), &case)?;
    println!("{}", cli.model.headline(&model));
    let agent = sql_refine(model, Arc::new(Database::ferry()?));

    println!("{question}\n");
    let mut session = Session::new();
    session.push(question);
    print_run(agent.run(&mut session, &RunContext::default())).await
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
