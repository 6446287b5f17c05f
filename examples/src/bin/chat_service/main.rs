//! A chat service of several processes on one database: any of them can answer in any session.
//!
//! ```text
//! POST /sessions/{id}/messages {"text": "…"}                       delta…  event…  done (or error); without a text: go on
//! POST /sessions/{id}/answers  {"call_id": "…", "approved": true}  the same; with a "reason" if not approved
//! GET  /sessions/{id}                                              what was said, and what waits for an answer
//! GET  /sessions?prefix=…&after=…&limit=…                          ids
//! ```
//!
//! Nothing is kept in a process but the runs that it streams. Two messages to one session in one process: the second
//! waits. In two processes: the later message ends the other's run, for the store takes one writer at each version, and
//! the run that goes on answers both. Who is told of a conflict loses no words: a message is either stored and will be
//! answered, or it is tried again, and refused with 409 if that fails.
//!
//! On SIGTERM or Ctrl-C a process takes no more requests, lets its runs end for `--grace` seconds, then cancels them;
//! another process goes on with them if it is asked to.
//!
//! It serves this machine only, and asks nobody who they are.

mod clerk;
mod service;

use std::{process::ExitCode, time::Duration};

use agent_core::{
    BoxError, ChatAgent, ChatAgentOptions, Error, ErrorKind, Result, StopReason, Tool, ToolContext, tool_fn,
};
use agent_examples::{ModelArgs, Parrot};
use agent_providers::{PostgresStore, PostgresStoreOptions};
use anstream::println;
use clap::Parser;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use self::service::Service;

/// Serves a chat on 127.0.0.1 with sessions in PostgreSQL; start several.
#[derive(Parser)]
struct Cli {
    /// Where the sessions are, such as `postgres://user:password@127.0.0.1/chat`.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database: String,
    /// Where to listen; 0 is any free port, which is printed.
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,
    /// How long runs may go on after the signal to end.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
    /// How long the offline stand-in for a model takes for each word.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50)]
    pause: u64,
    #[command(flatten)]
    model: ModelArgs,
}

/// The tool's arguments.
#[derive(Deserialize, JsonSchema)]
struct Refund {
    /// The number of the booking.
    booking: u32,
}

/// Would pay money back. It has to be asked about, by whichever process.
fn refund() -> impl Tool {
    let tool = tool_fn("refund", "Pays a booking back.", async |Refund { booking }: Refund, _: ToolContext| {
        Ok::<_, BoxError>(format!("paid booking {booking} back"))
    });
    tool.needs_approval()
}

async fn run(cli: Cli) -> Result<StopReason> {
    let stand_in = || Ok(clerk::Clerk(Parrot::new(Duration::from_millis(cli.pause))));
    let model = cli.model.client_or("chat", stand_in)?;
    println!("{}", cli.model.headline(&model));
    let store = PostgresStore::connect(cli.database, PostgresStoreOptions::default()).await?;
    let service = Service::new(ChatAgent::new("assistant", model, ChatAgentOptions::default()).tool(refund()), store);

    let failed = |error| {
        let context = format!("serve on port {} (choose another with --port, 0 is any free one)", cli.port);
        Error::new(ErrorKind::Invalid, context).with_source(error)
    };
    let listener = TcpListener::bind(("127.0.0.1", cli.port)).await.map_err(failed)?;
    println!("listening on http://{}", listener.local_addr().map_err(failed)?);
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let (routes, grace) = (service.routes(), Duration::from_secs(cli.grace));
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = tokio::signal::ctrl_c() => (),
        }
        println!("ending");
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            service.cancel_runs();
        });
    };
    axum::serve(listener, routes).with_graceful_shutdown(stop).await.map_err(failed)?;
    Ok(StopReason::Completed)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
