//! A: the order of one iteration.

use agent_core::{Agent, ChatMessage, Draft, ErrorKind, SequentialAgent, StopReason, agent_fn};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, UntilEscalated, evaluate_fn};

use crate::support::{
    Log, acts, asked, cap, escalates, go, never, noted, outcome, said, says, scripted, spends, tokens, try_go, until,
};

fn ends(name: &str, stop: StopReason) -> impl Agent + 'static {
    acts(name, move |_| (vec![Draft::message(ChatMessage::assistant("x"))], Ok(stop))).0
}

/// A1
#[tokio::test]
async fn an_iteration_forwards_what_the_agent_does_and_counts_it() {
    let (agent, runs) = spends("w");
    let agent = LoopAgent::new("loop", agent, cap(5)).evaluator(until(3));
    let mut session = asked("go");
    let response = go(&agent, &mut session).await;
    assert_eq!(said(&session), ["user: go", "w: 1", "loop: f1", "w: 2", "loop: f2", "w: 3"]);
    assert_eq!((response.stop, response.usage, runs.get()), (StopReason::Completed, tokens(30, 3), 3));
    let usages: Vec<_> = outcome(&session).iterations.iter().map(|record| record.usage).collect();
    assert_eq!(usages, [tokens(10, 1); 3]);
}

/// A1
#[tokio::test]
async fn deltas_are_forwarded_before_the_iteration_ends() {
    use agent_core::{Delta, RunContext, Update};
    use futures::StreamExt;
    let inner = agent_fn("w", |_, out| {
        Box::pin(async move {
            out.delta(Delta::Text("so".into())).await;
            std::future::pending().await
        })
    });
    let agent = LoopAgent::new("loop", inner, cap(1));
    let (mut session, cx) = (asked("go"), RunContext::default());
    let mut run = agent.run(&mut session, &cx);
    assert!(matches!(run.next().await, Some(Ok(Update::Event(_)))), "the loop begins");
    assert_eq!(run.next().await.unwrap().unwrap(), Update::Delta(Delta::Text("so".into())));
}

/// A1
#[tokio::test]
async fn a_loop_inside_a_loop_of_its_name_is_refused_and_nothing_runs() {
    let (agent, runs) = says("w");
    let inner = LoopAgent::new("same", agent, cap(2)).evaluator(never());
    let between = LoopAgent::new("between", inner, cap(2)).evaluator(never());
    let outer = LoopAgent::new("same", between, cap(2)).evaluator(never());
    let mut session = asked("go");
    let error = try_go(&outer, &mut session).await.unwrap_err();
    assert_eq!((error.kind(), runs.get()), (ErrorKind::Invalid, 0));
    insta::assert_snapshot!(error, @"run loop `same` inside a loop of the same name: they would share one record; rename one");
    assert_eq!(said(&session), ["user: go"]);
}

/// A1: the refused loop leaves the session as it is.
#[tokio::test]
async fn a_refused_loop_records_nothing() {
    use agent_core::{AgentExt, LoopStep, RunContext};
    let (agent, runs) = says("w");
    let agent = LoopAgent::new("same", agent, cap(2));
    let cx = RunContext::default().enter(LoopStep { name: "same".into(), iteration: 1 });
    let (mut session, before) = (asked("go"), asked("go"));
    assert_eq!(agent.complete(&mut session, &cx).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!((session, runs.get()), (before, 0));
}

#[tokio::test]
async fn names_that_would_clash_are_refused() {
    for name in ["user", "loop:iterations"] {
        let (agent, runs) = says("w");
        let (mut session, before) = (asked("go"), asked("go"));
        let error = try_go(&LoopAgent::new(name, agent, cap(2)), &mut session).await.unwrap_err();
        assert_eq!((error.kind(), session, runs.get()), (ErrorKind::Invalid, before, 0), "{name}");
    }
}

/// A2
#[tokio::test]
async fn a_suspended_agent_suspends_the_loop_unjudged() {
    for stop in [StopReason::AwaitingApproval, StopReason::Cancelled, StopReason::BudgetExhausted] {
        let log = Log::default();
        let agent =
            LoopAgent::new("loop", ends("w", stop), cap(3)).evaluator(noted("e", &log, |_| LoopEvaluation::Satisfied));
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, stop);
        assert_eq!(log.get(), [""; 0], "{stop}");
        let outcome = outcome(&session);
        assert_eq!((outcome.stop, outcome.iterations), (Some(stop), vec![]));
    }
}

/// A3
#[tokio::test]
async fn an_escalation_completes_the_loop_unjudged_and_ends_there() {
    let (inner, runs) = escalates("checker", &[2]);
    let (log, outer_log) = (Log::default(), Log::default());
    let inner = LoopAgent::new("loop", inner, cap(5)).evaluator(noted("e", &log, |_| LoopEvaluation::again()));
    let outer = LoopAgent::new("outer", inner, cap(5)).evaluator(noted("o", &outer_log, |cx| {
        assert_eq!(cx.last.stop, StopReason::Completed);
        LoopEvaluation::Satisfied
    }));
    let mut session = asked("go");
    assert_eq!(go(&outer, &mut session).await.stop, StopReason::Completed);
    assert_eq!((runs.get(), log.get(), outer_log.get()), (2, vec!["e#1".into()], vec!["o#1".into()]));
    let outcome = outcome(&session);
    assert_eq!((outcome.by.as_deref(), outcome.why.as_deref()), (Some("checker"), None));
    let by: Vec<_> = outcome.iterations.iter().map(|record| record.by.as_deref()).collect();
    assert_eq!(by, [Some("e"), Some("checker")]);
}

/// A3: who escalated is not who escalated inside a nested loop, which consumed it.
#[tokio::test]
async fn an_escalation_that_a_nested_loop_consumed_is_not_the_outer_loops() {
    let inner = LoopAgent::new("inner", escalates("in", &[1]).0, cap(5)).evaluator(UntilEscalated);
    let (out, _) = acts("out", |_| (vec![], Ok(StopReason::Escalated)));
    let body = SequentialAgent::new("body").then(inner).then(out);
    let mut session = asked("go");
    go(&LoopAgent::new("loop", body, cap(5)).evaluator(UntilEscalated), &mut session).await;
    assert_eq!(outcome(&session).by.as_deref(), Some("body"));
}

/// A4
#[tokio::test]
async fn evaluators_judge_any_other_end_and_see_it() {
    let nested = |stop: StopReason| -> Box<dyn Agent> {
        match stop {
            StopReason::IterationLimit => Box::new(LoopAgent::new("inner", says("w").0, cap(1)).evaluator(never())),
            StopReason::Halted => Box::new(
                LoopAgent::new("inner", says("w").0, cap(1))
                    .evaluator(evaluate_fn("no", |_| LoopEvaluation::Halt("no".into()))),
            ),
            stop => Box::new(ends("w", stop)),
        }
    };
    for stop in [
        StopReason::Completed,
        StopReason::Length,
        StopReason::Filtered,
        StopReason::TurnLimit,
        StopReason::IterationLimit,
        StopReason::Halted,
    ] {
        let log = Log::default();
        let agent = LoopAgent::new("loop", nested(stop), cap(3)).evaluator(noted("e", &log, move |cx| {
            assert_eq!(cx.last.stop, stop);
            LoopEvaluation::Satisfied
        }));
        assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::Completed);
        assert_eq!(log.get(), ["e#1"], "{stop}");
    }
}

/// A5, A6
#[tokio::test]
async fn the_first_evaluator_that_objects_decides_and_later_ones_rest() {
    let log = Log::default();
    let agent = LoopAgent::new("loop", says("w").0, cap(5))
        .evaluator(noted("a", &log, |cx| {
            if cx.iteration == 1 { LoopEvaluation::feedback("A") } else { LoopEvaluation::Satisfied }
        }))
        .evaluator(noted("b", &log, |cx| {
            if cx.iteration == 2 { LoopEvaluation::feedback("B") } else { LoopEvaluation::Satisfied }
        }))
        .evaluator(noted("c", &log, |_| LoopEvaluation::Satisfied));
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(log.get(), ["a#1", "a#2", "b#2", "a#3", "b#3", "c#3"]);
    assert_eq!(said(&session), ["user: go", "w: 1", "loop: A", "w: 2", "loop: B", "w: 3"]);
    let outcome = outcome(&session);
    let by: Vec<_> = outcome.iterations.iter().map(|record| record.by.as_deref()).collect();
    assert_eq!((by, outcome.by), (vec![Some("a"), Some("b"), None], None));
}

/// A7
#[tokio::test]
async fn halt_ends_the_loop_whatever_later_evaluators_want() {
    let log = Log::default();
    let agent = LoopAgent::new("loop", says("w").0, cap(5))
        .evaluator(scripted("guard", &[LoopEvaluation::Satisfied, LoopEvaluation::Halt("enough".into())]))
        .evaluator(noted("greedy", &log, |_| LoopEvaluation::feedback("more")));
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Halted);
    assert_eq!(log.get(), ["greedy#1"]);
    let outcome = outcome(&session);
    assert_eq!((outcome.by.as_deref(), outcome.why.as_deref()), (Some("guard"), Some("enough")));
    let last = &outcome.iterations[1];
    assert_eq!((last.by.as_deref(), last.feedback.as_deref()), (Some("guard"), None));
}

/// A7: also on the last iteration.
#[tokio::test]
async fn a_halt_at_the_cap_is_a_halt() {
    let agent =
        LoopAgent::new("loop", says("w").0, cap(1)).evaluator(scripted("g", &[LoopEvaluation::Halt("h".into())]));
    assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::Halted);
}

/// A8
#[tokio::test]
async fn at_the_cap_the_evaluators_are_asked_and_their_verdict_counts() {
    for (good, stop, by, why) in
        [(3, StopReason::Completed, None, None), (4, StopReason::IterationLimit, Some("until"), Some("f3"))]
    {
        let log = Log::default();
        let agent = LoopAgent::new("loop", says("w").0, cap(3))
            .evaluator(noted("watch", &log, |cx| {
                assert_eq!(cx.is_last, cx.iteration == 3);
                LoopEvaluation::Satisfied
            }))
            .evaluator(until(good));
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, stop);
        assert_eq!(log.get(), ["watch#1", "watch#2", "watch#3"]);
        assert_eq!(said(&session), ["user: go", "w: 1", "loop: f1", "w: 2", "loop: f2", "w: 3"], "f3 is not said");
        let outcome = outcome(&session);
        assert_eq!((outcome.stop, outcome.by.as_deref(), outcome.why.as_deref()), (Some(stop), by, why));
    }
}

/// A8
#[tokio::test]
async fn without_a_verdict_at_the_cap_even_a_good_last_pass_is_the_limit() {
    for max in [1, 3] {
        let log = Log::default();
        let options = LoopOptions { verdict_at_cap: false, ..cap(max) };
        let good = move |cx: &agent_loop::LoopContext<'_>| {
            if cx.iteration == max { LoopEvaluation::Satisfied } else { LoopEvaluation::again() }
        };
        let agent = LoopAgent::new("loop", says("w").0, options).evaluator(noted("e", &log, good));
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!(log.get().len(), max as usize - 1);
        let outcome = outcome(&session);
        assert_eq!((outcome.by, outcome.why, outcome.iterations.len()), (None, None, max as usize));
    }
}

/// A8: what needs no verdict is not a verdict.
#[tokio::test]
async fn without_a_verdict_at_the_cap_an_escalation_still_completes() {
    let options = LoopOptions { verdict_at_cap: false, ..cap(1) };
    let agent = LoopAgent::new("loop", escalates("w", &[1]).0, options).evaluator(UntilEscalated);
    assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::Completed);
}

/// A9
#[tokio::test]
async fn a_loop_runs_its_agent_at_most_so_often() {
    for max in [1, 2, LoopAgent::DEFAULT_MAX_ITERATIONS] {
        let (agent, runs) = says("w");
        let agent = LoopAgent::new("loop", agent, cap(max)).evaluator(never());
        assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::IterationLimit);
        assert_eq!(runs.get(), max);
    }
    assert_eq!(LoopOptions::default(), cap(10));
}

/// A10
#[tokio::test]
async fn without_evaluators_a_loop_is_its_agent_once() {
    for (inner, stop) in [
        (StopReason::Completed, StopReason::Completed),
        (StopReason::Length, StopReason::Length),
        (StopReason::TurnLimit, StopReason::TurnLimit),
        (StopReason::Escalated, StopReason::Completed),
    ] {
        let mut session = asked("go");
        let response = go(&LoopAgent::new("loop", ends("w", inner), cap(5)), &mut session).await;
        assert_eq!((response.stop, said(&session)), (stop, vec!["user: go".to_owned(), "w: x".into()]));
        assert_eq!(outcome(&session).stop, Some(stop));
    }
}

/// A11
#[tokio::test]
async fn a_loop_records_its_beginning_each_step_between_iterations_and_its_end() {
    for options in [cap(5), crate::support::fresh(5)] {
        let agent = LoopAgent::new("loop", says("w").0, options).evaluator(until(3));
        let response = go(&agent, &mut asked("go")).await;
        let authors: Vec<&str> = response.events.iter().map(|event| &*event.author).collect();
        assert_eq!(authors, ["loop", "w", "loop", "w", "loop", "w", "loop"]);
        let steps: Vec<_> = response
            .events
            .iter()
            .filter(|event| &*event.author == "loop")
            .map(|event| (agent_loop::IterationRecord::of(event).is_some(), event.messages.len()))
            .collect();
        assert_eq!(steps, [(false, 0), (true, 1), (true, 1), (true, 0)]);
    }
}
