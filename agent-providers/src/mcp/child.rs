//! A server's process: started, listened to, ended with all that it started.

use std::{
    io,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

use super::McpCommand;

/// A server's process. Dropped, it is killed, on Unix with everything that it started (its process group).
pub(super) struct Process {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    said: Arc<Mutex<Tail>>,
    listener: JoinHandle<()>,
}

/// How long a server may take to end after its input was closed, and again after it was asked to by a signal: as MCP's
/// own SDKs wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an error stream may stay open after its process has ended: a process that it left behind may hold it.
const DRAIN: Duration = Duration::from_secs(1);

impl Process {
    pub(super) fn start(command: &McpCommand) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut child = command.to_command().spawn()?;
        let piped = || io::Error::other("a pipe is missing");
        let stdout = child.stdout.take().ok_or_else(piped)?;
        let stdin = child.stdin.take().ok_or_else(piped)?;
        let stderr = child.stderr.take().ok_or_else(piped)?;
        let said = Arc::<Mutex<Tail>>::default();
        let listener = tokio::spawn(listen(stderr, said.clone()));
        #[cfg(unix)]
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        let process = Self {
            child,
            #[cfg(unix)]
            group,
            said,
            listener,
        };
        Ok((process, stdout, stdin))
    }

    /// Waits for the end of a server whose input was closed; asks and then forces it to end.
    pub(super) async fn end(mut self) {
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            #[cfg(unix)]
            if let Some(group) = self.group {
                // It may have ended meanwhile.
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
            }
            let _ = timeout(PATIENCE, self.child.wait()).await;
        }
    }

    /// How it ended and what it said last, if it has ended or is about to.
    pub(super) async fn last_words(&mut self) -> String {
        let end = match timeout(DRAIN, self.child.wait()).await {
            Ok(Ok(status)) => format!("it {}", exit(status)),
            Ok(Err(error)) => format!("its end is not known: {error}"),
            Err(_) => "it closed its output".to_owned(),
        };
        // Several calls may want to know.
        if !self.listener.is_finished() {
            let _ = timeout(DRAIN, &mut self.listener).await;
        }
        let said = lock(&self.said).text();
        if said.is_empty() { format!("{end} and said nothing") } else { format!("{end}; its last words:\n{said}") }
    }

    /// What it said so far, while it runs.
    pub(super) fn said(&self) -> String {
        lock(&self.said).text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.listener.abort();
        // Also where the child has ended by itself: what it started may not have. A group's number is not given to
        // another one while anything is left in it.
        #[cfg(unix)]
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
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

/// The end of a text.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    /// How much is kept, in bytes and in lines.
    const BYTES: usize = 4 * 1024;
    const LINES: usize = 20;

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        // With room, so that not every piece moves what is kept.
        if self.0.len() > 2 * Self::BYTES {
            self.0.drain(..self.0.len() - Self::BYTES);
        }
    }

    fn text(&self) -> String {
        let end = &self.0[self.0.len().saturating_sub(Self::BYTES)..];
        let text = String::from_utf8_lossy(end);
        let lines = text.trim_end().lines().collect::<Vec<_>>();
        lines[lines.len().saturating_sub(Self::LINES)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = Tail::default();
        (0..5_000).for_each(|n| tail.add(format!("line {n}\n").as_bytes()));
        let kept = (4_980..5_000).map(|n| format!("line {n}")).collect::<Vec<_>>();
        assert_eq!(tail.text(), kept.join("\n"));
        assert!(tail.0.len() <= 2 * Tail::BYTES);
    }
}
