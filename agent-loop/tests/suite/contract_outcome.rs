//! C: what comes back.

use agent_core::{
    AgentExt, ChatMessage, Draft, LoopStep, RunContext, Session, StopReason, agent_fn, testing::ScriptedClient,
};
use agent_loop::{IterationRecord, LoopAgent, LoopEvaluation, LoopOutcome};

use crate::support::{
    acts, asked, boom, cap, chat, escalates, fresh, gated, go, judge, never, outcome, said, says, scripted, spends,
    tokens, tool_turn, try_go, until,
};

/// C1
#[tokio::test]
async fn the_text_is_the_last_answer_and_all_iterations_are_in_the_events() {
    let (agent, _) = acts("w", |run| {
        let text = if run < 3 { run.to_string() } else { String::new() };
        (vec![Draft::message(ChatMessage::assistant(text))], Ok(StopReason::Completed))
    });
    let agent = LoopAgent::new("loop", agent, cap(3)).evaluator(scripted("e", &[LoopEvaluation::feedback("f")]));
    let response = go(&agent, &mut asked("go")).await;
    assert_eq!((response.text().as_str(), response.stop), ("2", StopReason::IterationLimit));
    assert_eq!(response.events.iter().filter(|event| &*event.author == "w").count(), 3);
    assert_eq!(
        response.accepted().unwrap_err().to_string(),
        "the run ended before its work was done: iteration limit reached"
    );
}

/// C2
#[tokio::test]
async fn usage_is_the_sum_of_all_iterations_judges_included() {
    for (good, stop) in [(3, StopReason::Completed), (9, StopReason::IterationLimit)] {
        let (agent, _) = spends("w");
        let agent = LoopAgent::new("loop", agent, cap(3))
            .evaluator(judge(tokens(2, 1), |_| Some(LoopEvaluation::Satisfied)))
            .evaluator(until(good));
        let (mut session, cx) = (asked("go"), RunContext::default());
        let response = agent.complete(&mut session, &cx).await.unwrap();
        assert_eq!((response.stop, response.usage, cx.spent().tokens), (stop, tokens(36, 6), 9), "spent: bills only");
        let usages: Vec<_> = outcome(&session).iterations.iter().map(|record| record.usage).collect();
        assert_eq!(usages, [tokens(12, 2); 3]);
    }
}

/// C2: a judge that asks its model and then fails has asked it.
#[tokio::test]
async fn the_bill_of_an_evaluator_that_fails_is_in_the_events_and_in_the_next_record() {
    let failed = crate::support::Count::default();
    let again = failed.clone();
    let agent = LoopAgent::new("loop", spends("w").0, cap(3))
        .evaluator(judge(tokens(2, 1), move |_| (again.up() > 1).then_some(LoopEvaluation::Satisfied)));
    let mut session = asked("go");
    let before = session.clone();
    let (events, error) = events_until_error(&agent, &mut session).await;
    insta::assert_snapshot!(error, @"ask the judge");
    assert_eq!(events.iter().filter_map(|event| event.usage).sum::<agent_core::Usage>(), tokens(12, 2));
    let mut folded = before;
    for event in &events {
        folded.apply(event);
    }
    assert_eq!(folded, session);
    assert_eq!((outcome(&session).stop, outcome(&session).iterations), (None, vec![]));

    let response = go(&agent, &mut session).await;
    assert_eq!((response.stop, response.usage), (StopReason::Completed, tokens(12, 2)));
    assert_eq!(outcome(&session).iterations[0].usage, tokens(24, 4), "the whole pass");
    assert_eq!(failed.get(), 2);
}

async fn events_until_error(agent: &LoopAgent, session: &mut Session) -> (Vec<agent_core::Event>, agent_core::Error) {
    use agent_core::{Agent, Update};
    use futures::StreamExt;
    let cx = RunContext::default();
    let mut run = agent.run(session, &cx);
    let mut events = Vec::new();
    loop {
        match run.next().await.unwrap() {
            Ok(Update::Event(event)) => events.push(event),
            Ok(Update::Delta(_)) => (),
            Ok(Update::Done(stop)) => panic!("no error, but {stop}"),
            Err(error) => {
                assert!(run.next().await.is_none());
                return (events, error);
            }
        }
    }
}

/// C2: also where an agent, not an evaluator, has tokens that no event reports.
#[tokio::test]
async fn bills_of_the_inner_agent_are_reported_by_the_loop() {
    let inner = agent_fn("w", |session, out| {
        Box::pin(async move {
            out.record(session, Draft::message(ChatMessage::assistant("x")).usage(tokens(1, 1))).await;
            out.cx().bill(tokens(5, 5));
            Ok(StopReason::Completed)
        })
    });
    let agent = LoopAgent::new("loop", inner, cap(2)).evaluator(agent_loop::evaluate_fn("e", |cx| {
        assert_eq!(cx.last.usage, tokens(6, 6));
        LoopEvaluation::again()
    }));
    let mut session = asked("go");
    let response = go(&agent, &mut session).await;
    assert_eq!(response.usage, tokens(12, 12));
    assert_eq!(outcome(&session).iterations.iter().map(|record| record.usage).collect::<Vec<_>>(), [tokens(6, 6); 2]);
}

/// C2: and when it fails, before its error is returned.
#[tokio::test]
async fn the_bill_of_an_agent_that_fails_is_in_the_events() {
    let inner = agent_fn("w", |_, out| {
        Box::pin(async move {
            out.cx().bill(tokens(5, 5));
            Err(boom())
        })
    });
    let mut session = asked("go");
    let (events, error) = events_until_error(&LoopAgent::new("loop", inner, cap(2)), &mut session).await;
    assert_eq!(error.to_string(), "boom");
    assert_eq!(events.iter().filter_map(|event| event.usage).sum::<agent_core::Usage>(), tokens(5, 5));
    assert_eq!((outcome(&session).stop, outcome(&session).iterations), (None, vec![]));
}

/// C2
#[tokio::test]
async fn a_record_counts_what_its_pass_used_before_an_approval() {
    let client = ScriptedClient::new()
        .reply(tool_turn(&[("c", "pay")]), tokens(10, 1))
        .reply(ChatMessage::assistant("paid"), tokens(20, 2));
    let agent = LoopAgent::new("loop", chat("a", &client).tool(gated("pay").0), cap(3)).evaluator(
        agent_loop::evaluate_fn("e", |cx| {
            assert_eq!(cx.last.usage, tokens(30, 3), "the whole pass");
            LoopEvaluation::Satisfied
        }),
    );
    let mut session = asked("buy");
    assert_eq!(go(&agent, &mut session).await.usage, tokens(10, 1));
    session.push(ChatMessage::approve("c"));
    assert_eq!(go(&agent, &mut session).await.usage, tokens(20, 2));
    assert_eq!(outcome(&session).iterations[0].usage, tokens(30, 3));
}

/// C2: interrupted twice, the second time while a judge that has billed is asked.
#[tokio::test(start_paused = true)]
async fn partial_usage_adds_up_over_several_interruptions() {
    let (agent, _) = spends("w");
    let asked_before = crate::support::Count::default();
    let count = asked_before.clone();
    let agent = LoopAgent::new("loop", agent, cap(3)).evaluator(agent_loop::evaluate_async_fn("slow", move |cx| {
        cx.run.bill(tokens(2, 1));
        let patient = count.up() > 2;
        Box::pin(async move {
            if patient {
                return Ok(LoopEvaluation::Satisfied);
            }
            cx.run.cancel().cancel();
            std::future::pending().await
        })
    }));
    let mut session = asked("go");
    for _ in 0..2 {
        let response = go(&agent, &mut session).await;
        assert_eq!((response.stop, response.usage), (StopReason::Cancelled, tokens(12, 2)));
        assert_eq!(outcome(&session).iterations, []);
    }
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(outcome(&session).iterations[0].usage, tokens(36, 6));
}

/// C3
#[tokio::test]
async fn the_outcome_is_in_the_state_and_survives_serialization() {
    let agent = LoopAgent::new("draft", spends("w").0, cap(2)).evaluator(until(9));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    let stored: Session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
    assert_eq!(stored, session);
    let outcome = LoopOutcome::of(&stored, "draft").unwrap();
    let digests: Vec<u64> = outcome.iterations.iter().map(|record| record.digest).collect();
    let record = |feedback: &str, digest| IterationRecord {
        usage: tokens(10, 1),
        millis: 0,
        by: Some("until".into()),
        feedback: Some(feedback.into()),
        digest,
    };
    let without_time = |record: &IterationRecord| IterationRecord { millis: 0, ..record.clone() };
    let iterations: Vec<_> = outcome.iterations.iter().map(without_time).collect();
    assert_eq!(iterations, [record("f1", digests[0]), record("f2", digests[1])]);
    assert_ne!(digests[0], digests[1]);
    assert_eq!(
        (outcome.stop, outcome.by.as_deref(), outcome.why.as_deref(), outcome.passed()),
        (Some(StopReason::IterationLimit), Some("until"), Some("f2"), false)
    );
    assert_eq!(LoopOutcome::of(&stored, "other"), None);
    assert!(stored.state()["loop:draft"].is_object() && stored.state()["loop:draft:iterations"].is_array());
    let outcome_again: LoopOutcome = serde_json::from_value(serde_json::to_value(&outcome).unwrap()).unwrap();
    assert_eq!(outcome_again, outcome);
}

/// C3: who reads the state between two events sees where the loop is.
#[tokio::test]
async fn the_outcome_grows_with_the_events() {
    let agent = LoopAgent::new("loop", says("w").0, cap(5)).evaluator(until(3));
    let mut session = asked("go");
    let mut folded = session.clone();
    let mut seen = Vec::new();
    for event in go(&agent, &mut session).await.events {
        folded.apply(&event);
        let LoopOutcome { stop, iterations, .. } = outcome(&folded);
        seen.push((stop, iterations.len()));
    }
    let done = Some(StopReason::Completed);
    assert_eq!(seen, [(None, 0), (None, 0), (None, 1), (None, 1), (None, 2), (None, 2), (done, 3)]);
}

/// C3
#[tokio::test(start_paused = true)]
async fn a_step_is_as_small_at_the_end_as_at_the_beginning() {
    let (agent, _) = acts("w", |_| {
        (vec![Draft::message(ChatMessage::assistant("x")).usage(tokens(10, 1))], Ok(StopReason::Completed))
    });
    let agent = LoopAgent::new("loop", agent, cap(201)).evaluator(scripted("e", &[LoopEvaluation::feedback("f")]));
    let response = go(&agent, &mut asked("go")).await;
    let steps: Vec<usize> = response
        .events
        .iter()
        .filter(|event| IterationRecord::of(event).is_some())
        .map(|event| serde_json::to_string(event).unwrap().len())
        .collect();
    assert_eq!((steps.len(), steps[1]), (201, steps[199]), "iteration 2, iteration 200");
}

/// C3
#[tokio::test]
async fn finished_iterations_can_be_read_from_a_stream() {
    let inner = LoopAgent::new("inner", spends("w").0, cap(1)).evaluator(never());
    let agent = LoopAgent::new("loop", inner, cap(2)).evaluator(until(2));
    let response = go(&agent, &mut asked("go")).await;
    let read: Vec<_> = response.events.iter().filter_map(IterationRecord::of).collect();
    let read: Vec<_> =
        read.iter().map(|(name, record)| (&**name, record.by.as_deref(), record.feedback.as_deref())).collect();
    assert_eq!(
        read,
        [
            ("inner", Some("never"), None),
            ("loop", Some("until"), Some("f1")),
            ("inner", Some("never"), None),
            ("loop", None, None),
        ]
    );
    let others = [Draft::state("loop:x:iterations", 1), Draft::default().append("mine:iterations", 1)];
    let (agent, _) = acts("w", move |_| (others.to_vec(), Ok(StopReason::Completed)));
    let foreign = go(&agent, &mut asked("go")).await;
    assert_eq!(foreign.events.iter().filter_map(IterationRecord::of).count(), 0);
}

/// C3: what an iteration took, in milliseconds of tokio's clock.
#[tokio::test(start_paused = true)]
async fn a_record_tells_how_long_its_iteration_took() {
    let inner = agent_fn("w", |session, out| {
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
            out.record(session, Draft::message(ChatMessage::assistant("x"))).await;
            Ok(StopReason::Completed)
        })
    });
    let agent = LoopAgent::new("loop", inner, cap(2)).evaluator(agent_loop::evaluate_async_fn("slow", |_| {
        Box::pin(async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            Ok(LoopEvaluation::again())
        })
    }));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    assert_eq!(outcome(&session).iterations.iter().map(|record| record.millis).collect::<Vec<_>>(), [2000, 2000]);
}

/// C4
#[tokio::test]
async fn a_new_request_clears_the_old_outcome_before_anything_runs() {
    let (inner, _) = acts("w", |run| match run {
        1 | 2 => (vec![Draft::message(ChatMessage::assistant("x"))], Ok(StopReason::Completed)),
        _ => (vec![], Err(boom())),
    });
    let agent = LoopAgent::new("loop", inner, cap(5)).evaluator(until(2));
    let mut session = asked("one");
    go(&agent, &mut session).await;
    assert!(outcome(&session).passed());
    session.push("two");
    assert_eq!(try_go(&agent, &mut session).await.unwrap_err().to_string(), "boom");
    assert_eq!(outcome(&session), LoopOutcome::default());
    assert!(!session.state().contains_key("loop:loop:iterations"));
}

/// C4
#[tokio::test]
async fn a_new_request_begins_at_one_with_the_whole_cap() {
    for options in [cap(2), fresh(2)] {
        let (inner, runs) = says("w");
        let agent = LoopAgent::new("loop", inner, options).evaluator(until(9));
        let mut session = asked("one");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        session.push("two");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!((runs.get(), outcome(&session).iterations.len()), (4, 2));
        let last = said(&session).pop().unwrap();
        assert_eq!(last, "w: 4");
        assert_eq!(said(&session).iter().filter(|text| *text == "user: two").count(), 1);
    }
}

/// C4: and so does a loop that has ended and is run again without a word.
#[tokio::test]
async fn a_loop_that_has_ended_begins_anew_when_it_is_run_again() {
    let (inner, runs) = says("w");
    let agent = LoopAgent::new("loop", inner, cap(5)).evaluator(until(2));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((runs.get(), outcome(&session).iterations.len()), (4, 2));
}

/// C5
#[tokio::test(start_paused = true)]
async fn the_stream_and_the_fold_are_equal_event_for_event() {
    let make = || LoopAgent::new("loop", spends("w").0, cap(5)).evaluator(until(3));
    let (mut one, mut two) = (asked("go"), asked("go"));
    let streamed = go(&make(), &mut one).await;
    let mut folded = make().complete(&mut two, &RunContext::default()).await.unwrap();
    for (event, like) in folded.events.iter_mut().zip(&streamed.events) {
        (event.id, event.run) = (like.id, like.run);
    }
    assert_eq!((folded, two), (streamed, one));
}

/// C6
#[tokio::test]
async fn events_carry_the_path_of_their_iterations() {
    let inner = LoopAgent::new("inner", says("w").0, cap(2)).evaluator(never());
    let outer = LoopAgent::new("outer", inner, cap(2)).evaluator(never());
    let response = go(&outer, &mut asked("go")).await;
    let shown: Vec<String> = response
        .events
        .iter()
        .map(|event| {
            let steps = event.path.iter().map(|LoopStep { name, iteration }| format!("{name}#{iteration}"));
            format!("{}: {}", event.author, steps.collect::<Vec<_>>().join(" / "))
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    outer: 
    inner: outer#1
    w: outer#1 / inner#1
    inner: outer#1
    w: outer#1 / inner#2
    inner: outer#1
    outer: 
    inner: outer#2
    w: outer#2 / inner#1
    inner: outer#2
    w: outer#2 / inner#2
    inner: outer#2
    outer:
    ");
}

#[tokio::test]
async fn an_escalation_is_in_the_outcome() {
    let agent = LoopAgent::new("loop", escalates("checker", &[1]).0, cap(3)).evaluator(never());
    let mut session = asked("go");
    go(&agent, &mut session).await;
    let outcome = outcome(&session);
    assert!(outcome.passed());
    assert_eq!((outcome.by.as_deref(), outcome.why, outcome.iterations.len()), (Some("checker"), None, 1));
}

/// C3: an outcome is told on one line.
#[test]
fn an_outcome_is_told_on_one_line() {
    let used = |input_tokens| IterationRecord {
        usage: agent_core::Usage { input_tokens, ..Default::default() },
        ..Default::default()
    };
    let outcome = |stop, by: Option<&str>, why: Option<&str>, iterations| LoopOutcome {
        stop,
        by: by.map(str::to_owned),
        why: why.map(str::to_owned),
        iterations,
    };
    let told = [
        outcome(Some(StopReason::Completed), None, None, vec![used(200), used(26)]),
        outcome(Some(StopReason::IterationLimit), Some("tests"), Some("2 fail"), vec![used(1)]),
        outcome(Some(StopReason::Completed), Some("checker"), None, vec![used(1)]),
        outcome(None, None, None, vec![]),
    ];
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    completed after 2 iterations, 226 tokens
    iteration limit reached after 1 iteration, 1 token; tests: 2 fail
    completed after 1 iteration, 1 token; checker
    not ended after 0 iterations, 0 tokens
    ");
}
