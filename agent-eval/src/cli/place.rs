//! Where a project has its sets, its baselines and its runs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    codes::{Fault, Outcome},
    profile,
};
use crate::{
    RunLog,
    file::write_whole,
    run::rfc3339,
    text::{listed, nearest},
};

/// A project's folder; empty if it is the present one, so that files have short names.
pub(super) struct Place {
    pub(super) root: PathBuf,
}

impl Place {
    /// The nearest folder, from the present one up, that has sets or profiles.
    pub(super) fn find() -> Outcome<Self> {
        let here =
            std::env::current_dir().map_err(|error| Fault::setup(format!("find the present folder: {error}")))?;
        let is_root = |dir: &&Path| dir.join("evals").is_dir() || dir.join(profile::FILE).is_file();
        match here.ancestors().find(is_root) {
            Some(root) if root == here => Ok(Self { root: PathBuf::new() }),
            Some(root) => Ok(Self { root: root.to_owned() }),
            None => Err(Fault::setup(format!(
                "find eval sets: neither {} nor a folder above it has `evals`; make it, with a set in it",
                here.display()
            ))),
        }
    }

    pub(super) fn sets(&self) -> PathBuf {
        self.root.join("evals")
    }

    pub(super) fn baselines(&self) -> PathBuf {
        self.sets().join("baselines")
    }

    fn runs(&self) -> PathBuf {
        self.root.join("target").join("evals")
    }

    /// The folder of a new run; named after the time if it has no name.
    pub(super) fn new_run(&self, name: Option<&str>) -> Outcome<PathBuf> {
        if let Some(name) = name {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name == LATEST || name.starts_with('.') || !name.chars().all(is_plain) {
                let what = "use letters, digits, `-`, `_` and `.`, and no name that has a meaning";
                return Err(Fault::setup(format!("name a run `{name}`: {what}")));
            }
            return Ok(self.runs().join(name));
        }
        let now = rfc3339(SystemTime::now()).replace(':', "-");
        let names = std::iter::once(now.clone()).chain((2..).map(|number| format!("{now}-{number}")));
        let mut free = names.map(|name| self.runs().join(name)).filter(|dir| !dir.exists());
        Ok(free.next().unwrap_or_else(|| self.runs().join(now)))
    }

    /// A run by its folder, its name, or as `latest`: the one that began last.
    pub(super) fn run(&self, run: &str) -> Outcome<PathBuf> {
        if run == LATEST {
            let what = || Fault::setup(format!("find the latest run: {} has none", self.runs().display()));
            return self.all_runs().pop().ok_or_else(what);
        }
        let named = self.runs().join(run);
        let path = PathBuf::from(run);
        let is_run = |dir: &PathBuf| ["trials.jsonl", ASKED].iter().any(|file| dir.join(file).is_file());
        if let Some(found) = [named, path].into_iter().find(is_run) {
            return Ok(found);
        }
        let known: Vec<String> = self.all_runs().iter().rev().map(|dir| name_of(dir)).collect();
        let hint = match nearest(run, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => "there is none yet".to_owned(),
            None => format!("the last ones are {}", listed(known.iter().take(5))),
        };
        Err(Fault::setup(format!("find the run `{run}` in {}: {hint}", self.runs().display())))
    }

    /// All runs, in the order in which they began.
    pub(super) fn all_runs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.runs()).into_iter().flatten().flatten();
        let mut runs: Vec<((String, String), PathBuf)> = entries
            .filter_map(|entry| {
                let log = RunLog::open(entry.path()).ok()?;
                Some(((log.manifest().began.clone(), log.manifest().run.clone()), entry.path()))
            })
            .collect();
        runs.sort();
        runs.into_iter().map(|(_, dir)| dir).collect()
    }
}

/// Where it is kept what was asked for, in a run's folder: before its log is there.
pub(super) const ASKED: &str = "command.json";

/// The name of the run that began last.
pub(super) const LATEST: &str = "latest";

/// A run's name: that of its folder.
pub(super) fn name_of(dir: &Path) -> String {
    dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Writes a file so that it is there whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> Outcome<()> {
    write_whole(path, text).map_err(|error| Fault::setup(format!("write {}: {error}", path.display())))
}
