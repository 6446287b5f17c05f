//! Checks from functions, and checks that drive a loop.

use std::{fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result};
use agent_loop::{LoopContext, LoopEvaluation, LoopEvaluator};
use async_trait::async_trait;

use super::BuiltCheck;
use crate::{Check, CheckContext, IterationTrace, Outcome, Scorer, Verdict};

/// A check from a function, see [`check_fn`].
#[derive(Clone)]
pub struct CheckFn<F> {
    name: String,
    f: F,
}

/// A check from a function. It must be pure and total, as every [`Check`].
///
/// ```
/// use agent_eval::{Check, Outcome, check_fn};
///
/// let short = check_fn("short", |cx| {
///     let length = cx.answer.chars().count();
///     Outcome::of(length <= 280, || format!("{length} characters; 280 are allowed"))
/// });
/// assert_eq!(short.name(), "short");
/// ```
pub fn check_fn<F>(name: impl Into<String>, f: F) -> CheckFn<F>
where
    F: Fn(&CheckContext<'_>) -> Outcome + Send + Sync,
{
    CheckFn { name: name.into(), f }
}

impl<F: Fn(&CheckContext<'_>) -> Outcome + Send + Sync> Check for CheckFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, cx: &CheckContext<'_>) -> Outcome {
        (self.f)(cx)
    }
}

impl<F> fmt::Debug for CheckFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckFn").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A check that drives a loop: it decides whether the work is done, and what it says is the feedback. So the check
/// that grades a case is the one that the loop works towards.
///
/// A pass is [`Satisfied`](LoopEvaluation::Satisfied); a failure continues with its reason and its diff. `Unscored`
/// and `Error` are errors of the evaluator, never "stop" and never "go on". The check has no case.
///
/// ```
/// use agent_core::{AgentExt, Session, StopReason, testing::ScriptedAgent};
/// use agent_eval::{BuildContext, CheckEvaluator, CheckSpec};
/// use agent_loop::{LoopAgent, LoopOutcome};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec: CheckSpec = serde_json::from_value(json!({ "contains": { "all": ["40 s"] } }))?;
/// let check = spec.build(&BuildContext::default())?;
///
/// let writer = ScriptedAgent::new("writer").says("It boils water.").says("It boils water in 40 s.");
/// let slogan = LoopAgent::new("slogan", writer, Default::default()).evaluator(CheckEvaluator::from(check));
///
/// let mut session = Session::new();
/// let response = slogan.ask(&mut session, "A slogan for our kettle, please.").await?;
/// assert_eq!((response.stop, response.text().as_str()), (StopReason::Completed, "It boils water in 40 s."));
///
/// let outcome = LoopOutcome::of(&session, "slogan").expect("it ran");
/// assert_eq!(outcome.iterations[0].feedback.as_deref(), Some("the answer does not contain \"40 s\""));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CheckEvaluator(BuiltCheck);

impl CheckEvaluator {
    /// A check drives the loop.
    pub fn new(check: impl Check + 'static) -> Self {
        Self(BuiltCheck::Check(Arc::new(check)))
    }

    /// A scorer drives the loop. What a judge spends counts for the iteration and for the run's tokens once it has
    /// answered; its calls are not counted: where that matters, let an evaluator of `agent-loop` ask the model.
    pub fn scorer(scorer: impl Scorer + 'static) -> Self {
        Self(BuiltCheck::Scorer(Arc::new(scorer)))
    }
}

impl From<BuiltCheck> for CheckEvaluator {
    fn from(check: BuiltCheck) -> Self {
        Self(check)
    }
}

#[async_trait]
impl LoopEvaluator for CheckEvaluator {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let iterations = traces(cx);
        let answer = cx.last.text();
        let judged = CheckContext {
            case: None,
            session: cx.session,
            events: &cx.last.events,
            answer: &answer,
            stop: Some(cx.last.stop),
            usage: cx.last.usage,
            wall: None,
            iterations: &iterations,
        };
        let Outcome { verdict, reason, diff, usage, .. } = self.0.outcome(&judged).await;
        cx.run.bill(usage);
        let name = self.0.name();
        let failed = |what: &str| Err(Error::new(ErrorKind::Evaluator, format!("check `{name}` {what}: {reason}")));
        match verdict {
            Verdict::Pass => Ok(LoopEvaluation::Satisfied),
            Verdict::Fail => {
                let reason = if reason.is_empty() { format!("the check `{name}` does not hold") } else { reason };
                Ok(LoopEvaluation::feedback(match diff {
                    Some(diff) => format!("{reason}\n\n{diff}"),
                    None => reason,
                }))
            }
            Verdict::Unscored => failed("could not judge the iteration"),
            Verdict::Error => failed("failed"),
        }
    }
}

/// The iterations so far, the one that is judged included.
fn traces(cx: &LoopContext<'_>) -> Vec<IterationTrace> {
    let trace =
        |(iteration, response, by, feedback, digest): (u32, &agent_core::AgentResponse, _, _, _)| IterationTrace {
            iteration,
            gold: Verdict::Unscored,
            accepted: false,
            by,
            feedback,
            usage: response.usage,
            millis: 0,
            digest,
            draft: response.text(),
        };
    let earlier = (1..).zip(cx.earlier).map(|(iteration, earlier)| {
        (iteration, &earlier.response, earlier.by.clone(), earlier.feedback.clone(), earlier.digest)
    });
    earlier.chain([(cx.iteration, cx.last, None, None, cx.digest())]).map(trace).collect()
}
