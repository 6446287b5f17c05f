//! A program that judges an answer.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use agent_core::Result;
use async_trait::async_trait;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

use super::{BuildContext, BuiltCheck, build::invalid};
use crate::{CheckContext, Outcome, Scorer};

const DEFAULT_LIMIT: Duration = Duration::from_mins(1);
/// How much of each output is kept, in bytes.
const KEPT: usize = 4 * 1024;
/// How long the output of a program that has ended may stay open: a process that left its group may hold it.
const DRAIN: Duration = Duration::from_secs(1);

struct CommandScorer {
    program: String,
    args: Vec<String>,
    dir: Option<PathBuf>,
    limit: Duration,
}

pub(super) fn build(
    program: &str,
    args: &[String],
    dir: Option<&Path>,
    timeout_ms: Option<u64>,
    cx: &BuildContext<'_>,
) -> Result<BuiltCheck> {
    if !cx.allow_exec {
        return Err(invalid("the set does not allow to run programs; write `allow_exec: true` in it"));
    }
    if program.trim().is_empty() {
        return Err(invalid("it names no program"));
    }
    if timeout_ms == Some(0) {
        return Err(invalid("`timeout_ms` is 0: it would always be killed"));
    }
    let dir = match (&cx.dir, dir) {
        (Some(base), Some(dir)) => Some(base.join(dir)),
        (base, dir) => dir.map(Path::to_path_buf).or_else(|| base.clone()),
    };
    let limit = timeout_ms.map_or(DEFAULT_LIMIT, Duration::from_millis);
    Ok(BuiltCheck::Scorer(Arc::new(CommandScorer { program: program.to_owned(), args: args.to_vec(), dir, limit })))
}

#[async_trait]
impl Scorer for CommandScorer {
    fn name(&self) -> &'static str {
        "command"
    }

    async fn score(&self, cx: &CheckContext<'_>) -> Outcome {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        #[cfg(unix)]
        command.process_group(0);
        let program = &self.program;
        let mut group = match command.spawn() {
            Ok(child) => Group::of(child),
            Err(error) => return Outcome::error(format!("`{program}` could not be started: {error}")),
        };
        let mut said = [Vec::new(), Vec::new()];
        let end = finish(&mut group, cx.answer, &mut said, self.limit).await;
        drop(group);
        let said = said.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let said = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        let reason = match end {
            Ok(Some(status)) if status.success() => return Outcome::pass(),
            Ok(Some(status)) => match status.code() {
                Some(code) => format!("`{program}` exited with {code}"),
                // Killed by a signal: it said nothing about the answer.
                None => return Outcome::error(format!("`{program}` was ended: {status}")),
            },
            Ok(None) => format!("`{program}` was killed after {:?}: it took too long", self.limit),
            Err(error) => return Outcome::error(format!("`{program}` could not be waited for: {error}")),
        };
        let outcome = Outcome::fail(reason);
        if said.is_empty() { outcome } else { outcome.with_diff(said) }
    }
}

/// A child and what it started; dropped, all of it is killed.
struct Group {
    child: Child,
    id: Option<u32>,
}

impl Group {
    fn of(child: Child) -> Self {
        Self { id: child.id(), child }
    }

    /// Kills what is left. The group's number stays its own while any of its processes lives; without one there is
    /// nothing to kill, and numbers are given again only after all others.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.id.take().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Feeds the answer and reads the output until the program ends: its status, or none if its time is up.
async fn finish(
    group: &mut Group,
    answer: &str,
    said: &mut [Vec<u8>; 2],
    limit: Duration,
) -> std::io::Result<Option<ExitStatus>> {
    let child = &mut group.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let [out, err] = said;
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program may judge without reading all of its input.
            let _ = stdin.write_all(answer.as_bytes()).await;
        }
    };
    let talk = async { tokio::join!(feed, keep(stdout, out), keep(stderr, err)) };
    tokio::pin!(talk);
    let mut silent = false;
    let wait = async {
        tokio::select! {
            status = child.wait() => status,
            _ = &mut talk => {
                silent = true;
                child.wait().await
            }
        }
    };
    let Ok(status) = timeout(limit, wait).await else { return Ok(None) };
    // What it left behind would hold the output open, and go on after its check.
    group.kill();
    if !silent {
        let _ = timeout(DRAIN, talk).await;
    }
    status.map(Some)
}

/// Reads all, and keeps the beginning.
async fn keep(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut source) = source else { return };
    let mut buffer = [0; 4096];
    // An output that cannot be read is one that has ended: what was read before still counts.
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        let room = length.min(KEPT - kept.len());
        kept.extend_from_slice(&buffer[..room]);
    }
}
