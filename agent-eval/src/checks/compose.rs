//! Checks made of checks.

use std::sync::Arc;

use agent_core::Result;
use async_trait::async_trait;

use super::{BuiltCheck, build::invalid};
use crate::{Check, CheckContext, CheckOutcome, Outcome, Scorer, Verdict, overall};

/// How outcomes become one.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Not,
    AllOf,
    AnyOf,
}

struct Composed {
    rule: Rule,
    parts: Vec<BuiltCheck>,
}

pub(super) fn not(part: BuiltCheck) -> BuiltCheck {
    composed(Rule::Not, vec![part])
}

pub(super) fn all_of(parts: Vec<BuiltCheck>) -> Result<BuiltCheck> {
    several(Rule::AllOf, parts)
}

pub(super) fn any_of(parts: Vec<BuiltCheck>) -> Result<BuiltCheck> {
    several(Rule::AnyOf, parts)
}

fn several(rule: Rule, parts: Vec<BuiltCheck>) -> Result<BuiltCheck> {
    if parts.is_empty() { Err(invalid("it has no parts; list checks")) } else { Ok(composed(rule, parts)) }
}

fn composed(rule: Rule, parts: Vec<BuiltCheck>) -> BuiltCheck {
    let at_once = parts.iter().all(|part| matches!(part, BuiltCheck::Check(_)));
    let composed = Composed { rule, parts };
    if at_once { BuiltCheck::Check(Arc::new(composed)) } else { BuiltCheck::Scorer(Arc::new(composed)) }
}

impl Composed {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::Not => "not",
            Rule::AllOf => "all_of",
            Rule::AnyOf => "any_of",
        }
    }

    fn combine(&self, outcomes: Vec<Outcome>) -> Outcome {
        let combined = self.decide(&outcomes).with_usage(outcomes.iter().map(|outcome| outcome.usage).sum());
        let named = self.parts.iter().zip(outcomes).map(|(part, outcome)| CheckOutcome {
            check: part.name().to_owned(),
            turn: None,
            outcome,
        });
        combined.with_judges(named.flat_map(|part| part.judgments().cloned().collect::<Vec<_>>()))
    }

    fn decide(&self, outcomes: &[Outcome]) -> Outcome {
        let verdicts = || outcomes.iter().map(|outcome| outcome.verdict);
        let verdict = match self.rule {
            Rule::Not => match overall(verdicts()) {
                Verdict::Pass => {
                    return Outcome::fail(format!("the check `{}` holds, and must not", self.parts[0].name()));
                }
                Verdict::Fail => Verdict::Pass,
                verdict @ (Verdict::Unscored | Verdict::Error) => verdict,
            },
            Rule::AllOf => overall(verdicts()),
            // One that holds is enough, whatever became of the others. Without one, "none holds" is only true if all
            // were judged.
            Rule::AnyOf if verdicts().any(|verdict| verdict == Verdict::Pass) => Verdict::Pass,
            Rule::AnyOf => {
                let open = verdicts().filter(|verdict| *verdict != Verdict::Fail);
                if open.clone().next().is_some() { overall(open) } else { Verdict::Fail }
            }
        };
        if verdict == Verdict::Pass {
            return Outcome::pass();
        }
        let said = self.parts.iter().zip(outcomes).filter(|(_, outcome)| outcome.verdict == verdict);
        let reason = said.map(|(part, outcome)| format!("{}: {}", part.name(), outcome.reason));
        let reason = reason.collect::<Vec<_>>().join("; ");
        let diffs: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome.diff.as_deref()).collect();
        let outcome = Outcome::new(verdict, reason);
        if diffs.is_empty() { outcome } else { outcome.with_diff(diffs.join("\n\n")) }
    }
}

impl Check for Composed {
    fn name(&self) -> &str {
        self.name()
    }

    fn check(&self, cx: &CheckContext<'_>) -> Outcome {
        let outcomes = self.parts.iter().map(|part| match part {
            BuiltCheck::Check(check) => check.check(cx),
            BuiltCheck::Scorer(_) => Outcome::error("a scorer was asked as a check"),
        });
        self.combine(outcomes.collect())
    }
}

#[async_trait]
impl Scorer for Composed {
    fn name(&self) -> &str {
        self.name()
    }

    async fn score(&self, cx: &CheckContext<'_>) -> Outcome {
        let mut outcomes = Vec::new();
        for part in &self.parts {
            outcomes.push(part.outcome(cx).await);
        }
        self.combine(outcomes)
    }
}
