//! Random scripts.

use std::num::NonZeroU32;

use agent_core::{ChatMessage, StopReason};
use agent_loop::{ContextMode, LoopEvaluation, LoopOptions};
use proptest::{collection::vec, prelude::*};

use super::{Fault, Pass, RunScript, Script};

const MOST: usize = 4;

pub(super) fn script() -> impl Strategy<Value = Script> {
    let options = (1..=MOST, any::<bool>(), prop::bool::weighted(0.8));
    let passes = vec(pass(), MOST);
    (options, passes, 0..=3_usize, vec(run(), 0..8)).prop_map(
        |((max, fresh, verdict_at_cap), passes, evaluators, runs)| {
            let max_iterations = NonZeroU32::new(u32::try_from(max).unwrap()).unwrap();
            let context = if fresh { ContextMode::Fresh } else { ContextMode::Shared };
            Script { options: LoopOptions { max_iterations, context, verdict_at_cap }, passes, evaluators, runs }
        },
    )
}

fn pass() -> impl Strategy<Value = Pass> {
    let end = prop_oneof![
        8 => Just(StopReason::Completed),
        1 => Just(StopReason::Escalated),
        1 => Just(StopReason::Length),
        1 => Just(StopReason::Halted),
        1 => Just(StopReason::BudgetExhausted),
    ];
    let evaluations = vec((evaluation(), prop_oneof![Just(0), 1..100_u64]), 3);
    (prop::bool::weighted(0.2), 0..100_u64, end, evaluations)
        .prop_map(|(asks_approval, tokens, end, evaluations)| Pass { asks_approval, tokens, end, evaluations })
}

fn evaluation() -> impl Strategy<Value = LoopEvaluation> {
    prop_oneof![
        8 => Just(LoopEvaluation::Satisfied),
        2 => Just(LoopEvaluation::Continue(None)),
        1 => Just(LoopEvaluation::Continue(Some(" \n".into()))),
        6 => "[a-c]{1,2}".prop_map(|text| LoopEvaluation::Continue(Some(text))),
        2 => Just(LoopEvaluation::ContinueWith(vec!["x".into(), ChatMessage::user("y").by("critic")])),
        1 => Just(LoopEvaluation::ContinueWith(vec![])),
        1 => Just(LoopEvaluation::Halt("h".into())),
    ]
}

fn run() -> impl Strategy<Value = RunScript> {
    let place = (1..=MOST, 0..3_usize, any::<bool>());
    let fault = prop_oneof![
        1 => Just(Fault::None),
        6 => (0..20_usize).prop_map(Fault::Crash),
        1 => Just(Fault::CancelledBefore),
        2 => place.clone().prop_map(|(iteration, _, notices)| Fault::CancelledInAgent { iteration, notices }),
        3 => place.clone().prop_map(|(iteration, evaluator, answers)| {
            Fault::CancelledInEvaluator { iteration, evaluator, answers }
        }),
        1 => place.clone().prop_map(|(iteration, ..)| Fault::AgentFails { iteration }),
        1 => place.prop_map(|(iteration, evaluator, _)| Fault::EvaluatorFails { iteration, evaluator }),
    ];
    (prop::bool::weighted(0.15), fault).prop_map(|(new_words, fault)| RunScript { new_words, fault })
}
