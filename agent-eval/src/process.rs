//! Programs that are run to their end, with everything that they start.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use agent_core::ProcessGroup;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Command,
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
pub(crate) async fn run(mut command: Command, input: &[u8], limit: Duration, kept: usize) -> io::Result<Ended> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = ProcessGroup::spawn(command)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = finish(&mut group, input, [&mut stdout, &mut stderr], limit, kept).await?;
    drop(group);
    Ok(Ended { status, stdout, stderr })
}

/// Feeds the input and reads the outputs until the program ends: its status, or none if its time is up.
async fn finish(
    group: &mut ProcessGroup,
    input: &[u8],
    [out, err]: [&mut Vec<u8>; 2],
    limit: Duration,
    kept: usize,
) -> io::Result<Option<ExitStatus>> {
    let (stdin, stdout, stderr) = (group.take_stdin(), group.take_stdout(), group.take_stderr());
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
            status = group.wait() => status,
            _ = &mut talk => {
                silent = true;
                group.wait().await
            }
        }
    };
    let Ok(status) = timeout(limit, wait).await else { return Ok(None) };
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
