//! Workers that share a queue, and one that dies or only seems to.

#[path = "../../agent-providers/tests/support/postgres.rs"]
mod postgres;
mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use postgres::PostgresServer;
use support::{example, transcript};
use tempfile::tempdir;
use tokio_postgres::NoTls;

fn program(database: &PostgresServer) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_queue_worker"));
    command.args(["--database", &database.url()]);
    command
}

fn add(database: &PostgresServer, session: &str) {
    assert_eq!(transcript(program(database).args(["add", session, "Count what is at sea."])), "--- code 0\n");
}

/// In milliseconds: long enough that a worker on a busy machine keeps it.
const LEASE: &str = "2000";

/// A worker, and the lines that it prints.
struct Worker {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Worker {
    fn start(database: &PostgresServer, ledger: &Path, lease: &str) -> Self {
        let mut command = program(database);
        command.args(["work", "--once", "--lease", lease, "--ledger"]).arg(ledger);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        Self { process, lines: Box::new(lines) }
    }

    /// Waits until it says so.
    fn says(&mut self, text: &str) {
        assert!(self.lines.any(|line| line.contains(text)), "it ended without saying: {text}");
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.process.kill()); // it may have ended by itself
        self.process.wait().unwrap();
    }
}

/// What the tool did, and how often.
fn counted(ledger: &Path) -> BTreeMap<String, u32> {
    let mut counted = BTreeMap::new();
    for line in fs::read_to_string(ledger).unwrap_or_default().lines() {
        *counted.entry(line.to_owned()).or_default() += 1;
    }
    counted
}

fn each(times: u32) -> BTreeMap<String, u32> {
    let calls = ["call_1_1 ferries", "call_2_1 ports", "call_3_1 gulls"];
    calls.map(|call| (call.to_owned(), times)).into()
}

/// Waits until the tool did something.
fn wait_for_a_count(ledger: &Path) {
    while counted(ledger).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn each_job_is_done_once_by_whichever_worker() {
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    let sessions = ["a", "b", "c", "d"];
    for session in sessions {
        add(&database, session);
    }
    let workers = [(); 2].map(|()| Worker::start(&database, &ledger, "60000"));
    let lines: Vec<String> =
        workers.into_iter().flat_map(|mut worker| worker.lines.by_ref().collect::<Vec<_>>()).collect();
    let mut ends: Vec<_> = lines.iter().filter(|line| line.ends_with(": completed")).cloned().collect();
    ends.sort();
    assert_eq!(ends, sessions.map(|session| format!("{session}: completed")));
    assert_eq!(counted(&ledger), each(4));
}

#[test]
fn a_killed_worker_s_session_is_gone_on_with_and_nothing_that_was_recorded_is_done_again() {
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    add(&database, "a");
    let mut first = Worker::start(&database, &ledger, LEASE);
    first.says("a: begun");
    let mut second = Worker::start(&database, &ledger, LEASE);
    second.says("model");
    wait_for_a_count(&ledger);
    first.signal("-KILL");
    second.says("a: gone on with");
    second.says("a: completed");
    let mut counted = counted(&ledger);
    // The kill may have hit between the effect and its record.
    let ferries = counted.insert("call_1_1 ferries".to_owned(), 1).unwrap();
    assert!((1..=2).contains(&ferries), "{ferries}");
    assert_eq!(counted, each(1));
}

#[test]
fn a_worker_that_wakes_up_after_its_lease_leaves_the_session_to_the_other() {
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    add(&database, "a");
    let mut first = Worker::start(&database, &ledger, LEASE);
    first.says("a: begun");
    wait_for_a_count(&ledger);
    first.signal("-STOP");
    let mut second = Worker::start(&database, &ledger, LEASE);
    second.says("a: gone on with");
    first.signal("-CONT");
    first.says("a: another worker has it");
    second.says("a: completed");
}

/// The same with a worker that trusts its lease, while the database's clock jumps.
#[test]
fn a_worker_that_does_not_know_that_it_lost_its_lease_cannot_append() {
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    add(&database, "a");
    let mut first = Worker::start(&database, &ledger, "600000");
    first.says("a: begun");
    wait_for_a_count(&ledger);
    first.signal("-STOP");
    execute(&database, "UPDATE jobs SET leased_until = '-infinity'");
    let mut second = Worker::start(&database, &ledger, LEASE);
    second.says("a: gone on with");
    // The version is the second one's now, who may have recorded nothing else yet.
    first.signal("-CONT");
    first.says("a: another worker has it (append to session `a` at version ");
    second.says("a: completed");
}

#[test]
fn a_job_that_cannot_be_done_is_marked_and_the_next_one_is_done() {
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    add(&database, "a");
    Worker::start(&database, &ledger, "60000").says("a: completed");
    execute(&database, "INSERT INTO agent_sessions (id, version) VALUES ('bad', 3)");
    add(&database, "bad");
    add(&database, "b");
    // The first worker may have been killed before it could finish its job.
    execute(&database, "UPDATE jobs SET leased_until = '-infinity'");
    let lines: Vec<String> = Worker::start(&database, &ledger, "60000").lines.by_ref().collect();
    let failed = "bad: failed: load session `bad`: not all of its events are there; \
                  restore them from a backup, or delete the session";
    for line in [failed, "b: completed"] {
        assert!(lines.iter().any(|told| told == line), "{lines:#?}");
    }
    execute(&database, "DO $$ BEGIN ASSERT (SELECT stop LIKE 'failed: load%' FROM jobs WHERE session = 'bad'); END $$");
}

#[test]
fn a_job_is_said_in_a_session_that_has_a_conversation_already() {
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    add(&database, "a");
    Worker::start(&database, &ledger, "60000").says("a: completed");
    assert_eq!(counted(&ledger), each(1));
    execute(&database, "DELETE FROM jobs");
    add(&database, "a");
    let mut second = Worker::start(&database, &ledger, "60000");
    second.says("a: begun");
    second.says("a: completed");
    assert_eq!(counted(&ledger), each(2));
}

fn execute(database: &PostgresServer, statement: &str) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statement).await.unwrap();
    });
}
