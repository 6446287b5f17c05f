//! A project in a temporary folder, and the command in it.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The variable that has the command's arguments, as a JSON list.
pub(crate) const ARGUMENTS: &str = "AGENT_EVAL_TEST_ARGUMENTS";
/// What the program prints before the command does.
pub(crate) const BEGIN: &str = "--- the command ---";

/// A project.
pub(crate) struct Workspace {
    dir: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Workspace {
    /// An empty folder.
    pub(crate) fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A project with the set `small`, of cases that act so.
    pub(crate) fn with(acts: &[&str]) -> Self {
        Self::empty().set("small", "acts", acts)
    }

    /// And one more set.
    pub(crate) fn set(self, name: &str, subject: &str, acts: &[&str]) -> Self {
        let mut text = format!("schema: agent-eval/1\nname: {name}\nsubject: {subject}\ncases:\n");
        for (number, act) in acts.iter().enumerate() {
            let _ = write!(
                text,
                "  - id: case-{number}\n    tags: [{act}]\n    input: {{ text: go }}\n    expected: [good]\n    \
                 metadata: {{ act: {act} }}\n"
            );
        }
        self.file(&format!("evals/{name}.yaml"), &text)
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn run_dir(&self, run: &str) -> PathBuf {
        self.path().join("target/evals").join(run)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// How many whole lines the log of a run has.
    pub(crate) fn lines(&self, run: &str) -> usize {
        fs::read(self.run_dir(run).join("trials.jsonl"))
            .map_or(0, |text| text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).count())
    }

    /// The command, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "--nocapture", "program::program"])
            .env(ARGUMENTS, serde_json::to_string(arguments).unwrap())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            .env_remove("AGENT_MODEL")
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `eval` with these arguments.
    pub(crate) fn eval(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }
}

impl Ran {
    /// The code, and what was said on both outputs.
    pub(crate) fn told(&self) -> String {
        let code = self.code.map_or("killed".to_owned(), |code| code.to_string());
        format!("{}{}-> {code}\n", self.err, self.out)
    }
}

impl Ran {
    /// What was told, without times.
    pub(crate) fn timeless(&self) -> String {
        let time = regex::Regex::new(r"\+?\d+\.\d+ ?s\b").unwrap();
        time.replace_all(&self.told(), "TIME").into_owned()
    }
}

pub(crate) fn ran(output: std::process::Output) -> Ran {
    let out = String::from_utf8(output.stdout).unwrap();
    let out = out.split_once(&format!("{BEGIN}\n")).map_or(out.clone(), |(_, out)| out.to_owned());
    Ran { code: output.status.code(), out, err: String::from_utf8(output.stderr).unwrap() }
}
