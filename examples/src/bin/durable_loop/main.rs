//! A loop that survives machines: its journal is on a Restate server, its worker may be killed at any time.
//!
//! This program is the worker. It says how to start the server, and what to send it. Five boards get a new timetable, one
//! in each iteration; posters are paper, so a person is asked before they are printed. Kill the worker whenever you like,
//! also while it waits, and start it again: what is in the journal is not done again.
//!
//! What a tool does to the world is in no journal. Killed between a tool's effect and its record, the worker does it
//! again: at least once. A tool that must not keeps a note for each call, as in the example `approval`; these count.

mod planner;

use std::{
    fs::{OpenOptions, create_dir_all},
    future::ready,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use agent_core::{
    Agent, BoxError, ChatAgent, ChatAgentOptions, ChatClient, ChatHook, ChatRequest, Error, ErrorKind, Result,
    RunContext, StopReason, ToolContext, ToolOutput, tool_fn,
};
use agent_examples::ModelArgs;
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, LoopOutcome, evaluate_fn};
use agent_providers::{DurableAgent, DurableOptions};
use anstream::println;
use clap::Parser;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

const BOARDS: [&str; 5] = ["website", "app", "posters", "harbor", "radio"];

/// Serves durable sessions of a loop to a Restate server.
#[derive(Parser)]
struct Cli {
    /// Where to listen, on this machine only; 0 is any free port.
    #[arg(long, default_value_t = 9080)]
    port: u16,
    /// Where the worker notes each call of the model and each board.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("agent-durable"))]
    dir: PathBuf,
    /// How many milliseconds the stand-in for a model thinks.
    #[arg(long, default_value_t = 1000)]
    pause: u64,
    #[command(flatten)]
    model: ModelArgs,
}

/// The tools' arguments.
#[derive(Deserialize, JsonSchema)]
struct Board {
    /// `website`, `app`, `posters`, `harbor` or `radio`.
    board: String,
}

/// A file that lines are added to, at once.
#[derive(Clone)]
struct Notes(PathBuf);

impl Notes {
    fn add(&self, line: &str) -> Result<(), BoxError> {
        println!("{line}");
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        Ok(file.write_all(format!("{line}\n").as_bytes())?)
    }
}

/// Notes each call of the model.
struct Calls(Notes);

#[async_trait::async_trait]
impl ChatHook for Calls {
    async fn before_model(&self, request: &mut ChatRequest, _: &RunContext) -> Result<()> {
        let noted = self.0.add(&format!("the model reads {} messages", request.messages.len()));
        noted.map_err(|error| Error::new(ErrorKind::Invalid, "note a call of the model").with_source(error))
    }
}

/// Changes a board, and notes it.
fn change(notes: &Notes, Board { board }: Board, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    notes.add(&format!("{} {board}, {}", cx.call.name, cx.call.id))?;
    Ok(ToolOutput::text(format!("{board}: done")).append("boards", board))
}

fn publication(model: Arc<dyn ChatClient>, dir: &Path) -> impl Agent + use<> {
    let notes = Notes(dir.join("boards"));
    let also = notes.clone();
    let publish = tool_fn("publish", "Puts the timetable on a board.", move |args: Board, cx: ToolContext| {
        ready(change(&notes, args, &cx))
    });
    let print = tool_fn("print", "Prints posters with the timetable.", move |args: Board, cx: ToolContext| {
        ready(change(&also, args, &cx))
    });
    let instructions = "You put a ferry line's new timetable on its five boards: website, app, posters, harbor, radio, in \
                        this order, one each time you are asked; posters with `print`, the others with `publish`.";
    let options = ChatAgentOptions { instructions: instructions.into(), ..ChatAgentOptions::default() };
    let clerk = ChatAgent::new("clerk", model, options)
        .tool(publish)
        .tool(print.needs_approval())
        .hook(Calls(Notes(dir.join("calls"))));
    LoopAgent::new("publication", clerk, LoopOptions::default()).evaluator(evaluate_fn("boards", |cx| {
        match cx.session.get::<Vec<String>>("boards").map_or(0, |boards| boards.len()) {
            done if done >= BOARDS.len() => LoopEvaluation::Satisfied,
            done => LoopEvaluation::feedback(format!("{} boards to go: the next one, please.", BOARDS.len() - done)),
        }
    }))
}

async fn run(cli: Cli) -> Result<StopReason> {
    let Cli { port, dir, pause, model } = cli;
    let client = model.client_or("publication", || Ok(planner::Planner { pause: Duration::from_millis(pause) }))?;
    let failed = |error| {
        let context = format!("serve on port {port} from `{}` (--port 0 is any free port)", dir.display());
        Error::new(ErrorKind::Invalid, context).with_source(error)
    };
    create_dir_all(&dir).map_err(failed)?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(failed)?;
    println!("{}", model.headline(&client));
    println!("the worker of `agent` listens on http://{}\n{}", listener.local_addr().map_err(failed)?, HOW);
    let agent = DurableAgent::new(publication(client, &dir), DurableOptions::default())
        .ended_by(|session| LoopOutcome::stop_of_turn(session, "publication"));
    agent.serve(listener).await;
    Ok(StopReason::Completed)
}

const HOW: &str = r#"
a server        npm install @restatedev/restate-server
                node_modules/@restatedev/restate-server-linux-x64/bin/restate-server --bind-ip 127.0.0.1 --listen-mode tcp
its workers     curl 127.0.0.1:9070/deployments --json '{"uri": "http://127.0.0.1:9080"}'
say             curl 127.0.0.1:8080/agent/summer/say/send --json '"Publish the summer timetable."'
how it stands   curl 127.0.0.1:8080/agent/summer/status
approve         curl 127.0.0.1:8080/agent/summer/approve --json '"call_3"'
reject          curl 127.0.0.1:8080/agent/summer/reject --json '{"call_id": "call_3", "reason": "no paper"}'
cancel          curl -X POST 127.0.0.1:8080/agent/summer/cancel
"#;

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
