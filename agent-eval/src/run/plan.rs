//! Which trials a run has.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use agent_core::{Error, ErrorKind, Result};
use xxhash_rust::xxh64::Xxh64;

use super::{
    RunOptions,
    case_checks::{budget_of, checks_of},
};
use crate::{Budget, CaseChecks, EvalCase, EvalSet, Subject, TrialKey};

/// A set of a run, and what is evaluated with it.
#[derive(Clone)]
pub struct SetRun<'a> {
    /// The set.
    pub set: &'a EvalSet,
    /// What is evaluated.
    pub subject: &'a dyn Subject,
    /// The folder of the set's file, which the folders of its commands are relative to.
    pub dir: Option<PathBuf>,
}

impl std::fmt::Debug for SetRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetRun").field("set", &self.set.name).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// One case of a run.
pub(super) struct PlannedCase<'a> {
    pub(super) set: &'a EvalSet,
    pub(super) subject: &'a dyn Subject,
    pub(super) case: Arc<EvalCase>,
    pub(super) checks: Arc<CaseChecks>,
    pub(super) budget: Option<Budget>,
    pub(super) repeats: u32,
}

/// The cases that are selected, in the order of the sets.
///
/// # Errors
/// Before anything runs: no cases, two of one id, unknown ids, a case that nothing judges or that says nothing.
pub(super) fn plan<'a>(sets: &[SetRun<'a>], options: &RunOptions) -> Result<Vec<PlannedCase<'a>>> {
    let known: BTreeSet<&str> = sets.iter().flat_map(|run| &run.set.cases).map(|case| case.id.as_str()).collect();
    if let Some(unknown) = options.cases.iter().find(|id| !known.contains(id.as_str())) {
        return Err(invalid(format!("select case `{unknown}`: there is none of this id")));
    }
    let mut names = BTreeSet::new();
    let mut planned = Vec::new();
    for run in sets {
        let SetRun { set, subject, dir } = run;
        if !names.insert(&set.name) {
            return Err(invalid(format!("run set `{}`: two sets have this name", set.name)));
        }
        check_cases(set)?;
        for case in set.cases.iter().filter(|case| is_selected(set, case, options)) {
            planned.push(PlannedCase {
                set,
                subject: *subject,
                checks: Arc::new(checks_of(case, set, dir.as_deref(), *subject, options)?),
                budget: budget_of(case, set, options.cassettes),
                repeats: options.repeats.or(case.repeats).or(set.defaults.repeats).map_or(1, std::num::NonZero::get),
                case: Arc::new(case.clone()),
            });
        }
    }
    if planned.is_empty() {
        return Err(invalid("select cases to run: none is left; nothing that runs is nothing that passes".to_owned()));
    }
    Ok(planned)
}

fn is_selected(set: &EvalSet, case: &EvalCase, options: &RunOptions) -> bool {
    (options.cases.is_empty() || options.cases.contains(&case.id))
        && options.filter.as_ref().is_none_or(|filter| filter(set, case))
}

fn check_cases(set: &EvalSet) -> Result<()> {
    if set.cases.is_empty() {
        return Err(invalid(format!("run set `{}`: it has no cases", set.name)));
    }
    let mut ids = BTreeSet::new();
    for case in &set.cases {
        if !ids.insert(&case.id) {
            return Err(invalid(format!("run set `{}`: two cases have the id `{}`", set.name, case.id)));
        }
        if super::turns::turns_of(case).iter().all(Vec::is_empty) {
            return Err(invalid(format!("run case `{}` of set `{}`: its input says nothing", case.id, set.name)));
        }
    }
    Ok(())
}

/// The seed of a trial: the same for the same trial of a run with the same seed, in whatever order trials run.
pub(super) fn seed_of(run: u64, key: &TrialKey) -> u64 {
    let mut hash = Xxh64::new(run);
    for part in [&key.set, &key.case] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(&key.repeat.to_le_bytes());
    hash.digest()
}

fn invalid(context: String) -> Error {
    Error::new(ErrorKind::Invalid, context)
}
