//! A program that judges.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use agent_core::{Error, ErrorKind, ProcessGroup, Result};
use async_trait::async_trait;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    time::timeout,
};

use crate::{
    LoopContext, LoopEvaluation, LoopEvaluator,
    text::{cut, is_blank},
};

/// `command_succeeds`: satisfied when a program exits with 0; otherwise its output is the feedback.
///
/// The program is started directly, without a shell: nothing in its arguments is expanded. It reads no input. When
/// its time is up, or the run is interrupted, it is killed. On Unix, what it started (its process group) is killed
/// then, and also when it has ended. Of a long output the beginning and the end are kept.
///
/// ```
/// use std::time::Duration;
/// use agent_loop::CommandSucceeds;
///
/// let tests = CommandSucceeds::new("cargo").arg("test").arg("--quiet").timeout(Duration::from_secs(600));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSucceeds {
    program: OsString,
    args: Vec<OsString>,
    dir: Option<PathBuf>,
    limit: Duration,
}

/// How long a program may take that is given no time-out.
const DEFAULT_LIMIT: Duration = Duration::from_mins(5);
/// How much of each end of an output is kept, in bytes: compilers tell the first error first, tests their summary last.
const KEPT: usize = 4 * 1024;
/// How much of a command is shown, in characters: a script may be an argument.
const SHOWN: usize = 1000;
/// How long the output of a program that has ended may stay open: a process that left its group may hold it.
const DRAIN: Duration = Duration::from_secs(1);

impl CommandSucceeds {
    /// Runs this program: a path, or a name that is looked up in `PATH`. It may take 5 minutes.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: Vec::new(), dir: None, limit: DEFAULT_LIMIT }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Runs it in this directory; otherwise in the process's own.
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.dir = Some(path.into());
        self
    }

    /// How long it may take; then it is killed, and the feedback says so.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    fn shown(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        cut(&words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "), SHOWN)
    }

    fn start(&self) -> Result<ProcessGroup> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        ProcessGroup::spawn(command).map_err(|source| {
            let place = self.dir.as_ref().map(|dir| format!(" in {}", dir.display())).unwrap_or_default();
            let context = format!("start `{}`{place} as an evaluator", self.shown());
            Error::new(ErrorKind::Evaluator, context).with_source(source)
        })
    }
}

#[async_trait]
impl LoopEvaluator for CommandSucceeds {
    fn name(&self) -> &'static str {
        "command_succeeds"
    }

    async fn evaluate(&self, _: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let mut group = self.start()?;
        let mut output = [Output::default(), Output::default()];
        let end = finish(&mut group, &mut output, self.limit).await;
        drop(group);
        let end = match end {
            Ok(Some(status)) if status.success() => return Ok(LoopEvaluation::Satisfied),
            Ok(Some(status)) => exit(status),
            Ok(None) => format!("was killed after {:?}: it took too long", self.limit),
            Err(source) => {
                let context = format!("wait for `{}` as an evaluator", self.shown());
                return Err(Error::new(ErrorKind::Evaluator, context).with_source(source));
            }
        };
        let [stdout, stderr] = output.map(Output::into_text);
        let said = [stdout, stderr].into_iter().filter(|text| !is_blank(text)).collect::<Vec<_>>().join("\n");
        let said = if said.is_empty() { "It printed nothing.".to_owned() } else { said };
        Ok(LoopEvaluation::feedback(format!("`{}` {end}.\n\n{}", self.shown(), said.trim_end())))
    }
}

/// Reads the output until the program ends: its status, or none if its time is up.
async fn finish(group: &mut ProcessGroup, output: &mut [Output; 2], limit: Duration) -> io::Result<Option<ExitStatus>> {
    let (stdout, stderr) = (group.take_stdout(), group.take_stderr());
    let [out, err] = output;
    let read = async { tokio::join!(out.read(stdout), err.read(stderr)) };
    tokio::pin!(read);
    let mut all_read = false;
    let wait = async {
        tokio::select! {
            status = group.wait() => status,
            _ = &mut read => {
                all_read = true;
                group.wait().await
            }
        }
    };
    let Ok(status) = timeout(limit, wait).await else { return Ok(None) };
    let status = status?;
    if !all_read && !status.success() {
        let _ = timeout(DRAIN, read).await;
    }
    Ok(Some(status))
}

/// The beginning and the end of an output.
#[derive(Default)]
struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
}

impl Output {
    async fn read(&mut self, source: Option<impl AsyncRead + Unpin>) {
        let Some(mut source) = source else { return };
        let mut buffer = [0; 4096];
        // An output that cannot be read is one that has ended: what was read before still counts.
        while let Ok(length @ 1..) = source.read(&mut buffer).await {
            self.add(&buffer[..length]);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        // With room, so that not every piece moves what is kept.
        if self.tail.len() > 2 * KEPT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let cut = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..cut);
        self.dropped += cut;
    }

    fn into_text(mut self) -> String {
        self.cut();
        if self.dropped > 0 {
            self.head.extend_from_slice(format!("\n[… {} bytes left out …]\n", self.dropped).as_bytes());
        }
        self.head.append(&mut self.tail);
        String::from_utf8_lossy(&self.head).into_owned()
    }
}

fn exit(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("failed: {status}"),
    }
}
