//! Tool calls that were made against those that are expected.

mod arguments;
mod diff;
mod matching;

use agent_core::{Error, ErrorKind, Result, ToolCall};

use self::{
    arguments::CallPattern,
    diff::{Line, render},
    matching::{common_subsequence, maximum_matching},
};
use crate::{CallMode, ExpectedCalls, Outcome};

/// Compares lists of tool calls with an expected one.
///
/// In the unordered modes each call made stands for at most one expected call, and as many as possible are paired:
/// with arguments that are compared in part a greedy pairing would miss some.
///
/// ```
/// use agent_core::ToolCall;
/// use agent_eval::{CallMatcher, ExpectedCalls, Verdict};
/// use serde_json::json;
///
/// let expected: ExpectedCalls = serde_json::from_value(json!({
///     "mode": "any_order",
///     "arguments": "subset",
///     "calls": [{ "name": "search" }, { "name": "search", "arguments": { "q": 1 } }],
/// }))?;
/// let call = |arguments| ToolCall { id: String::new(), name: "search".to_owned(), arguments };
/// let made = [call(json!({ "q": 1.0 })), call(json!({ "z": 2 }))];
/// assert_eq!(CallMatcher::new(&expected)?.check(made.iter()).verdict, Verdict::Pass);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct CallMatcher {
    mode: CallMode,
    calls: Vec<CallPattern>,
}

impl CallMatcher {
    /// Compiles the expectation.
    ///
    /// # Errors
    /// A matcher that cannot be used (a bad regular expression or pointer, a negative tolerance), or an expectation
    /// that everything meets.
    pub fn new(expected: &ExpectedCalls) -> Result<Self> {
        let calls = expected.calls.iter().map(|call| CallPattern::new(call, &expected.arguments));
        let calls: Vec<CallPattern> = calls.collect::<Result<_>>()?;
        let problem = match expected.mode {
            CallMode::F1(least) if !(least > 0.0 && least <= 1.0) => {
                Some(format!("expect an F1 of {least}; it must be above 0, and 1 at most"))
            }
            CallMode::InOrder | CallMode::Superset if calls.is_empty() => Some(
                "expect no calls where others may be made: everything passes; list calls, or use the mode `exact`"
                    .to_owned(),
            ),
            CallMode::F1(_)
            | CallMode::Exact
            | CallMode::InOrder
            | CallMode::AnyOrder
            | CallMode::Subset
            | CallMode::Superset => None,
        };
        match problem {
            Some(problem) => Err(Error::new(ErrorKind::Invalid, problem)),
            None => Ok(Self { mode: expected.mode, calls }),
        }
    }

    /// Compares. The grade is the F1 of the paired calls; a failure has the two lists side by side.
    pub fn check<'a>(&self, made: impl IntoIterator<Item = &'a ToolCall>) -> Outcome {
        let made: Vec<&ToolCall> = made.into_iter().collect();
        let pairs = self.pairs(&made);
        let paired = pairs.iter().flatten().count();
        let (missing, extra) = (self.calls.len() - paired, made.len() - paired);
        let f1 = f1(paired, self.calls.len() + made.len());
        let (missing_counts, extra_counts, holds) = match self.mode {
            CallMode::Exact | CallMode::AnyOrder => (true, true, missing + extra == 0),
            CallMode::InOrder | CallMode::Superset => (true, false, missing == 0),
            CallMode::Subset => (false, true, extra == 0),
            CallMode::F1(least) => (true, true, f1 >= least),
        };
        if holds {
            return Outcome::pass().with_value(f1);
        }
        let mut reasons = Vec::new();
        if missing_counts && missing > 0 {
            reasons.push(format!("{missing} of {} not made", counted(self.calls.len(), "expected call")));
        }
        if extra_counts && extra > 0 {
            reasons.push(format!("{extra} of {} not expected", counted(made.len(), "call")));
        }
        let wanted = match self.mode {
            CallMode::Exact => "in this order, and no others".to_owned(),
            CallMode::InOrder => "in this order".to_owned(),
            CallMode::AnyOrder => "in any order, and no others".to_owned(),
            CallMode::Subset => "only expected calls".to_owned(),
            CallMode::Superset => "all expected calls".to_owned(),
            CallMode::F1(least) => format!("F1 {f1:.3} is below {least}"),
        };
        let lines = self.lines(&pairs, &made);
        Outcome::fail(format!("{} ({wanted})", reasons.join(", "))).with_value(f1).with_diff(render(
            &lines,
            missing_counts,
            extra_counts,
        ))
    }

    /// Expected and made calls side by side, as texts: what is paired stands in one row.
    pub(crate) fn aligned<'a>(&self, made: impl IntoIterator<Item = &'a ToolCall>) -> Vec<[Option<String>; 2]> {
        let made: Vec<&ToolCall> = made.into_iter().collect();
        let row = |line| match line {
            Line::Both { expected, made } => [Some(expected), Some(made)],
            Line::Missing(expected) => [Some(expected), None],
            Line::Extra(made) => [None, Some(made)],
        };
        self.lines(&self.pairs(&made), &made).into_iter().map(row).collect()
    }

    /// For each expected call the one made.
    fn pairs(&self, made: &[&ToolCall]) -> Vec<Option<usize>> {
        let fits: Vec<Vec<bool>> =
            self.calls.iter().map(|call| made.iter().map(|made| call.matches(made)).collect()).collect();
        if self.is_ordered() { common_subsequence(&fits, made.len()) } else { maximum_matching(&fits, made.len()) }
    }

    fn is_ordered(&self) -> bool {
        match self.mode {
            CallMode::Exact | CallMode::InOrder | CallMode::F1(_) => true,
            CallMode::AnyOrder | CallMode::Subset | CallMode::Superset => false,
        }
    }

    /// Expected and made calls, aligned.
    fn lines(&self, pairs: &[Option<usize>], made: &[&ToolCall]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut next = 0;
        let extra = |at: usize| Line::Extra(diff::call(made[at]));
        for (expected, pair) in self.calls.iter().zip(pairs) {
            match pair {
                Some(at) => {
                    if self.is_ordered() {
                        lines.extend((next..*at).map(extra));
                        next = at + 1;
                    }
                    lines.push(Line::Both { expected: expected.to_string(), made: diff::call(made[*at]) });
                }
                None => lines.push(Line::Missing(expected.to_string())),
            }
        }
        let is_paired = |at: &usize| pairs.contains(&Some(*at));
        let rest = next..made.len();
        lines.extend(rest.filter(|at| !is_paired(at)).map(extra));
        lines
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// 2 × paired / (expected + made); two empty lists agree.
#[expect(clippy::cast_precision_loss, reason = "counts of calls are far below 2^53")]
fn f1(paired: usize, total: usize) -> f64 {
    if total == 0 { 1.0 } else { 2.0 * paired as f64 / total as f64 }
}
