//! A server's process: started, listened to, ended with all that it started.

use std::{
    io,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_core::ProcessGroup;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

use super::{McpCommand, tail::Tail};

/// A server's process. Dropped, it is killed, on Unix with everything that it started (its process group).
pub(super) struct Process {
    group: ProcessGroup,
    said: Arc<Mutex<Tail>>,
    listener: JoinHandle<()>,
    /// What was started, which knows what must not be told.
    command: McpCommand,
}

/// How long a server may take to end after its input was closed, and again after it was asked to by a signal: as MCP's
/// own SDKs wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an error stream may stay open after its process has ended: a process that left its group may hold it.
const DRAIN: Duration = Duration::from_secs(1);

impl Process {
    pub(super) fn start(command: &McpCommand) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut group = ProcessGroup::spawn(command.to_command())?;
        let piped = || io::Error::other("a pipe is missing");
        let stdout = group.take_stdout().ok_or_else(piped)?;
        let stdin = group.take_stdin().ok_or_else(piped)?;
        let stderr = group.take_stderr().ok_or_else(piped)?;
        let said = Arc::<Mutex<Tail>>::default();
        let listener = tokio::spawn(listen(stderr, said.clone()));
        Ok((Self { group, said, listener, command: command.clone() }, stdout, stdin))
    }

    /// Waits for the end of a server whose input was closed; asks and then forces it to end.
    pub(super) async fn end(mut self) {
        if timeout(PATIENCE, self.group.wait()).await.is_err() {
            self.group.terminate();
            let _ = timeout(PATIENCE, self.group.wait()).await;
        }
    }

    /// How it ended and what it said last, if it has ended or is about to.
    pub(super) async fn last_words(&mut self) -> String {
        let end = match timeout(DRAIN, self.group.wait()).await {
            Ok(Ok(status)) => format!("it {}", exit(status)),
            Ok(Err(error)) => format!("its end is not known: {error}"),
            Err(_) => "it closed its output".to_owned(),
        };
        // Several calls may want to know.
        if !self.listener.is_finished() {
            let _ = timeout(DRAIN, &mut self.listener).await;
        }
        let said = self.said();
        if said.is_empty() { format!("{end} and said nothing") } else { format!("{end}; its last words:\n{said}") }
    }

    /// What it said so far, without the values of variables that it was given.
    pub(super) fn said(&self) -> String {
        lock(&self.said).text(|text| self.command.redact(text))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

fn exit(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => format!("was ended: {status}"),
    }
}

/// Keeps the end of what is said: a server whose error stream nobody reads would stand still.
async fn listen(mut source: impl AsyncRead + Unpin, said: Arc<Mutex<Tail>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        lock(&said).add(&buffer[..length]);
    }
}

fn lock(said: &Mutex<Tail>) -> std::sync::MutexGuard<'_, Tail> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}
