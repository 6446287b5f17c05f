//! What judges a case.

use std::{fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result};

use super::RunOptions;
use crate::{Check, CheckContext, CheckSpec, EvalCase, EvalSet, Input, Outcome, Scorer, Subject};

/// What judges a case: as a whole, and turn by turn.
#[derive(Default)]
pub(super) struct CaseChecks {
    pub(super) whole: Judges,
    /// One for each turn of the input; one that judges nothing for an input without turns.
    pub(super) turns: Vec<Judges>,
}

/// Checks and scorers, in order.
#[derive(Clone, Default)]
pub(super) struct Judges {
    pub(super) checks: Vec<Arc<dyn Check>>,
    pub(super) scorers: Vec<Arc<dyn Scorer>>,
}

impl CaseChecks {
    fn is_empty(&self) -> bool {
        let judges = |judges: &Judges| !judges.checks.is_empty() || !judges.scorers.is_empty();
        !judges(&self.whole) && !self.turns.iter().any(judges)
    }
}

/// The checks of a case, the options' ones included.
///
/// # Errors
/// A check that cannot be built, and a case that nothing judges: it would pass whatever the agent does.
pub(super) fn checks_of(
    case: &EvalCase,
    set: &EvalSet,
    subject: &dyn Subject,
    options: &RunOptions,
) -> Result<CaseChecks> {
    let mut checks = build(case, set, subject)?;
    checks.whole.checks.extend(options.checks.iter().cloned());
    checks.whole.scorers.extend(options.scorers.iter().cloned());
    if checks.is_empty() {
        let context = format!("judge case `{}` of set `{}`: it has no check; add one", case.id, set.name);
        return Err(Error::new(ErrorKind::Invalid, context));
    }
    Ok(checks)
}

/// The checks of a case's own.
fn build(case: &EvalCase, set: &EvalSet, subject: &dyn Subject) -> Result<CaseChecks> {
    let judges = |specs: &mut dyn Iterator<Item = &CheckSpec>, expected: &[String]| -> Result<Judges> {
        let mut judges = Judges::default();
        if !expected.is_empty() {
            judges.checks.push(Arc::new(Expected(expected.to_vec())));
        }
        for spec in specs {
            judges.checks.push(custom(spec, subject)?);
        }
        Ok(judges)
    };
    let turns = match &case.input {
        Input::Text(_) | Input::Messages(_) => vec![Judges::default()],
        Input::Turns(turns) => {
            let each = turns.iter().map(|turn| judges(&mut turn.checks.iter(), &turn.expected));
            each.collect::<Result<_>>()?
        }
    };
    let mut specs = set.defaults.checks.iter().chain(&case.checks);
    Ok(CaseChecks { whole: judges(&mut specs, &case.expected)?, turns })
}

fn custom(spec: &CheckSpec, subject: &dyn Subject) -> Result<Arc<dyn Check>> {
    let invalid = |what: String| Error::new(ErrorKind::Invalid, what);
    let CheckSpec::Custom { name, args } = spec else {
        return Err(invalid(format!("build check {spec:?}")));
    };
    let check = subject.check(name, args)?;
    check.ok_or_else(|| invalid(format!("build check `{name}`: the subject has none of this name")))
}

struct Expected(Vec<String>);

impl Check for Expected {
    fn name(&self) -> &'static str {
        "expected"
    }

    fn check(&self, cx: &CheckContext<'_>) -> Outcome {
        Outcome::of(self.0.iter().any(|text| text.trim() == cx.answer.trim()), || format!("is `{}`", cx.answer))
    }
}

impl fmt::Debug for Judges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.checks.iter().map(Check::name);
        f.debug_list().entries(names.chain(self.scorers.iter().map(Scorer::name))).finish()
    }
}
