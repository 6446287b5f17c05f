//! Code that nobody vouches for, run apart.

mod isolation;

use std::{
    fs,
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use tempfile::TempDir;
use tokio::process::Command;

pub use self::isolation::Isolation;
use crate::process;

/// A temporary folder in which programs run with limits: for code that a model wrote.
///
/// A program runs in the folder, with an environment of its own, in its own process group, under resource limits, and,
/// where the system allows it, in namespaces of its own: without network, with no other processes in sight, and with
/// nothing left of it when it ends.
/// [`Isolation::here`] says what holds on this system. It can read what its user can read, and write where its user can:
/// this is a fence against accidents and mischief of a model, not against an attacker who knows the kernel. Dropped, the
/// folder is removed. It takes a POSIX shell, `sh`.
///
/// ```
/// use agent_eval::{Sandbox, SandboxEnd, SandboxLimits};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_core::Result<()> {
/// let sandbox = Sandbox::new()?;
/// sandbox.write("answer.sh", "echo $((6 * 7)); exit 3")?;
/// let ran = sandbox.run("sh", ["answer.sh"], &SandboxLimits::default()).await?;
/// assert_eq!((ran.end, ran.stdout.as_str()), (SandboxEnd::Exit(3), "42\n"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
}

/// What a program in a sandbox may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Seconds of processor time, for each of its processes; 2 by default.
    pub cpu_seconds: u32,
    /// How long it may take, whatever it does; 30 seconds by default. More than the processor time, so that a busy
    /// machine does not change what comes of it.
    pub wall: Duration,
    /// Bytes of address space, for each of its processes; 512 MiB by default.
    pub memory: u64,
    /// Bytes of each file that it writes; 16 MiB by default.
    pub file_size: u64,
    /// Processes and threads at once; 32 by default. Root is under no such limit, so the program of a sandbox that is
    /// made by root runs as `nobody` if there is one. None: any number, as the user who makes the sandbox.
    pub processes: Option<u32>,
    /// Bytes that are kept of each of its outputs, from the beginning; 64 KiB by default.
    pub output: usize,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            cpu_seconds: 2,
            wall: Duration::from_secs(30),
            memory: 512 << 20,
            file_size: 16 << 20,
            processes: Some(32),
            output: 64 << 10,
        }
    }
}

/// How a program in a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxEnd {
    /// With this exit code.
    Exit(i32),
    /// By this signal: its own fault, or a limit. An exit code above 128 is read as one, as shells do.
    Signal(i32),
    /// Its time was up.
    TimeLimit,
}

/// What a program in a sandbox came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRun {
    /// How it ended.
    pub end: SandboxEnd,
    /// The beginning of its output.
    pub stdout: String,
    /// The beginning of its error output.
    pub stderr: String,
}

impl Sandbox {
    /// Makes the folder.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sandbox-").tempdir();
        let folder = folder.and_then(|folder| isolation::hand_over(folder.path()).map(|()| folder));
        folder.map(|folder| Self { folder }).map_err(failed("make a temporary folder for a sandbox"))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder; `name` is relative to it. What has this name already is replaced: a program may
    /// have left a link there, which is not followed.
    ///
    /// # Errors
    /// If the name leads out of the folder, itself or by a link; else what the file system says.
    pub fn write(&self, name: impl AsRef<Path>, text: &str) -> Result<PathBuf> {
        let name = name.as_ref();
        let within = name.components().all(|part| matches!(part, Component::Normal(_)));
        if !within || name.file_name().is_none() {
            let what = format!("write {} into a sandbox: use a name within its folder", name.display());
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        write_within(self.path(), name, text).map_err(failed(&format!("write {} into a sandbox", name.display())))
    }

    /// Runs a program in the folder, to its end or to a limit. It reads no input. Of the environment it gets `PATH`
    /// alone; `HOME` and `TMPDIR` are the folder.
    ///
    /// # Errors
    /// If it cannot be run at all, which says nothing about the program.
    pub async fn run(
        &self,
        program: impl AsRef<Path>,
        args: impl IntoIterator<Item = &str>,
        limits: &SandboxLimits,
    ) -> Result<SandboxRun> {
        let program = program.as_ref();
        let mut words = isolation::wrapper(limits.processes.is_some()).into_iter();
        // The shell sets the limits and stays: what stands first in a namespace ignores many signals.
        let mut command = Command::new(words.next().unwrap_or("sh"));
        command.args(words).arg("-c").arg(script(limits)).arg("sh").arg(program).args(args).current_dir(self.path());
        command.env_clear().env("LC_ALL", "C").env("HOME", self.path()).env("TMPDIR", self.path());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let ended = process::run(command, b"", limits.wall, limits.output).await;
        let ended = ended.map_err(failed(&format!("run {} in a sandbox", program.display())))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let end = ended.status.map_or(SandboxEnd::TimeLimit, isolation::end_of);
        Ok(SandboxRun { end, stdout: text(ended.stdout), stderr: text(ended.stderr) })
    }
}

fn write_within(folder: &Path, name: &Path, text: &str) -> io::Result<PathBuf> {
    let path = folder.join(name);
    for parent in path.ancestors().skip(1).take_while(|parent| *parent != folder) {
        if fs::symlink_metadata(parent)?.is_symlink() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "there is a link on its way"));
        }
    }
    if fs::symlink_metadata(&path).is_ok() {
        fs::remove_file(&path)?;
    }
    // Unlike `fs::write`, this fails if there is a link.
    fs::File::create_new(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}

/// Sets the limits and runs the program. A limit that is lower already stays.
fn script(limits: &SandboxLimits) -> String {
    let SandboxLimits { cpu_seconds, memory, file_size, processes, .. } = limits;
    let (kilobytes, blocks) = (memory / 1024, file_size.div_ceil(512));
    let processes = processes.filter(|_| Isolation::here().processes);
    // Shells do not agree on the name of this one.
    let processes = processes.map(|most| format!("(ulimit -u {most}) && ulimit -u {most} || ulimit -p {most};"));
    let processes = processes.unwrap_or_default();
    format!(
        "{{ ulimit -c 0; ulimit -t {cpu_seconds}; ulimit -v {kilobytes}; ulimit -f {blocks}; {processes} }} 2>/dev/null; \
         \"$@\"; exit $?"
    )
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::new(ErrorKind::Store, what).with_source(source)
}
