//! A server and a worker as processes.

use std::{
    env, fs, io,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use agent_core::Session;
use agent_providers::Status;
use serde_json::json;
use tempfile::TempDir;

use crate::support::example;

const PATIENCE: Duration = Duration::from_secs(50);

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A process that is killed with what holds it.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap(); // SIGKILL
        self.0.wait().unwrap();
    }
}

fn server_program() -> Option<PathBuf> {
    let installed = "../target/peers/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server";
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join(installed);
    let program = env::var_os("RESTATE_SERVER").map_or_else(installed, PathBuf::from);
    if !program.exists() {
        println!("skipped: RESTATE_SERVER names no Restate server, and none is below target/peers");
        return None;
    }
    Some(program)
}

/// A server with its data, a worker with its notes, and how to reach them.
pub(crate) struct Site {
    program: PathBuf,
    pub(crate) dir: TempDir,
    pub(crate) ingress: u16,
    admin: u16,
    nodes: u16,
    worker: u16,
    pub(crate) serves: Option<Killed>,
    pub(crate) works: Option<Killed>,
}

impl Site {
    /// None where there is no server.
    pub(crate) fn open() -> Option<Self> {
        let program = server_program()?;
        let dir = tempfile::tempdir().unwrap();
        let [ingress, admin, nodes, worker] = [(); 4].map(|()| free_port());
        let config = format!("[ingress]\nbind-port = {ingress}\n[admin]\nbind-port = {admin}\n");
        fs::write(dir.path().join("config.toml"), config).unwrap();
        let mut site = Self { program, dir, ingress, admin, nodes, worker, serves: None, works: None };
        site.start_server();
        site.start_worker("first");
        let worker = json!({ "uri": format!("http://127.0.0.1:{worker}") }).to_string();
        site.until("a server that knows the worker", |site| {
            post(site.admin, "/deployments", &worker).ok().filter(|(status, _)| *status < 300)
        });
        Some(site)
    }

    pub(crate) fn start_server(&mut self) {
        self.serves = None;
        let mut command = Command::new(&self.program);
        command.args(["--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--no-logo"]);
        command.arg("--base-dir").arg(self.dir.path().join("server"));
        command.env("RESTATE_CONFIG", self.dir.path().join("config.toml")).env("DO_NOT_TRACK", "1");
        command.env("RESTATE_BIND_PORT", self.nodes.to_string()).env("RESTATE_DEFAULT_NUM_PARTITIONS", "2");
        self.serves = Some(Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()));
    }

    /// A worker that takes its notes in this directory.
    pub(crate) fn start_worker(&mut self, notes: &str) {
        self.works = None;
        let mut command = example(env!("CARGO_BIN_EXE_durable_loop"));
        command.args(["--port", &self.worker.to_string(), "--pause", "40", "--dir"]).arg(self.dir.path().join(notes));
        self.works = Some(Killed(command.stdout(Stdio::null()).spawn().unwrap()));
    }

    pub(crate) fn until<T>(&self, what: &str, try_it: impl Fn(&Self) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(it) = try_it(self) {
                return it;
            }
            assert!(begin.elapsed() < PATIENCE, "no {what} in {PATIENCE:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn say(&self, key: &str) {
        let path = format!("/agent/{key}/say/send");
        self.until("server that takes words", |site| {
            // The key makes it one turn, however often it is sent.
            let sent = send(site.ingress, &path, &format!("Idempotency-Key: {key}\r\n"), r#""Publish, please.""#);
            sent.ok().filter(|(status, _)| *status < 300)
        });
    }

    pub(crate) fn status(&self, key: &str) -> Option<Status> {
        let (status, body) = post(self.ingress, &format!("/agent/{key}/status"), "").ok()?;
        (status == 200).then(|| serde_json::from_str(&body).unwrap())
    }

    /// Waits until the turn waits for an approval.
    pub(crate) fn question(&self, key: &str) -> Status {
        self.until("question", |site| {
            site.status(key).filter(|status| status.stop.is_none() && !status.approvals.is_empty())
        })
    }

    /// Approves what is asked, until the turn has ended.
    pub(crate) fn approve_to_the_end(&self, key: &str) -> Status {
        self.until("end of the turn", |site| {
            let status = site.status(key)?;
            for call in &status.approvals {
                let _ = post(site.ingress, &format!("/agent/{key}/approve"), &json!(call.id).to_string());
            }
            (status.stop.is_some() || status.error.is_some()).then_some(status)
        })
    }

    pub(crate) fn session(&self, key: &str) -> Session {
        let session = self.until("session", |site| post(site.ingress, &format!("/agent/{key}/session"), "").ok());
        serde_json::from_str(&session.1).unwrap()
    }

    pub(crate) fn notes(&self, notes: &str, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join(notes).join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

pub(crate) fn post(port: u16, path: &str, json: &str) -> io::Result<(u16, String)> {
    send(port, path, "", json)
}

/// One request and its answer. In HTTP 1.0 an answer ends with its connection.
fn send(port: u16, path: &str, headers: &str, json: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let kind = if json.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = json.len();
    let head = format!("POST {path} HTTP/1.0\r\nHost: localhost\r\n{kind}{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all((head + json).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok((status, body.to_owned()))
}
