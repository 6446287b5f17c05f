//! The log of a run: one line a trial.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use agent_core::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::{EvalSet, Manifest, Trial};

/// The version of a run's log.
pub(super) const RUN_SCHEMA: &str = "agent-eval-run/1";

/// A run's directory, for reading: `sets.json` with the cases that were selected, as they were then, and
/// `trials.jsonl` with the manifest in its first line and then one line for each trial, in the order in which they
/// ended. A later line of the same trial replaces an earlier one. A last line without its end was cut off by a crash,
/// and does not count.
#[derive(Debug, Clone)]
pub struct RunLog {
    dir: PathBuf,
    manifest: Manifest,
    sets: Vec<EvalSet>,
}

impl RunLog {
    /// The run in this directory.
    ///
    /// # Errors
    /// If it cannot be read, or is of another version.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let mut lines = Lines::open(&dir)?;
        let first = lines.next_line()?;
        let first = first.ok_or_else(|| {
            store(format!("read run `{}`: its log is empty; go on with it, and it begins", dir.display()))
        })?;
        let manifest: Manifest = parse(&first, &dir, 1)?;
        if manifest.schema != RUN_SCHEMA {
            let schema = &manifest.schema;
            return Err(invalid(format!("read run `{}`: it is `{schema}`, not `{RUN_SCHEMA}`", dir.display())));
        }
        let path = dir.join(SETS);
        let text = fs::read(&path).map_err(|error| store(format!("read `{}`", path.display())).with_source(error))?;
        let sets = serde_json::from_slice(&text)
            .map_err(|error| invalid(format!("parse `{}`; begin a new run", path.display())).with_source(error))?;
        Ok(Self { dir, manifest, sets })
    }

    /// Where it is.
    #[cfg(feature = "cli")]
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was run, with what.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The sets, with the cases that were selected.
    pub fn sets(&self) -> &[EvalSet] {
        &self.sets
    }

    /// The trials, one after the other: a log may be larger than memory.
    ///
    /// # Errors
    /// Those of reading, here and at each trial.
    pub fn trials(&self) -> Result<impl Iterator<Item = Result<Trial>>> {
        let mut lines = Lines::open(&self.dir)?;
        lines.next_line()?;
        let dir = self.dir.clone();
        let mut number = 1;
        Ok(std::iter::from_fn(move || {
            number += 1;
            match lines.next_line() {
                Ok(line) => line.map(|line| parse(&line, &dir, number)),
                Err(error) => Some(Err(error)),
            }
        }))
    }
}

/// A run's log, for writing.
pub(super) struct LogWriter {
    path: PathBuf,
    file: File,
    /// Held while the run is written: of two processes one would cut off what the other writes.
    _lock: File,
}

impl LogWriter {
    /// A new run. What is to be kept with it is so before its log is there, and by nobody but who writes that.
    pub(super) fn create(
        dir: &Path,
        manifest: &Manifest,
        sets: &[EvalSet],
        keep: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Self> {
        let failed = |error| store(format!("create run `{}`", dir.display())).with_source(error);
        fs::create_dir_all(dir).map_err(failed)?;
        let lock = lock(dir)?;
        let path = dir.join(TRIALS);
        // The sets first: a log without them could not be resumed. A run that came no further is begun again.
        let sets = serde_json::to_vec_pretty(sets).map_err(|error| failed(error.into()))?;
        if Self::has_begun(dir) {
            let context = format!("create run `{}`: there is one already; resume it or take another", dir.display());
            return Err(invalid(context));
        }
        keep(dir)?;
        fs::write(dir.join(SETS), sets).map_err(failed)?;
        fs::write(&path, []).map_err(failed)?; // what is there is at most a torn first line
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        let mut log = Self { path, file, _lock: lock };
        log.append(manifest)?;
        Ok(log)
    }

    /// Whether there is a run: its manifest was written.
    pub(super) fn has_begun(dir: &Path) -> bool {
        Lines::open(dir).and_then(|mut lines| lines.next_line()).is_ok_and(|line| line.is_some())
    }

    /// A run that goes on; a torn last line is cut off.
    pub(super) fn resume(dir: &Path) -> Result<Self> {
        let path = dir.join(TRIALS);
        let failed = |error| store(format!("resume run `{}`", dir.display())).with_source(error);
        let lock = lock(dir)?;
        let whole = Lines::open(dir)?.whole_length()?;
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        file.set_len(whole).map_err(failed)?;
        Ok(Self { path, file, _lock: lock })
    }

    /// Adds a line. One write, so that a crash leaves at most a torn last line.
    pub(super) fn append(&mut self, line: &impl Serialize) -> Result<()> {
        let failed = |error| {
            let kept = "what ended before is kept, and the run can be gone on with";
            store(format!("append to `{}`; {kept}", self.path.display())).with_source(error)
        };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(failed)
    }
}

/// Takes the run for this process, until the file is closed.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let failed = |error| store(format!("lock run `{}`", dir.display())).with_source(error);
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let context = format!("write run `{}`: another process writes it; wait for its end", dir.display());
            Err(Error::new(ErrorKind::Conflict, context))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// A file of its own: where locks are mandatory, the log could not be read.
const LOCK: &str = "lock";
const TRIALS: &str = "trials.jsonl";
const SETS: &str = "sets.json";

/// The whole lines of a log.
struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
}

impl Lines {
    fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(TRIALS);
        let file = File::open(&path).map_err(|error| {
            let remedy =
                if dir.is_dir() { "the run has not begun; go on with it, and it begins" } else { "name another run" };
            store(format!("open `{}`; {remedy}", path.display())).with_source(error)
        })?;
        Ok(Self { path, reader: BufReader::new(file) })
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = self.reader.read_until(b'\n', &mut line);
        read.map_err(|error| store(format!("read `{}`", self.path.display())).with_source(error))?;
        Ok((line.last() == Some(&b'\n')).then_some(line))
    }

    fn whole_length(mut self) -> Result<u64> {
        let mut length = 0;
        while let Some(line) = self.next_line()? {
            length += line.len() as u64;
        }
        Ok(length)
    }
}

fn parse<T: serde::de::DeserializeOwned>(line: &[u8], dir: &Path, number: u64) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| {
        let remedy = match number {
            1 => "begin a new run",
            _ => "without that line, the run can be gone on with",
        };
        invalid(format!("parse line {number} of `{}`; {remedy}", dir.join(TRIALS).display())).with_source(error)
    })
}

/// What differs between two fingerprints, as `pointer: old -> new`.
pub(crate) fn differences(old: &serde_json::Value, new: &serde_json::Value) -> Vec<String> {
    let mut found = BTreeMap::new();
    compare("", old, new, &mut found);
    found.into_iter().map(|(pointer, change)| format!("{pointer}: {change}")).collect()
}

fn compare(at: &str, old: &serde_json::Value, new: &serde_json::Value, found: &mut BTreeMap<String, String>) {
    use serde_json::Value::{Null, Object};
    match (old, new) {
        (Object(a), Object(b)) => {
            for key in a.keys().chain(b.keys()) {
                let (old, new) = (a.get(key).unwrap_or(&Null), b.get(key).unwrap_or(&Null));
                compare(&format!("{at}/{key}"), old, new, found);
            }
        }
        (old, new) if old != new => drop(found.insert(at.to_owned(), format!("{} -> {}", short(old), short(new)))),
        _ => (),
    }
}

fn short(value: &serde_json::Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn store(context: String) -> Error {
    Error::new(ErrorKind::Store, context)
}

fn invalid(context: String) -> Error {
    Error::new(ErrorKind::Invalid, context)
}
