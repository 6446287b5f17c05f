//! Where a project has its sets, its baselines and its runs.

use std::{
    fs,
    io::ErrorKind,
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
        let has_sets = |dir: &Path| dir.join("evals").is_dir() || dir.join(profile::FILE).is_file();
        // The runs are in `target/evals`: no sets are there.
        let is_root = |dir: &&Path| !dir.ends_with("target") && has_sets(dir);
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

    /// Makes the folder of a new run, which is named after the time if it has no name: no other process takes it then.
    pub(super) fn new_run(&self, name: Option<&str>) -> Outcome<PathBuf> {
        if let Some(name) = name {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name == LATEST || name.starts_with('.') || !name.chars().all(is_plain) {
                let what = "use letters, digits, `-`, `_` and `.`, and no name that has a meaning";
                return Err(Fault::setup(format!("name a run `{name}`: {what}")));
            }
            let dir = self.runs().join(name);
            // A folder without a log is of a run that came to nothing.
            if !claim(&dir)? && dir.join(TRIALS).exists() {
                let what = "there is one of this name; `--resume` it, or take another name";
                return Err(Fault::setup(format!("begin run `{name}`: {what}")));
            }
            return Ok(dir);
        }
        let now = self.runs().join(rfc3339(SystemTime::now()).replace(':', "-"));
        let (mut dir, mut number) = (now.clone(), 1);
        while !claim(&dir)? {
            number += 1;
            dir = PathBuf::from(format!("{}-{number}", now.display()));
        }
        Ok(dir)
    }

    /// A run by its folder, its name, or as `latest`: the one that began last.
    pub(super) fn run(&self, run: &str) -> Outcome<PathBuf> {
        if run == LATEST {
            let what =
                || Fault::setup(format!("find the latest run: {} has none; run the sets first", self.runs().display()));
            return self.all_runs().pop().ok_or_else(what);
        }
        let named = self.runs().join(run);
        let path = PathBuf::from(run);
        let is_run = |dir: &PathBuf| [TRIALS, ASKED].iter().any(|file| dir.join(file).is_file());
        if let Some(found) = [named, path].into_iter().find(is_run) {
            return Ok(found);
        }
        let known: Vec<String> = self.all_runs().iter().rev().map(|dir| name_of(dir)).collect();
        let hint = match nearest(run, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => "there is none yet; run the sets first".to_owned(),
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

/// Makes a folder; false if it is there.
fn claim(dir: &Path) -> Outcome<bool> {
    let made = dir.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::create_dir(dir));
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => Ok(false),
        Err(error) => Err(Fault::setup(format!("create the folder {} of a run: {error}", dir.display()))),
    }
}

/// A run's log, in its folder.
const TRIALS: &str = "trials.jsonl";

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
