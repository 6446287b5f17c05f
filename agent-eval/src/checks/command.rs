//! A program that judges an answer.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent_core::Result;
use async_trait::async_trait;
use tokio::process::Command;

use super::{BuildContext, BuiltCheck, build::invalid};
use crate::{CheckContext, Outcome, Scorer, process};

const DEFAULT_LIMIT: Duration = Duration::from_mins(1);
/// How much of each output is kept, in bytes.
const KEPT: usize = 4 * 1024;

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
        command.args(&self.args);
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        let program = &self.program;
        let ended = match process::run(command, cx.answer.as_bytes(), self.limit, KEPT).await {
            Ok(ended) => ended,
            Err(error) => return Outcome::error(format!("`{program}` could not be run: {error}")),
        };
        let said = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let said = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        let reason = match ended.status {
            Some(status) if status.success() => return Outcome::pass(),
            Some(status) => match status.code() {
                Some(code) => format!("`{program}` exited with {code}"),
                // Killed by a signal: it said nothing about the answer.
                None => return Outcome::error(format!("`{program}` was ended: {status}")),
            },
            None => format!("`{program}` was killed after {:?}: it took too long", self.limit),
        };
        let outcome = Outcome::fail(reason);
        if said.is_empty() { outcome } else { outcome.with_diff(said) }
    }
}
