//! A PostgreSQL server of one's own, for tests.

use std::{
    env,
    fs::{self, OpenOptions},
    io::Write,
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// A server on a free loopback port, with a database of its own. It ends when this is dropped, and also when this
/// process ends in any other way: a shell stops it as soon as nobody holds the other end of its standard input.
pub(crate) struct PostgresServer {
    shell: Child,
    pub(crate) port: u16,
    _dir: TempDir,
}

/// Whom the server runs as; it refuses to run as root.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl PostgresServer {
    /// Starts one; none, after a word, where PostgreSQL is not installed. Under `CI=true` it has to be.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(env::var("CI").as_deref() != Ok("true"), "PostgreSQL is not installed: apt-get install postgresql");
            eprintln!("skipped: PostgreSQL is not installed");
            return None;
        };
        let user = user();
        let dir = tempfile::tempdir().unwrap();
        if let Some(User { uid, gid }) = user {
            chown(dir.path(), Some(uid), Some(gid)).unwrap();
        }
        let data = dir.path().join("data");
        let mut init = as_user(&programs.join("initdb"), user);
        init.args(["--no-sync", "--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C", "-D"]).arg(&data);
        let done = init.output().unwrap();
        assert!(done.status.success(), "initdb: {}", String::from_utf8_lossy(&done.stderr));
        // What a test stores need not survive the machine.
        let mut settings = OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
        settings.write_all(b"fsync = off\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { shell: serve(&programs, user, dir.path(), port), port, _dir: dir };
        // If not, somebody else took the port.
        if is_ready(&data) { Some(server) } else { Self::start() }
    }

    /// Where it is, for a user who may do anything; without TLS.
    pub(crate) fn url(&self) -> String {
        format!("postgres://tester@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().unwrap();
    }
}

fn serve(programs: &Path, user: Option<User>, dir: &Path, port: u16) -> Child {
    let script = r#""$@" >log 2>&1 & cat >/dev/null; kill -QUIT $!; wait"#;
    let mut shell = as_user(Path::new("/bin/sh"), user);
    shell.current_dir(dir).stdin(Stdio::piped());
    shell.args(["-c", script, "sh"]).arg(programs.join("postgres")).args(["-D", "data", "-k", "."]);
    shell.args(["-c", "listen_addresses=127.0.0.1", "-p", &port.to_string()]);
    shell.spawn().unwrap()
}

/// Waits until the server takes connections; false if it cannot have its port.
fn is_ready(data: &Path) -> bool {
    let log = data.with_file_name("log");
    loop {
        let status = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        if status.lines().nth(7).is_some_and(|state| state.trim() == "ready") {
            return true;
        }
        let log = fs::read_to_string(&log).unwrap_or_default();
        if log.contains("could not bind") {
            return false;
        }
        assert!(!log.contains("FATAL"), "{log}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Where the programs of the newest installed PostgreSQL are.
fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
    });
    let path = env::var_os("PATH").unwrap_or_default();
    let newest = debian.max().map(|(_, dir)| dir);
    newest.into_iter().chain(env::split_paths(&path)).find(|dir| dir.join("initdb").is_file())
}

/// The user `postgres`, if this process is root's.
fn user() -> Option<User> {
    let own = Command::new("id").arg("-u").output().unwrap().stdout;
    if own != b"0\n" {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:")).expect("PostgreSQL's package makes the user");
    let ids: Vec<u32> = line.split(':').skip(2).take(2).map(|id| id.parse().unwrap()).collect();
    Some(User { uid: ids[0], gid: ids[1] })
}

fn as_user(program: &Path, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    if let Some(User { uid, gid }) = user {
        command.uid(uid).gid(gid);
    }
    // Elsewhere the user may not read the current directory.
    command.current_dir("/").env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
    command
}
