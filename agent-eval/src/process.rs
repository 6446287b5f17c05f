//! Programs that are run to their end, with everything that they start.

use std::{
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

/// How long the output of a program that has ended may stay open: a process that left its group may hold it.
const DRAIN: Duration = Duration::from_secs(1);

/// What a program came to.
pub(crate) struct Ended {
    /// How it ended; none if its time was up.
    pub(crate) status: Option<ExitStatus>,
    /// The beginning of what it wrote to its output.
    pub(crate) stdout: Vec<u8>,
    /// The beginning of what it wrote to its error output.
    pub(crate) stderr: Vec<u8>,
}

/// Runs a program in a process group of its own, feeds it `input`, and keeps the first `kept` bytes of each output.
/// When it has ended, or its time is up, what is left of its group is killed; so it is if the future is dropped.
pub(crate) async fn run(mut command: Command, input: &[u8], limit: Duration, kept: usize) -> std::io::Result<Ended> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut group = Group::of(command.spawn()?);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = finish(&mut group, input, [&mut stdout, &mut stderr], limit, kept).await?;
    drop(group);
    Ok(Ended { status, stdout, stderr })
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

/// Feeds the input and reads the outputs until the program ends: its status, or none if its time is up.
async fn finish(
    group: &mut Group,
    input: &[u8],
    [out, err]: [&mut Vec<u8>; 2],
    limit: Duration,
    kept: usize,
) -> std::io::Result<Option<ExitStatus>> {
    let child = &mut group.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program may end without reading all of its input.
            let _ = stdin.write_all(input).await;
        }
    };
    let talk = async { tokio::join!(feed, keep(stdout, out, kept), keep(stderr, err, kept)) };
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
    // What it left behind would hold the output open, and go on after its end.
    group.kill();
    if !silent {
        let _ = timeout(DRAIN, talk).await;
    }
    status.map(Some)
}

/// Reads all, and keeps the beginning.
async fn keep(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, most: usize) {
    let Some(mut source) = source else { return };
    let mut buffer = [0; 4096];
    // An output that cannot be read is one that has ended: what was read before still counts.
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        let room = length.min(most - kept.len());
        kept.extend_from_slice(&buffer[..room]);
    }
}
