//! Baselines: what a set came to when it was last good.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use agent_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Report, SetReport, file::write_whole};

/// The version of a baseline's file format.
pub const BASELINE_SCHEMA: &str = "agent-eval-baseline/1";

/// What later runs of a set are compared with; kept in a file beside the sets, `baselines/<set>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// [`BASELINE_SCHEMA`].
    pub schema: String,
    /// The set.
    pub set: String,
    /// The run that it was taken from.
    pub run: String,
    /// The git revision of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What the subject was made of.
    #[serde(default)]
    pub fingerprint: Value,
    /// The tokens of all its trials, to estimate those of another run by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The milliseconds of all its trials, summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// By case.
    pub cases: BTreeMap<String, CaseBaseline>,
}

/// What a case came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseBaseline {
    /// Trials.
    pub trials: u64,
    /// Those that passed.
    pub passed: u64,
}

impl CaseBaseline {
    pub(super) fn rate(self) -> f64 {
        if self.trials == 0 { 0.0 } else { self.passed as f64 / self.trials as f64 }
    }
}

impl Baseline {
    /// The baseline that a run gives for one of its sets.
    ///
    /// # Errors
    /// If the run is incomplete, was of some cases only, had errors of the infrastructure, or has no such set.
    pub fn bless(report: &Report, set: &str) -> Result<Self> {
        let refuse = |why: &str| Err(Error::new(ErrorKind::Invalid, format!("bless set `{set}`: {why}")));
        let Some(found) = report.sets.iter().find(|found| found.name == set) else {
            return refuse("the run has no such set");
        };
        if report.missing > 0 {
            return refuse(&format!("the run is incomplete; {}", report.manifest.completed_by()));
        }
        if report.manifest.partial {
            return refuse("only some of the cases were run; run all");
        }
        if report.setup_errors > 0 {
            return refuse("trials could not be run as they were set up; mend that, and run them again first");
        }
        if report.infrastructure_errors > 0 {
            return refuse("trials failed because of the infrastructure; run those again first");
        }
        Ok(Self::of(report, found))
    }

    /// What a run came to, for each of its sets, whole or not.
    #[cfg(feature = "cli")]
    pub(crate) fn all(report: &Report) -> Vec<Self> {
        report.sets.iter().map(|set| Self::of(report, set)).collect()
    }

    fn of(report: &Report, set: &SetReport) -> Self {
        let cases = set
            .cases
            .iter()
            .map(|case| (case.id.clone(), CaseBaseline { trials: case.tally.trials(), passed: case.tally.passed }));
        Self {
            schema: BASELINE_SCHEMA.to_owned(),
            set: set.name.clone(),
            run: report.manifest.run.clone(),
            revision: report.manifest.revision.clone(),
            fingerprint: report.manifest.fingerprint.get(&set.name).cloned().unwrap_or_default(),
            tokens: Some(set.total.usage.total()),
            wall_ms: Some(set.total.wall_ms),
            cases: cases.collect(),
        }
    }

    /// Reads a baseline.
    ///
    /// # Errors
    /// If the file cannot be read, or is of another version.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).map_err(|error| store("read", path).with_source(error))?;
        let what = || format!("parse baseline `{}`; name another, or bless anew", path.display());
        let baseline: Self =
            serde_json::from_slice(&text).map_err(|error| Error::new(ErrorKind::Invalid, what()).with_source(error))?;
        if baseline.schema != BASELINE_SCHEMA {
            let context = format!("{}: it is `{}`, not `{BASELINE_SCHEMA}`", what(), baseline.schema);
            return Err(Error::new(ErrorKind::Invalid, context));
        }
        Ok(baseline)
    }

    /// Writes `<set>.json` in this directory, and says where.
    ///
    /// # Errors
    /// If it cannot be written. What was there before stays then.
    pub fn write(&self, dir: &Path) -> Result<PathBuf> {
        let path = dir.join(format!("{}.json", self.set));
        let failed = |error| store("write", &path).with_source(error);
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        write_whole(&path, &text).map_err(failed)?;
        Ok(path)
    }
}

fn store(what: &str, path: &Path) -> Error {
    Error::new(ErrorKind::Store, format!("{what} baseline `{}`", path.display()))
}
