//! What the evaluators say of an iteration.

use std::{pin::pin, sync::Arc};

use agent_core::{Result, StopReason};
use tracing::Instrument;

use crate::{Interrupted, LoopContext, LoopEvaluation, LoopEvaluator, Verdict, telemetry};

/// What an iteration comes to: who decided what, or what kept the evaluators from it.
pub(super) enum Judgment {
    Verdict(Option<String>, Verdict),
    Interrupted(StopReason),
}

/// Asks the evaluators in order; the first that is not satisfied decides. What all of them change is kept.
pub(super) async fn ask(evaluators: &[Arc<dyn LoopEvaluator>], cx: &LoopContext<'_>) -> Result<Judgment> {
    let mut state = Vec::new();
    for evaluator in evaluators {
        if cx.run.cancel().is_cancelled() {
            return Ok(Judgment::Interrupted(StopReason::Cancelled));
        }
        let mut interrupted = pin!(cx.run.interrupted());
        let verdict = tokio::select! {
            biased;
            verdict = evaluate(&**evaluator, cx) => verdict,
            stop = &mut interrupted => return Ok(Judgment::Interrupted(stop)),
        };
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return Interrupted::of(&error).map(Judgment::Interrupted).ok_or(error),
        };
        state.extend(verdict.state);
        if verdict.evaluation != LoopEvaluation::Satisfied {
            let verdict = Verdict { evaluation: verdict.evaluation, state };
            return Ok(Judgment::Verdict(Some(evaluator.name().to_owned()), verdict));
        }
    }
    Ok(Judgment::Verdict(None, Verdict { evaluation: LoopEvaluation::Satisfied, state }))
}

/// Asks one evaluator.
async fn evaluate(evaluator: &dyn LoopEvaluator, cx: &LoopContext<'_>) -> Result<Verdict> {
    let span = telemetry::evaluation(evaluator.name(), cx.iteration);
    let verdict = evaluator.verdict(cx).instrument(span.clone()).await;
    telemetry::evaluated(&span, cx.run, &verdict);
    verdict
}
