//! What a run is, and whether the run of a log is the same.

use std::{collections::BTreeMap, num::NonZeroU32, path::Path, time::SystemTime};

use agent_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value, json};

use super::{
    RunLog, RunOptions,
    log::{LogWriter, RUN_SCHEMA, differences},
    plan::{PlannedCase, SetRun},
    rfc3339,
};
use crate::{EvalCase, EvalSet, Manifest};

/// The sets with the cases that are selected, and how often each is run.
pub(super) fn selected(sets: &[SetRun<'_>], cases: &[PlannedCase<'_>]) -> Vec<EvalSet> {
    let with_repeats = |case: &PlannedCase<'_>| {
        let repeats = NonZeroU32::new(case.repeats);
        EvalCase { repeats, ..(*case.case).clone() }
    };
    let of = |set: &EvalSet| {
        let cases = cases.iter().filter(|case| case.set.name == set.name).map(with_repeats).collect();
        set.with_cases(cases)
    };
    sets.iter().map(|run| of(run.set)).filter(|set| !set.cases.is_empty()).collect()
}

/// What is run, with what.
pub(super) fn manifest(sets: &[SetRun<'_>], cases: &[PlannedCase<'_>], options: &RunOptions) -> Manifest {
    let mut trials: BTreeMap<String, u64> = BTreeMap::new();
    for case in cases {
        *trials.entry(case.set.name.clone()).or_default() += u64::from(case.repeats);
    }
    let fingerprint: Map<String, Value> =
        sets.iter().map(|run| (run.set.name.clone(), run.subject.fingerprint())).collect();
    Manifest {
        schema: RUN_SCHEMA.to_owned(),
        run: uuid::Uuid::now_v7().to_string(),
        sets: trials,
        seed: options.seed,
        fingerprint: fingerprint.into(),
        revision: options.revision.clone(),
        dirty: options.dirty,
        partial: cases.len() < sets.iter().map(|run| run.set.cases.len()).sum(),
        scored: false,
        began: rfc3339(options.began.unwrap_or_else(SystemTime::now)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// A run's log, if it has one, and the run that goes on, if it does.
pub(super) struct Opened {
    pub(super) manifest: Manifest,
    pub(super) log: Option<LogWriter>,
    pub(super) kept: Option<RunLog>,
}

/// The log that a run is written to: a new one, or that of the run that it goes on with.
///
/// # Errors
/// A log that cannot be read or written, and one of another run.
pub(super) fn open(
    manifest: Manifest,
    sets: &[EvalSet],
    options: &RunOptions,
    keep: impl FnOnce(&Path) -> Result<()>,
) -> Result<Opened> {
    let Some(dir) = &options.log else {
        if options.resume.is_some() {
            return Err(Error::new(ErrorKind::Invalid, "resume a run: `log` names no run"));
        }
        return Ok(Opened { manifest, log: None, kept: None });
    };
    if options.resume.is_none() || (dir.is_dir() && !LogWriter::has_begun(dir)) {
        let log = Some(LogWriter::create(dir, &manifest, sets, keep)?);
        return Ok(Opened { manifest, log, kept: None });
    }
    let kept = RunLog::open(dir)?;
    let changes = differences(&identity(kept.manifest(), kept.sets()), &identity(&manifest, sets));
    if !changes.is_empty() {
        let is_moved = kept.manifest().revision != manifest.revision;
        let context = format!(
            "resume run `{}`: it is not the same run: {}; {}, or begin a new run",
            dir.display(),
            changes.join("; "),
            if is_moved { "check out its revision" } else { "undo that" },
        );
        return Err(Error::new(ErrorKind::Conflict, context));
    }
    let log = Some(LogWriter::resume(dir)?);
    Ok(Opened { manifest: kept.manifest().clone(), log, kept: Some(kept) })
}

/// What must be the same when a run goes on; by name, so that a difference has one.
fn identity(manifest: &Manifest, sets: &[EvalSet]) -> Value {
    let cases = |set: &EvalSet| set.cases.iter().map(|case| (case.id.clone(), json!(case))).collect::<Map<_, _>>();
    let set = |set: &EvalSet| {
        let rest = set.with_cases(Vec::new());
        (set.name.clone(), json!({ "set": rest, "cases": cases(set) }))
    };
    let Manifest { fingerprint, seed, version, revision, .. } = manifest;
    let sets: Map<String, Value> = sets.iter().map(set).collect();
    json!({ "fingerprint": fingerprint, "seed": seed, "version": version, "revision": revision, "sets": sets })
}
