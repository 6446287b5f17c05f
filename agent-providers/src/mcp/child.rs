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
    /// What was started, which knows what must not be told.
    command: McpCommand,
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
            command: command.clone(),
        };
        Ok((process, stdout, stdin))
    }

    /// Waits for the end of a server whose input was closed; asks and then forces it to end.
    pub(super) async fn end(mut self) {
        if timeout(PATIENCE, self.wait()).await.is_err() {
            #[cfg(unix)]
            if let Some(group) = self.group {
                // It may have ended meanwhile.
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
            }
            let _ = timeout(PATIENCE, self.wait()).await;
        }
    }

    /// Waits for its end, and ends what it started with it: later, another group may have its number.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill_group();
        Ok(status)
    }

    /// Ends all that is left of its group, once.
    fn kill_group(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.take() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }

    /// How it ended and what it said last, if it has ended or is about to.
    pub(super) async fn last_words(&mut self) -> String {
        let end = match timeout(DRAIN, self.wait()).await {
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
        // The child was not waited for, or the group is gone: so the number is still its.
        self.kill_group();
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
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    /// How much is kept, in bytes and in lines.
    const BYTES: usize = 4 * 1024;
    const LINES: usize = 20;

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // With room, so that not every piece moves what is kept.
        if self.bytes.len() > 2 * Self::BYTES {
            self.bytes.drain(..self.bytes.len() - Self::BYTES);
            self.is_cut = true;
        }
    }

    /// The last lines, after `redact` took out what must not be told.
    fn text(&self, redact: impl FnOnce(&str) -> String) -> String {
        let begin = self.bytes.len().saturating_sub(Self::BYTES);
        let text = String::from_utf8_lossy(&self.bytes[begin..]);
        // Half a word may be half a key.
        let words = match text.split_once(char::is_whitespace) {
            Some((_, rest)) if self.is_cut || begin > 0 => rest,
            None if self.is_cut || begin > 0 => "",
            Some(_) | None => &text,
        };
        let text = redact(words);
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
        assert_eq!(tail.text(str::to_owned), kept.join("\n"));
        assert!(tail.bytes.len() <= 2 * Tail::BYTES);
    }

    #[test]
    fn a_word_that_is_cut_is_left_out() {
        for before in [0, Tail::BYTES, 3 * Tail::BYTES] {
            let mut tail = Tail::default();
            tail.add("x".repeat(before).as_bytes());
            tail.add(b"secret");
            tail.add(format!("\n{}", "y".repeat(Tail::BYTES - 4)).as_bytes());
            assert_eq!(tail.text(str::to_owned), "y".repeat(Tail::BYTES - 4), "after {before}");
        }
    }
}
