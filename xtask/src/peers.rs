//! `cargo xtask peers`: clients and servers against programs that others wrote.

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use clap::Args;

/// Test clients and servers against programs that others wrote: scripted services, a judge of clients, the types of the
/// services' own clients, and MCP's reference servers and SDK. Needs node, npm and python3; what they run is installed below `target/peers`.
#[derive(Debug, Args)]
pub(crate) struct Peers {}

/// Scripted services of all protocols.
const AIMOCK: &str = "@copilotkit/aimock@1.43.0";

/// MCP's reference servers.
const MCP_SERVERS: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];

/// How many judges there are: each hears one client, so that they hear them at the same time.
const JUDGES: usize = 4;

impl Peers {
    pub(crate) fn run(&self) -> Result<(), String> {
        let Self {} = self;
        let root = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&root).join("..");
        let (files, installed) = (root.join("agent-providers/tests/peers"), root.join("target/peers"));
        let python = install(&files, &installed)?;
        let requests = installed.join("requests.jsonl");
        if requests.exists() {
            fs::remove_file(&requests).map_err(|error| format!("remove `{}`: {error}", requests.display()))?;
        }

        let port = free_port()?;
        let fixtures = files.join("fixtures.json");
        let aimock = installed.join("node_modules/@copilotkit/aimock/dist/cli.js");
        let mut node = Command::new("node");
        node.arg(aimock).args(["--strict", "-h", "127.0.0.1", "-p", &port.to_string(), "-f"]).arg(fixtures);
        let aimock = Service::start(node, port)?;
        let judges = (0..JUDGES).map(|_| {
            let port = free_port()?;
            let mut llmock = Command::new(python.with_file_name("llmock"));
            // Slow streams show whether a client stops to read.
            llmock.args(["serve", "--stream-chunk-delay-ms", "20", "--port", &port.to_string()]);
            Service::start(llmock, port)
        });
        let judges = judges.collect::<Result<Vec<_>, String>>()?;
        let judges = judges.iter().map(Service::url).collect::<Vec<_>>().join(",");

        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut tests = Command::new(&cargo);
        tests.args(["test", "-p", "agent-providers", "--features", "mcp", "--lib", "--test", "peers", "--"]);
        tests.args(["aimock::", "llmock::", "mcp::", "a_request_says_what_it_is_asked_to_or_what_it_cannot"]);
        tests.current_dir(&root).env("AIMOCK_URL", aimock.url()).env("LLMOCK_URL", judges);
        tests.env("REQUESTS_FILE", &requests).env("MCP_PEERS", &installed);
        run(tests)?;
        let mut served = Command::new(cargo);
        served.args(["test", "-p", "agent-examples", "--features", "mcp", "--test", "mcp_agent"]);
        served.current_dir(&root).env("MCP_PEERS", &installed);
        run(served)?;
        let mut validate = Command::new(python);
        validate.arg(files.join("validate_requests.py")).arg(requests);
        run(validate)
    }
}

/// Installs what is not there yet, and gives the Python that has it.
fn install(files: &Path, installed: &Path) -> Result<PathBuf, String> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
        .arg(installed)
        .arg(AIMOCK)
        .args(MCP_SERVERS);
    fs::create_dir_all(installed).map_err(|error| format!("create `{}`: {error}", installed.display()))?;
    run(npm)?;
    let python = installed.join("venv/bin/python");
    if !python.exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(installed.join("venv"));
        run(venv)?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    pip.arg(files.join("requirements.txt"));
    run(pip)?;
    Ok(python)
}

fn run(mut command: Command) -> Result<(), String> {
    println!("   {command:?}");
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("start {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("find a free port: {error}"))
}

/// A program that serves on this machine. It is stopped when this is dropped.
struct Service {
    process: Child,
    port: u16,
}

impl Service {
    /// Starts a program and waits until it answers.
    fn start(mut command: Command, port: u16) -> Result<Self, String> {
        const PATIENCE: Duration = Duration::from_mins(1);
        println!("   {command:?} &");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        let mut service = Self { process, port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(status)) = service.process.try_wait() {
                return Err(format!("{command:?} ended at once: {status}"));
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("{command:?} does not answer on port {port}"));
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(service)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
