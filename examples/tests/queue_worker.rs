//! Workers that share a queue, and one that dies or only seems to.

#[path = "../../agent-providers/tests/support/postgres.rs"]
mod postgres;
mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use postgres::PostgresServer;
use support::{example, transcript};
use tempfile::{TempDir, tempdir};
use tokio_postgres::NoTls;

/// A database with jobs, and a ledger of what their tool did.
struct Jobs {
    database: PostgresServer,
    dir: TempDir,
}

impl Jobs {
    /// None where PostgreSQL is not installed.
    fn start() -> Option<Self> {
        Some(Self { database: PostgresServer::start()?, dir: tempdir().unwrap() })
    }

    fn ledger(&self) -> PathBuf {
        self.dir.path().join("ledger")
    }

    fn program(&self) -> Command {
        let mut command = example(env!("CARGO_BIN_EXE_queue_worker"));
        command.args(["--database", &self.database.url()]);
        command
    }

    fn add(&self, session: &str) {
        assert_eq!(transcript(self.program().args(["add", session, "Count what is at sea."])), "--- code 0\n");
    }

    fn worker(&self, lease: &str) -> Worker {
        let mut command = self.program();
        command.args(["work", "--once", "--lease", lease, "--ledger"]).arg(self.ledger());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        Worker { process, lines: Box::new(lines) }
    }

    /// What the tool did, and how often.
    fn counted(&self) -> BTreeMap<String, u32> {
        let mut counted = BTreeMap::new();
        for line in fs::read_to_string(self.ledger()).unwrap_or_default().lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
        counted
    }

    /// Waits until the tool did something.
    fn wait_for_a_count(&self) {
        while self.counted().is_empty() {
            std::thread::yield_now();
        }
    }

    fn execute(&self, statement: &str) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.database.url(), NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(statement).await.unwrap();
        });
    }
}

/// In milliseconds: long enough that a worker on a busy machine keeps it.
const LEASE: &str = "2000";

/// A worker, and the lines that it prints.
struct Worker {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Worker {
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

fn each(times: u32) -> BTreeMap<String, u32> {
    let calls = ["call_1_1 ferries", "call_2_1 ports", "call_3_1 gulls"];
    calls.map(|call| (call.to_owned(), times)).into()
}

#[test]
fn each_job_is_done_once_by_whichever_worker() {
    let Some(jobs) = Jobs::start() else { return };
    let sessions = ["a", "b", "c", "d"];
    for session in sessions {
        jobs.add(session);
    }
    let workers = [(); 2].map(|()| jobs.worker("60000"));
    let lines: Vec<String> =
        workers.into_iter().flat_map(|mut worker| worker.lines.by_ref().collect::<Vec<_>>()).collect();
    let mut ends: Vec<_> = lines.iter().filter(|line| line.ends_with(": completed")).cloned().collect();
    ends.sort();
    assert_eq!(ends, sessions.map(|session| format!("{session}: completed")));
    assert_eq!(jobs.counted(), each(4));
}

#[test]
fn a_killed_worker_s_session_is_gone_on_with_and_nothing_that_was_recorded_is_done_again() {
    let Some(jobs) = Jobs::start() else { return };
    jobs.add("a");
    let mut first = jobs.worker(LEASE);
    first.says("a: begun");
    let mut second = jobs.worker(LEASE);
    second.says("model");
    jobs.wait_for_a_count();
    first.signal("-KILL");
    second.says("a: gone on with");
    second.says("a: completed");
    let mut counted = jobs.counted();
    // The kill may have hit between the effect and its record.
    let ferries = counted.insert("call_1_1 ferries".to_owned(), 1).unwrap();
    assert!((1..=2).contains(&ferries), "{ferries}");
    assert_eq!(counted, each(1));
}

#[test]
fn a_worker_that_wakes_up_after_its_lease_leaves_the_session_to_the_other() {
    let Some(jobs) = Jobs::start() else { return };
    jobs.add("a");
    let mut first = jobs.worker(LEASE);
    first.says("a: begun");
    jobs.wait_for_a_count();
    first.signal("-STOP");
    let mut second = jobs.worker(LEASE);
    second.says("a: gone on with");
    first.signal("-CONT");
    first.says("a: another worker has it");
    second.says("a: completed");
}

/// The same with a worker that trusts its lease, while the database's clock jumps.
#[test]
fn a_worker_that_does_not_know_that_it_lost_its_lease_cannot_append() {
    let Some(jobs) = Jobs::start() else { return };
    jobs.add("a");
    let mut first = jobs.worker("600000");
    first.says("a: begun");
    jobs.wait_for_a_count();
    first.signal("-STOP");
    jobs.execute("UPDATE jobs SET leased_until = '-infinity'");
    let mut second = jobs.worker(LEASE);
    second.says("a: gone on with");
    // The version is the second one's now, who may have recorded nothing else yet.
    first.signal("-CONT");
    first.says("a: another worker has it (append to session `a` at version ");
    second.says("a: completed");
}

#[test]
fn a_job_that_cannot_be_done_is_marked_and_the_next_one_is_done() {
    let Some(jobs) = Jobs::start() else { return };
    jobs.add("a");
    jobs.worker("60000").says("a: completed");
    jobs.execute("INSERT INTO agent_sessions (id, version) VALUES ('bad', 3)");
    jobs.add("bad");
    jobs.add("b");
    // The first worker may have been killed before it could finish its job.
    jobs.execute("UPDATE jobs SET leased_until = '-infinity'");
    let lines: Vec<String> = jobs.worker("60000").lines.by_ref().collect();
    let failed = "bad: failed: load session `bad`: not all of its events are there; \
                  restore them from a backup, or delete the session";
    for line in [failed, "b: completed"] {
        assert!(lines.iter().any(|told| told == line), "{lines:#?}");
    }
    jobs.execute("DO $$ BEGIN ASSERT (SELECT stop LIKE 'failed: load%' FROM jobs WHERE session = 'bad'); END $$");
}

#[test]
fn a_queue_that_an_earlier_version_made_is_gone_on_with() {
    let Some(jobs) = Jobs::start() else { return };
    jobs.execute(
        "CREATE TABLE jobs (session text PRIMARY KEY, said text NOT NULL, worker uuid,
         leased_until timestamptz NOT NULL DEFAULT '-infinity', stop text);
         INSERT INTO jobs (session, said) VALUES ('a', 'Count what is at sea.')",
    );
    jobs.worker("60000").says("a: completed");
    assert_eq!(jobs.counted(), each(1));
}

#[test]
fn a_job_is_said_in_a_session_that_has_a_conversation_already() {
    let Some(jobs) = Jobs::start() else { return };
    jobs.add("a");
    jobs.worker("60000").says("a: completed");
    assert_eq!(jobs.counted(), each(1));
    jobs.execute("DELETE FROM jobs");
    jobs.add("a");
    let mut second = jobs.worker("60000");
    second.says("a: begun");
    second.says("a: completed");
    assert_eq!(jobs.counted(), each(2));
}
