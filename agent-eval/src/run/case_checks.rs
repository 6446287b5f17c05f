//! What judges a case.

use std::path::Path;

use agent_core::{Error, Result};

use super::{CassetteMode, RunOptions};
use crate::{
    Budget, BuildContext, BuiltCheck, CaseChecks, CaseDefaults, EvalCase, EvalSet, Input, Subject, case_checks,
};

/// The checks of a case, the options' ones included, with one list a turn.
///
/// # Errors
/// A check that cannot be built, and a case that nothing judges: it would pass whatever the agent does.
pub(super) fn checks_of(
    case: &EvalCase,
    set: &EvalSet,
    dir: Option<&Path>,
    subject: &dyn Subject,
    options: &RunOptions,
) -> Result<CaseChecks> {
    let context = BuildContext {
        dir: dir.map(Into::into),
        judge: options.judge.clone(),
        judge_repeats: options.judge_repeats,
        subject: Some(subject),
        ..BuildContext::default()
    };
    let more = options.checks.iter().cloned().map(BuiltCheck::Check);
    let more: Vec<BuiltCheck> = more.chain(options.scorers.iter().cloned().map(BuiltCheck::Scorer)).collect();
    let case = EvalCase { budget: budget_of(case, set, options.cassettes), ..case.clone() };
    let defaults = CaseDefaults { budget: None, ..set.defaults.clone() };
    let set = EvalSet { defaults, ..set.with_cases(Vec::new()) };
    let built = if more.is_empty() || has_own(&case, &set) {
        case_checks(&case, &set, &context)
    } else {
        Ok(CaseChecks::default())
    };
    let mut checks = built.map_err(|error| Error::new(error.kind(), format!("judge set `{}`: {error}", set.name)))?;
    checks.whole.extend(more);
    let turns = match &case.input {
        Input::Text(_) | Input::Messages(_) => 1,
        Input::Turns(turns) => turns.len(),
    };
    checks.turns.resize_with(turns, Vec::new);
    Ok(checks)
}

/// What a trial of the case may spend. In a replay time means nothing, and is not limited.
pub(super) fn budget_of(case: &EvalCase, set: &EvalSet, cassettes: CassetteMode) -> Option<Budget> {
    let mut budget = case.budget.or(set.defaults.budget)?;
    if cassettes == CassetteMode::Replay {
        budget.wall_ms = None;
    }
    (budget != Budget::default()).then_some(budget)
}

/// Whether a case says itself what is expected; if not, the options' checks suffice.
fn has_own(case: &EvalCase, set: &EvalSet) -> bool {
    let EvalCase { expected, expected_state, expected_calls, forbidden_tools, allowed_tools, budget, checks, .. } =
        case;
    let of_turns = match &case.input {
        Input::Text(_) | Input::Messages(_) => false,
        Input::Turns(turns) => {
            turns.iter().any(|t| !t.expected.is_empty() || t.expected_calls.is_some() || !t.checks.is_empty())
        }
    };
    let of_case =
        !(expected.is_empty() && expected_state.is_empty() && forbidden_tools.is_empty() && checks.is_empty());
    let of_case = of_case || expected_calls.is_some() || allowed_tools.is_some() || budget.is_some();
    of_case || of_turns || !set.defaults.checks.is_empty()
}
