//! Sessions as work in a queue: a table in PostgreSQL, and any number of workers on any number of machines.
//!
//! ```text
//! $ queue_worker add SESSION TEXT     something to do
//! $ queue_worker work                 does what there is to do, and waits for more; start several, kill any
//! ```
//!
//! A worker takes a job by `FOR UPDATE SKIP LOCKED`, so workers do not wait for each other, and has it for the time of a
//! lease, which it prolongs while it works. When it dies, its lease ends, and another worker goes on where the session
//! is: what was committed is not done again.
//!
//! A worker that only *seems* dead (it was suspended, or cut off) may wake up and think that it still has the job. So who
//! takes a job first appends an event of its own: the session's version moves on, and whatever the old worker appends
//! is a conflict. No clock is trusted for that; the lease only decides when to try.

use std::{path::PathBuf, process::ExitCode, slice, sync::Arc, time::Duration};

use agent_core::{
    Agent, BoxError, ChatAgent, ChatAgentOptions, ChatClient, ChatMessage, Error, ErrorKind, Event, Result, Role,
    RunContext, SessionStore, StateChange, Step, Steps, StopReason, Stored, ToolContext, tool_fn,
};
use agent_examples::ModelArgs;
use agent_providers::{PostgresStore, PostgresStoreOptions};
use anstream::println;
use clap::{Parser, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// And what a table lacks that an earlier version made.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs (
    session text PRIMARY KEY, said text NOT NULL, job uuid NOT NULL DEFAULT gen_random_uuid(), worker uuid,
    leased_until timestamptz NOT NULL DEFAULT '-infinity', stop text);
    ALTER TABLE jobs ADD COLUMN IF NOT EXISTS job uuid NOT NULL DEFAULT gen_random_uuid()";
const TAKE: &str = "UPDATE jobs SET worker = $1, leased_until = now() + $2 * interval '1 ms' WHERE session =
    (SELECT session FROM jobs WHERE stop IS NULL AND leased_until < now() ORDER BY leased_until
     FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING session, said, job";
const PROLONG: &str =
    "UPDATE jobs SET leased_until = now() + $3 * interval '1 ms' WHERE session = $2 AND worker = $1 AND stop IS NULL";
const LEFT: &str = "SELECT FROM jobs WHERE stop IS NULL LIMIT 1";
const FINISH: &str = "UPDATE jobs SET stop = $3 WHERE session = $2 AND worker = $1";

/// Takes sessions from a queue in a database, and goes on with those of workers that died.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
    /// Where queue and sessions are, such as `postgres://user:password@127.0.0.1/jobs`; the queue without TLS.
    #[arg(long, global = true, value_name = "URL", env = "DATABASE_URL", hide_env_values = true, default_value = "")]
    database: String,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Subcommand)]
enum Task {
    /// Adds something to do.
    Add {
        /// The session to say it in.
        session: String,
        /// What to say.
        text: String,
    },
    /// Does what there is to do.
    Work {
        /// How long a worker may be silent before others take its job.
        #[arg(long, value_name = "MILLISECONDS", default_value_t = 10_000)]
        lease: u32,
        /// The file that the agent's tool writes to.
        #[arg(long, value_name = "FILE", default_value_os_t = std::env::temp_dir().join("agent-queue"))]
        ledger: PathBuf,
        /// End when nothing is left to do, by any worker.
        #[arg(long)]
        once: bool,
    },
}

/// The tool's arguments.
#[derive(Deserialize, JsonSchema)]
struct Count {
    /// What to count.
    thing: String,
}

/// An agent whose tool takes its time, and leaves a trace in a file.
fn agent(model: Arc<dyn ChatClient>, ledger: PathBuf) -> impl Agent {
    let count = tool_fn("count", "Counts things.", move |Count { thing }: Count, cx: ToolContext| {
        let (ledger, call) = (ledger.clone(), cx.call.id);
        async move {
            use std::io::Write;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(ledger)?;
            file.write_all(format!("{call} {thing}\n").as_bytes())?;
            Ok::<_, BoxError>(format!("many {thing}"))
        }
    });
    ChatAgent::new("counter", model, ChatAgentOptions::default()).tool(count)
}

fn failed(attempt: &'static str) -> impl Fn(tokio_postgres::Error) -> Error {
    move |error| Error::new(ErrorKind::Store, format!("{attempt} the queue")).with_source(error)
}

/// What there is to do.
struct Job {
    session: String,
    said: String,
    id: Uuid,
}

/// Where a session's state tells whose words were said last.
const JOB: &str = "queue:job";

struct Worker {
    id: Uuid,
    queue: Client,
    lease: u32,
    store: PostgresStore,
    agent: Arc<dyn Agent>,
}

impl Worker {
    /// Takes a job and does it; false, after a pause, if there is none.
    async fn turn(&self) -> Result<bool> {
        let lease = f64::from(self.lease);
        let Some(job) = self.queue.query_opt(TAKE, &[&self.id, &lease]).await.map_err(failed("take from"))? else {
            tokio::time::sleep(Duration::from_millis((self.lease / 10).into())).await;
            return Ok(false);
        };
        let job = Job { session: job.get(0), said: job.get(1), id: job.get(2) };
        let session = &job.session;
        let stop = match self.work(&job).await {
            Ok(stop) => stop.to_string(),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                println!("{session}: another worker has it ({error})");
                return Ok(true);
            }
            Err(error) if error.is_transient() => {
                println!("{session}: left until its lease ends ({error:#})");
                return Ok(true);
            }
            // Whoever took it next would fail, too.
            Err(error) => format!("failed: {error:#}"),
        };
        println!("{session}: {stop}");
        self.queue.execute(FINISH, &[&self.id, session, &stop]).await.map_err(failed("finish a job of"))?;
        Ok(true)
    }

    /// Whether there are jobs, if only of other workers.
    async fn is_work_left(&self) -> Result<bool> {
        Ok(self.queue.query_opt(LEFT, &[]).await.map_err(failed("look at"))?.is_some())
    }

    async fn work(&self, job: &Job) -> Result<StopReason> {
        tokio::select! {
            done = self.go_on(job) => done,
            lost = self.keep(&job.session) => Err(lost),
        }
    }

    /// Runs the agent, and stores each step before the next one is taken.
    async fn go_on(&self, job: &Job) -> Result<StopReason> {
        let id = &job.session;
        let Stored { mut session, version } = self.store.load(id).await?;
        let is_begun = session.get(JOB) == Some(job.id);
        let taken = self.taken(job, !is_begun);
        let mut version = self.store.append(id, version, slice::from_ref(&taken)).await?;
        session.apply(&taken);
        println!("{id}: {}", if is_begun { "gone on with" } else { "begun" });
        let is_answer = |last: &ChatMessage| last.role == Role::Assistant && last.tool_calls().next().is_none();
        if session.messages().last().is_some_and(is_answer) {
            return Ok(StopReason::Completed); // the worker before died just before it could say so
        }
        let mut steps = Steps::new(self.agent.clone(), session, RunContext::default());
        loop {
            let step = steps.next().await?;
            match &step {
                Step::Event { event, .. } => version = self.store.append(id, version, slice::from_ref(event)).await?,
                Step::Done { stop, .. } => return Ok(*stop),
            }
            steps.accept(&step);
        }
    }

    /// The fence: an event by which the session's version moves on. The first one says what there is to do: the session
    /// may have a conversation already.
    fn taken(&self, job: &Job, is_first: bool) -> Event {
        let set = |key: &str, id: Uuid| StateChange::Set { key: key.into(), value: id.to_string().into() };
        Event {
            id: Uuid::now_v7(),
            run: self.id,
            author: Event::CALLER.into(),
            path: Arc::from([]),
            rewind: None,
            messages: is_first.then(|| ChatMessage::user(job.said.clone())).into_iter().collect(),
            state: vec![set(JOB, job.id), set("queue:worker", self.id)],
            usage: None,
            escalate: false,
        }
    }

    /// Prolongs the lease, until that fails.
    async fn keep(&self, session: &str) -> Error {
        let lease = f64::from(self.lease);
        loop {
            tokio::time::sleep(Duration::from_millis((self.lease / 3).into())).await;
            match self.queue.execute(PROLONG, &[&self.id, &session, &lease]).await.map_err(failed("prolong a lease of"))
            {
                Ok(0) => return Error::new(ErrorKind::Conflict, "prolong the lease: it has ended"),
                Ok(_) => (),
                Err(error) => return error,
            }
        }
    }
}

async fn run(cli: Cli) -> Result<StopReason> {
    let (queue, connection) = tokio_postgres::connect(&cli.database, NoTls).await.map_err(failed("connect to"))?;
    tokio::spawn(connection);
    queue
        .batch_execute(&format!("SELECT pg_advisory_lock(1); {TABLE}; SELECT pg_advisory_unlock(1)"))
        .await
        .map_err(failed("create"))?;
    match cli.task {
        Task::Add { session, text } => {
            let add = "INSERT INTO jobs (session, said) VALUES ($1, $2)";
            queue.execute(add, &[&session, &text]).await.map_err(failed("add to"))?;
        }
        Task::Work { lease, ledger, once } => {
            let model = cli.model.scripted(include_str!("queue_worker.script.jsonl"), "queue")?;
            println!("{}", cli.model.headline(&model));
            let store = PostgresStore::connect(cli.database, PostgresStoreOptions::default()).await?;
            let worker = Worker { id: Uuid::now_v7(), queue, lease, store, agent: Arc::new(agent(model, ledger)) };
            while worker.turn().await? || !once || worker.is_work_left().await? {}
        }
    }
    Ok(StopReason::Completed)
}

#[tokio::main]
async fn main() -> ExitCode {
    agent_examples::exit(run(Cli::parse()).await)
}
