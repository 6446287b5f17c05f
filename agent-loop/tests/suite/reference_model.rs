//! The loop against a model of it: plain data in, plain data out.
//!
//! 256 scripts by default; `PROPTEST_CASES=10000 cargo test -p agent-loop reference_model` for more.

use agent_core::StopReason;
use agent_loop::{LoopEvaluation, LoopOptions};
use proptest::prelude::*;

mod model;
mod real;
mod scripts;

/// What a loop is made of, and what happens to it.
#[derive(Debug, Clone)]
struct Script {
    options: LoopOptions,
    /// For each iteration: what the inner agent does, and what the evaluators answer.
    passes: Vec<Pass>,
    evaluators: usize,
    /// What happens in the runs, one after the other; from then on nothing does.
    runs: Vec<RunScript>,
}

#[derive(Debug, Clone)]
struct Pass {
    asks_approval: bool,
    tokens: u64,
    end: StopReason,
    /// One for each evaluator, and what it bills.
    evaluations: Vec<(LoopEvaluation, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RunScript {
    /// The caller says something new before.
    new_words: bool,
    fault: Fault,
}

/// What befalls a run: in the iteration, at the evaluator, if it gets there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    /// Dropped after so many updates.
    Crash(usize),
    CancelledBefore,
    /// The run is cancelled while the inner agent runs, which notices (ends so) or does not.
    CancelledInAgent {
        iteration: usize,
        notices: bool,
    },
    /// The run is cancelled while this evaluator is asked, which still answers or does not.
    CancelledInEvaluator {
        iteration: usize,
        evaluator: usize,
        answers: bool,
    },
    AgentFails {
        iteration: usize,
    },
    EvaluatorFails {
        iteration: usize,
        evaluator: usize,
    },
}

/// What is to be seen of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seen {
    said: Vec<String>,
    stop: Option<StopReason>,
    by: Option<String>,
    why: Option<String>,
    /// Tokens, who objected, and its feedback.
    records: Vec<(u64, Option<String>, Option<String>)>,
    /// What evaluators were asked, and with what context.
    asked: Vec<String>,
    /// What the events report.
    tokens: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Stop(StopReason),
    Crash,
    Error,
}

proptest! {
    #[test]
    fn the_loop_is_its_model(script in scripts::script()) {
        let mut model = model::Model::default();
        let mut real = real::Real::new(&script);
        let mut runs = script.runs.iter().copied();
        // Each pass can ask for one approval, so this is enough for any script.
        for number in 0..script.runs.len() + 2 * script.passes.len() + 2 {
            let scripted = runs.next();
            let RunScript { new_words, fault } = scripted.unwrap_or_default();
            if number == 0 || new_words {
                model.ask();
                real.ask();
            }
            let end = model.run(&script, fault);
            prop_assert_eq!(real.run(fault), end, "run {}", number);
            prop_assert_eq!(real.seen(), model.seen.clone(), "run {}", number);
            match end {
                End::Stop(StopReason::AwaitingApproval) => real.approve(&model.approve()),
                End::Stop(stop) if !stop.is_suspended() && scripted.is_none() => return Ok(()),
                End::Stop(_) | End::Crash | End::Error => (),
            }
        }
        prop_assert!(false, "the loop does not end");
    }
}
