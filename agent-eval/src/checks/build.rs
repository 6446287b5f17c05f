//! From what a file says to checks that run.

use std::{fmt, num::NonZeroU32, path::PathBuf, sync::Arc};

use agent_core::{ChatClient, Error, ErrorKind, Result};

use super::{CheckSpec, OneOrMany, command, compose, json, judge, text, trace};
use crate::{Check, CheckContext, EvalCase, EvalSet, Input, Outcome, Scorer, Subject, check_fn};

/// A check that runs.
#[derive(Clone)]
pub enum BuiltCheck {
    /// At once.
    Check(Arc<dyn Check>),
    /// In its time: a judge, a program, or a combination with one.
    Scorer(Arc<dyn Scorer>),
}

impl BuiltCheck {
    /// Its name in reports.
    pub fn name(&self) -> &str {
        match self {
            Self::Check(check) => check.name(),
            Self::Scorer(scorer) => scorer.name(),
        }
    }

    /// Judges.
    pub async fn outcome(&self, cx: &CheckContext<'_>) -> Outcome {
        match self {
            Self::Check(check) => check.check(cx),
            Self::Scorer(scorer) => scorer.score(cx).await,
        }
    }

    pub(super) fn of<F>(name: &'static str, f: F) -> Self
    where
        F: Fn(&CheckContext<'_>) -> Outcome + Send + Sync + 'static,
    {
        Self::Check(Arc::new(check_fn(name, f)))
    }
}

impl fmt::Debug for BuiltCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Check(_) => "Check",
            Self::Scorer(_) => "Scorer",
        };
        f.debug_tuple(kind).field(&self.name()).finish()
    }
}

/// What checks are built with.
#[derive(Clone)]
pub struct BuildContext<'a> {
    /// Whether programs may be run. [`case_checks`] takes it from the set.
    pub allow_exec: bool,
    /// The folder that programs' `dir`s are relative to: that of the set's file. The process's own if absent.
    pub dir: Option<PathBuf>,
    /// The model that judges.
    pub judge: Option<Arc<dyn ChatClient>>,
    /// How often it is asked, where a check does not say.
    pub judge_repeats: NonZeroU32,
    /// Where custom checks come from.
    pub subject: Option<&'a dyn Subject>,
    /// Only look whether the specs are sound: a judge or a custom check that is not at hand is no error then, and
    /// says `Unscored`.
    pub lint: bool,
}

impl Default for BuildContext<'_> {
    /// No programs, no judge, no subject.
    fn default() -> Self {
        Self { allow_exec: false, dir: None, judge: None, judge_repeats: NonZeroU32::MIN, subject: None, lint: false }
    }
}

impl fmt::Debug for BuildContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildContext")
            .field("allow_exec", &self.allow_exec)
            .field("dir", &self.dir)
            .field("judge", &self.judge.as_ref().map(|judge| judge.model().to_owned()))
            .field("judge_repeats", &self.judge_repeats)
            .field("subject", &self.subject.is_some())
            .field("lint", &self.lint)
            .finish()
    }
}

/// The checks of a case.
#[derive(Debug, Clone, Default)]
pub struct CaseChecks {
    /// Of the whole trial, and of each iteration of its loop.
    pub whole: Vec<BuiltCheck>,
    /// Of each turn; as many as the case has turns, none for an input of another kind. A turn that was not reached
    /// has failed its checks.
    pub turns: Vec<Vec<BuiltCheck>>,
}

impl CheckSpec {
    /// Makes the check.
    ///
    /// # Errors
    /// A spec that cannot be used, or that everything meets; a program where none may be run; a judge or a custom
    /// check that is not at hand.
    pub fn build(&self, context: &BuildContext<'_>) -> Result<BuiltCheck> {
        self.built(context).map_err(|error| {
            let what = format!("build the check `{}`: {error:#}", self.name());
            Error::new(error.kind(), what)
        })
    }

    /// Its name in files and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Equals(_) => "equals",
            Self::Contains { .. } => "contains",
            Self::StartsWith(_) => "starts_with",
            Self::EndsWith(_) => "ends_with",
            Self::Regex(_) => "regex",
            Self::Not(_) => "not",
            Self::AllOf(_) => "all_of",
            Self::AnyOf(_) => "any_of",
            Self::Json => "json",
            Self::JsonSchema(_) => "json_schema",
            Self::JsonPointer { .. } => "json_pointer",
            Self::Number { .. } => "number",
            Self::EditSimilarity { .. } => "edit_similarity",
            Self::Rouge1 { .. } => "rouge1",
            Self::Calls(_) => "calls",
            Self::ForbiddenTools(_) => "forbidden_tools",
            Self::AllowedTools(_) => "allowed_tools",
            Self::Budget(_) => "budget",
            Self::NoDuplicateCalls => "no_duplicate_calls",
            Self::StateEquals(_) => "state_equals",
            Self::Stop(_) => "stop",
            Self::MaxIterations(_) => "max_iterations",
            Self::Command { .. } => "command",
            Self::Judge { .. } => "judge",
            Self::Custom { .. } => "custom",
        }
    }

    fn built(&self, cx: &BuildContext<'_>) -> Result<BuiltCheck> {
        let parts = |specs: &[Self]| specs.iter().map(|spec| spec.build(cx)).collect::<Result<Vec<_>>>();
        match self {
            Self::Equals(texts) => text::equals("equals", texts),
            Self::Contains { all, any, none, ignore_case } => text::contains(all, any, none, *ignore_case),
            Self::StartsWith(start) => text::starts_with(start),
            Self::EndsWith(end) => text::ends_with(end),
            Self::Regex(regex) => text::regex(regex),
            Self::Not(spec) => Ok(compose::not(spec.build(cx)?)),
            Self::AllOf(specs) => compose::all_of(parts(specs)?),
            Self::AnyOf(specs) => compose::any_of(parts(specs)?),
            Self::Json => Ok(json::is_json()),
            Self::JsonSchema(schema) => json::schema(schema),
            Self::JsonPointer { pointer, value } => json::pointer(pointer, value),
            Self::Number { value, tolerance, pointer } => json::number(*value, *tolerance, pointer.as_deref()),
            Self::EditSimilarity { expected, at_least } => text::edit_similarity(expected, *at_least),
            Self::Rouge1 { expected, at_least } => text::rouge1(expected, *at_least),
            Self::Calls(expected) => trace::calls("calls", expected),
            Self::ForbiddenTools(names) => trace::forbidden_tools(names),
            Self::AllowedTools(names) => Ok(trace::allowed_tools(names)),
            Self::Budget(budget) => trace::budget(*budget),
            Self::NoDuplicateCalls => Ok(trace::no_duplicate_calls()),
            Self::StateEquals(state) => trace::state_equals("state_equals", state),
            Self::Stop(stops) => trace::stop(stops),
            Self::MaxIterations(most) => trace::max_iterations(*most),
            Self::Command { program, args, dir, timeout_ms } => {
                command::build(program, args, dir.as_deref(), *timeout_ms, cx)
            }
            Self::Judge { rubric, repeats } => judge::build(rubric, *repeats, cx),
            Self::Custom { name, args } => custom(name, args, cx),
        }
    }
}

fn custom(name: &str, args: &serde_json::Value, cx: &BuildContext<'_>) -> Result<BuiltCheck> {
    match cx.subject {
        Some(subject) => match subject.check(name, args)? {
            Some(check) => Ok(BuiltCheck::Check(check)),
            None => Err(invalid(format!("the subject has no check `{name}`"))),
        },
        None if cx.lint => Ok(BuiltCheck::of("custom", |_| Outcome::unscored("there is no subject"))),
        None => Err(invalid(format!("there is no subject to bring `{name}`"))),
    }
}

/// The checks of a case: its expectations, its own checks and the set's.
///
/// # Errors
/// A check that cannot be built, or a case without any: nobody would notice that it fails. The error names the case.
pub fn case_checks(case: &EvalCase, set: &EvalSet, context: &BuildContext<'_>) -> Result<CaseChecks> {
    let cx = BuildContext { allow_exec: set.allow_exec, ..context.clone() };
    let of_case = |error: Error, place: &str| Error::new(error.kind(), format!("case `{}`{place}: {error}", case.id));
    let whole = whole_checks(case, set, &cx).map_err(|error| of_case(error, ""))?;
    let turns = match &case.input {
        Input::Text(_) | Input::Messages(_) => Vec::new(),
        Input::Turns(turns) => {
            let checks = (1..).zip(turns).map(|(number, turn)| {
                turn_checks(turn, &cx).map_err(|error| of_case(error, &format!(", turn {number}")))
            });
            checks.collect::<Result<_>>()?
        }
    };
    let checks = CaseChecks { whole, turns };
    if checks.whole.is_empty() && checks.turns.iter().all(Vec::is_empty) {
        let what = "nothing is checked, so it would pass whatever is answered; add `expected` or `checks`";
        return Err(of_case(invalid(what), ""));
    }
    Ok(checks)
}

fn whole_checks(case: &EvalCase, set: &EvalSet, cx: &BuildContext<'_>) -> Result<Vec<BuiltCheck>> {
    let mut checks = Vec::new();
    if !case.expected.is_empty() {
        checks.push(text::equals("expected", &OneOrMany::Many(case.expected.clone()))?);
    }
    if !case.expected_state.is_empty() {
        checks.push(trace::state_equals("expected_state", &case.expected_state)?);
    }
    if let Some(calls) = &case.expected_calls {
        checks.push(trace::calls("expected_calls", calls)?);
    }
    if !case.forbidden_tools.is_empty() {
        checks.push(trace::forbidden_tools(&case.forbidden_tools)?);
    }
    if let Some(tools) = &case.allowed_tools {
        checks.push(trace::allowed_tools(tools));
    }
    if let Some(budget) = case.budget.or(set.defaults.budget) {
        checks.push(CheckSpec::Budget(budget).build(cx)?);
    }
    let specs = case.checks.iter().chain(&set.defaults.checks);
    for spec in specs {
        checks.push(spec.build(cx)?);
    }
    Ok(checks)
}

fn turn_checks(turn: &crate::Turn, cx: &BuildContext<'_>) -> Result<Vec<BuiltCheck>> {
    let mut checks = Vec::new();
    if !turn.expected.is_empty() {
        checks.push(text::equals("expected", &OneOrMany::Many(turn.expected.clone()))?);
    }
    if let Some(calls) = &turn.expected_calls {
        checks.push(trace::calls("expected_calls", calls)?);
    }
    for spec in &turn.checks {
        checks.push(spec.build(cx)?);
    }
    Ok(checks)
}

pub(super) fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, what)
}
