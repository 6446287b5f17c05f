//! Text to SQL that holds: a writer, a checker, and a loop around both until the checker accepts.
//!
//! ```text
//! SequentialAgent "sql_refine"
//! ├── LoopAgent "refine", at most 5 iterations, each with a fresh context
//! │   ├── SequentialAgent "attempt"
//! │   │   ├── ChatAgent "writer"     question and feedback → state "answer"
//! │   │   └── agent_fn "checker"     state "answer" → state "verdict", "feedback", "attempts"
//! │   └── evaluate_fn "verdict"      state "verdict", "feedback" → done, or go on with the feedback
//! └── agent_fn "report"              runs the statement, or says plainly that there is none
//! ```
//!
//! The writer is told the tables' names and not their columns, as if there were hundreds. It guesses, and learns from
//! the checker's feedback.

use std::{num::NonZeroU32, process::ExitCode, sync::Arc};

use agent_core::{
    Agent, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, Draft, Emitter, Error, ErrorKind, Result, RunContext,
    SequentialAgent, Session, StopReason, agent_fn,
};
use agent_examples::{
    ModelArgs, print_run, repeatable,
    sql::{Database, Verdict, check},
};
use agent_loop::{ContextMode, LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
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
const CAP: NonZeroU32 = NonZeroU32::new(5).expect("not zero");

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
    let attempt = SequentialAgent::new("attempt").then(writer(model, &database)).then(checker(database.clone()));
    let is_accepted = evaluate_fn("verdict", |cx| {
        // An attempt that ended before the checker leaves the verdict of the one before.
        let is_checked = cx.last.stop == StopReason::Completed;
        match cx.session.get("verdict") {
            Some(Verdict::Accepted) if is_checked => LoopEvaluation::Satisfied,
            Some(Verdict::Accepted | Verdict::Refused) | None => {
                LoopEvaluation::feedback(cx.session.get::<String>("feedback").unwrap_or_default())
            }
        }
    });
    let options = LoopOptions { max_iterations: CAP, context: ContextMode::Fresh, ..LoopOptions::default() };
    let refine = LoopAgent::new("refine", attempt, options).evaluator(is_accepted);
    SequentialAgent::new("sql_refine").then(refine).finally(report(database))
}

fn writer(model: Arc<dyn ChatClient>, database: &Database) -> ChatAgent {
    let tables: Vec<&str> = database.table_names().collect();
    let instructions = format!(
        "You write SQLite. The database of a ferry line has the tables {}. \
         Answer with one SELECT statement in a ```sql block and nothing else.",
        tables.join(", ")
    );
    ChatAgent::new(
        "writer",
        model,
        ChatAgentOptions {
            instructions: instructions.into(),
            output_key: Some("answer".into()),
            chat: repeatable(),
            ..ChatAgentOptions::default()
        },
    )
}

fn checker(database: Arc<Database>) -> impl Agent {
    agent_fn("checker", move |session, out| Box::pin(check_answer(database.clone(), session, out)))
}

async fn check_answer(database: Arc<Database>, session: &mut Session, out: Emitter) -> Result<StopReason> {
    let answer: String = session.get("answer").unwrap_or_default();
    let checked = off_the_runtime(move || check(&database, &answer)).await?;
    let draft = Draft::default()
        .remove("answer")
        .append("attempts", &checked.statement)
        .set("verdict", checked.verdict)
        .set("feedback", checked.feedback.unwrap_or_default());
    out.record(session, draft).await;
    Ok(StopReason::Completed)
}

fn report(database: Arc<Database>) -> impl Agent {
    agent_fn("report", move |session, out| Box::pin(tell(database.clone(), session, out)))
}

/// The last stage: it runs after a success as after the cap.
async fn tell(database: Arc<Database>, session: &mut Session, out: Emitter) -> Result<StopReason> {
    let outcome = LoopOutcome::of(session, "refine").unwrap_or_default();
    let count = outcome.iterations.len();
    let attempts: Vec<String> = session.get("attempts").unwrap_or_default();
    let last = attempts.last().cloned().unwrap_or_default();
    let text = if outcome.passed() {
        let statement = last.clone();
        let rows = off_the_runtime(move || database.query(&statement, 10)).await?;
        format!("Attempt {count} was accepted:\n\n{last}\n\n{rows}")
    } else {
        let why = outcome.why.unwrap_or_default();
        format!("No answer: none of {count} attempts was accepted. The last one:\n\n{last}\n\nrefused: {why}")
    };
    out.record(session, Draft::message(ChatMessage::assistant(text.trim_end()))).await;
    Ok(StopReason::Completed)
}

/// SQLite blocks its thread.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.expect("the work does not panic, and is not aborted")
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
