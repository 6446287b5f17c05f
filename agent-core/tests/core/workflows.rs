use std::sync::Arc;

use agent_core::{
    Agent, AgentExt, ChatMessage, Draft, Error, ErrorKind, Event, Limits, ParallelAgent, RunContext, SequentialAgent,
    Session, StopReason, Update, Usage, agent_fn,
    testing::{ScriptedAgent, assert_laws},
};
use futures::{FutureExt, StreamExt};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    Log, agent, asks, call, collect, cut, guarded, limited, noted, replies, session, set, tokens, told, updates_of,
};

const SUSPENDED: [StopReason; 3] = [StopReason::AwaitingApproval, StopReason::Cancelled, StopReason::BudgetExhausted];
const FINISHED: [StopReason; 7] = [
    StopReason::Completed,
    StopReason::Escalated,
    StopReason::Length,
    StopReason::Filtered,
    StopReason::TurnLimit,
    StopReason::IterationLimit,
    StopReason::Halted,
];

fn says(text: &str) -> Draft {
    Draft::message(ChatMessage::assistant(text))
}

/// An agent that says its name and ends so, in each of two runs.
fn ends(name: &str, stop: StopReason) -> ScriptedAgent {
    ScriptedAgent::new(name).turn(says(name), stop).turn(says(name), stop)
}

/// Everything that happened, as text: what was said, which keys changed, and the end.
fn told_of(updates: &[Update]) -> String {
    let words = updates.iter().map(|update| match update {
        Update::Delta(delta) => format!("{delta:?}"),
        Update::Event(event) => {
            let said: Vec<String> = event.messages.iter().map(ChatMessage::text).collect();
            let changed: Vec<String> = event.state.iter().map(|c| serde_json::to_string(c).unwrap()).collect();
            format!("{}: {}{}", event.author, said.join(" "), changed.join(" "))
        }
        Update::Done(stop) => stop.to_string(),
    });
    words.collect::<Vec<_>>().join("\n")
}

async fn run(agent: &dyn Agent, session: &mut Session) -> StopReason {
    match assert_laws(agent, session, &RunContext::default()).await.last() {
        Some(Update::Done(stop)) => *stop,
        other => unreachable!("the laws hold: {other:?}"),
    }
}

#[tokio::test]
async fn a_sequence_runs_its_stages_in_order_and_keeps_its_place_between_them() {
    let stage = |name| ends(name, StopReason::Completed);
    let sequence = SequentialAgent::new("s").then(stage("a")).then(stage("b")).then(stage("c"));
    let mut session = session("go");
    let updates = assert_laws(&sequence, &mut session, &RunContext::default()).await;
    insta::assert_snapshot!(told_of(&updates), @r#"
    a: a
    s: {"set":{"key":"sequence:s","value":{"next":1,"turn":0}}}
    b: b
    s: {"set":{"key":"sequence:s","value":{"next":2,"turn":0}}}
    c: c
    s: {"remove":{"key":"sequence:s"}}
    completed
    "#);
    assert_eq!(session.state().len(), 0);
}

#[tokio::test]
async fn a_sequence_of_nothing_is_done_and_one_of_a_single_stage_records_nothing_itself() {
    assert_eq!(
        told_of(&updates_of(&SequentialAgent::new("s"), &mut session("go"), &RunContext::default()).await),
        "completed"
    );
    for stop in FINISHED.into_iter().chain(SUSPENDED) {
        let sequence = SequentialAgent::new("s").then(ends("a", stop));
        let updates = assert_laws(&sequence, &mut session("go"), &RunContext::default()).await;
        assert_eq!(told_of(&updates), format!("a: a\n{stop}"));
    }
}

#[tokio::test]
async fn the_first_end_that_is_not_completed_is_the_sequences() {
    for stop in FINISHED.into_iter().chain(SUSPENDED).filter(|stop| *stop != StopReason::Completed) {
        let (a, b, c) = (ends("a", StopReason::Completed), ends("b", stop), ends("c", StopReason::Completed));
        let sequence = SequentialAgent::new("s").then(a.clone()).then(b.clone()).then(c.clone());
        let mut session = session("go");
        assert_eq!(run(&sequence, &mut session).await, stop);
        assert_eq!((a.runs(), b.runs(), c.runs()), (1, 1, 0), "{stop}");
        let kept = session.state().get("sequence:s").is_some();
        assert_eq!(kept, stop.is_suspended(), "{stop}");
    }
}

#[tokio::test]
async fn a_final_stage_runs_however_the_others_ended_unless_they_are_suspended() {
    for stop in FINISHED.into_iter().chain(SUSPENDED) {
        for last in FINISHED {
            let (a, b, z) = (ends("a", stop), ends("b", StopReason::Completed), ends("z", last));
            let sequence = SequentialAgent::new("s").then(a).then(b).finally(z.clone());
            let mut session = session("go");
            let end = run(&sequence, &mut session).await;
            let expected = if stop.is_suspended() || last == StopReason::Completed { stop } else { last };
            assert_eq!((end, z.runs()), (expected, u32::from(!stop.is_suspended())), "{stop} {last}");
            assert_eq!(session.state().len(), 0, "{stop} {last}: {:?}", session.state());
        }
    }
}

#[tokio::test]
async fn a_final_stage_alone_is_a_sequence_too() {
    for last in FINISHED {
        let updates =
            updates_of(&SequentialAgent::new("s").finally(ends("z", last)), &mut session("go"), &RunContext::default())
                .await;
        assert_eq!(told_of(&updates), format!("z: z\n{last}"));
    }
}

#[tokio::test]
async fn a_final_stage_that_is_suspended_is_resumed_and_the_others_end_stays() {
    for suspended in SUSPENDED {
        let a = ends("a", StopReason::Halted);
        let z = ScriptedAgent::new("z").turn(says("z1"), suspended).turn(says("z2"), StopReason::Completed);
        let sequence =
            SequentialAgent::new("s").then(a.clone()).then(ends("b", StopReason::Completed)).finally(z.clone());
        let mut session = session("go");
        assert_eq!(run(&sequence, &mut session).await, suspended);
        assert_eq!(session.state()["sequence:s"], json!({"turn": 0, "next": 2, "end": "halted"}));
        assert_eq!(run(&sequence, &mut session).await, StopReason::Halted);
        assert_eq!((a.runs(), z.runs(), session.state().len()), (1, 2, 0));
    }
}

#[tokio::test]
async fn a_sequence_goes_on_with_the_stage_that_was_interrupted() {
    for suspended in SUSPENDED {
        let (a, c) = (ends("a", StopReason::Completed), ends("c", StopReason::Completed));
        let b = ScriptedAgent::new("b").turn(says("b1"), suspended).turn(says("b2"), StopReason::Completed);
        let sequence = SequentialAgent::new("s").then(a.clone()).then(b).then(c);
        let mut session = session("go");
        assert_eq!(run(&sequence, &mut session).await, suspended);
        assert_eq!(run(&sequence, &mut session).await, StopReason::Completed);
        let said: Vec<String> = session.messages().iter().map(ChatMessage::text).collect();
        assert_eq!((said.join(" "), session.state().len()), ("go a b1 b2 c".to_owned(), 0));
    }
}

#[tokio::test]
async fn in_another_turn_a_sequence_begins_anew_without_the_stale_record() {
    let a = ends("a", StopReason::Completed);
    let b = ScriptedAgent::new("b").turn(says("b1"), StopReason::BudgetExhausted).says("b2");
    let sequence = SequentialAgent::new("s").then(a.clone()).then(b);
    let mut session = session("go");
    run(&sequence, &mut session).await;
    session.push("something else");
    let updates = assert_laws(&sequence, &mut session, &RunContext::default()).await;
    insta::assert_snapshot!(told_of(&updates), @r#"
    s: {"remove":{"key":"sequence:s"}}
    a: a
    s: {"set":{"key":"sequence:s","value":{"next":1,"turn":1}}}
    b: b2
    s: {"remove":{"key":"sequence:s"}}
    completed
    "#);
    assert_eq!((a.runs(), session.state().len()), (2, 0));
}

#[tokio::test]
async fn a_record_that_does_not_fit_is_stale() {
    for record in [json!("text"), json!({"turn": 0}), json!({"turn": 0, "next": 9}), json!({"turn": 7, "next": 1})] {
        let a = ends("a", StopReason::Completed);
        let sequence = SequentialAgent::new("s").then(a.clone());
        let mut session = session("go").with_state("sequence:s", record.clone());
        assert_eq!(run(&sequence, &mut session).await, StopReason::Completed);
        assert_eq!((a.runs(), session.state().len()), (1, 0), "{record}");
    }
}

#[tokio::test]
async fn a_cancelled_sequence_begins_no_stage() {
    let cx = RunContext::default();
    cx.cancel().cancel();
    let a = ends("a", StopReason::Completed);
    let sequence = SequentialAgent::new("s").then(a.clone()).finally(a.clone());
    let updates = updates_of(&sequence, &mut session("go"), &cx).await;
    assert_eq!((updates, a.runs()), (vec![Update::Done(StopReason::Cancelled)], 0));

    let cx = RunContext::default();
    let b = ends("b", StopReason::Completed);
    let sequence = SequentialAgent::new("s").then(ends("a", StopReason::Completed)).then(b.clone());
    let mut session = session("go");
    let mut pulled = sequence.run(&mut session, &cx);
    pulled.next().await.unwrap().unwrap();
    cx.cancel().cancel();
    let rest = collect(pulled).await;
    assert_eq!((rest.last().unwrap().as_ref().unwrap(), b.runs()), (&Update::Done(StopReason::Cancelled), 0));
    assert_eq!(run(&sequence, &mut session).await, StopReason::Completed);
    assert_eq!(b.runs(), 1);
}

#[tokio::test]
async fn an_error_ends_a_sequence_and_the_next_run_tries_that_stage_again() {
    let log = Log::default();
    let noted = log.clone();
    let fails_once = agent_fn("b", move |_, _| {
        noted.note("b");
        let fails = noted.all().len() == 1;
        async move { if fails { Err(Error::new(ErrorKind::Provider, "overloaded")) } else { Ok(StopReason::Completed) } }.boxed()
    });
    let (a, z) = (ends("a", StopReason::Completed), ends("z", StopReason::Completed));
    let sequence = SequentialAgent::new("s").then(a.clone()).then(fails_once).finally(z.clone());
    let mut session = session("go");
    let error = sequence.complete(&mut session, &RunContext::default()).await.unwrap_err();
    assert_eq!((error.kind(), z.runs()), (ErrorKind::Provider, 0));
    assert_eq!(run(&sequence, &mut session).await, StopReason::Completed);
    assert_eq!((a.runs(), log.all().len(), z.runs()), (1, 2, 1));
}

#[tokio::test]
async fn a_sequence_that_is_cut_anywhere_ends_as_if_it_had_not_been() {
    for at in 0..7 {
        let speaker = |name: &'static str| {
            agent_fn(name, move |session, out| {
                async move {
                    if !session.messages().iter().any(|message| message.text() == name) {
                        out.record(session, says(name)).await;
                    }
                    Ok(StopReason::Completed)
                }
                .boxed()
            })
        };
        let sequence = SequentialAgent::new("s").then(speaker("a")).then(speaker("b")).finally(speaker("z"));
        let mut session = session("go");
        cut(sequence.run(&mut session, &RunContext::default()), at).await;
        assert_eq!(run(&sequence, &mut session).await, StopReason::Completed);
        let said: Vec<String> = session.messages().iter().map(ChatMessage::text).collect();
        assert_eq!((said.join(" "), session.state().len()), ("go a b z".to_owned(), 0), "cut after {at}");
    }
}

#[tokio::test]
async fn workflows_refuse_the_callers_name() {
    let agents: [Box<dyn Agent>; 2] = [Box::new(SequentialAgent::new("user")), Box::new(ParallelAgent::new("user"))];
    for agent in agents {
        let mut session = session("go");
        let error = agent.complete(&mut session, &RunContext::default()).await.unwrap_err();
        assert_eq!((error.kind(), session.messages().len()), (ErrorKind::Invalid, 1));
    }
}

#[tokio::test]
async fn branches_run_on_forks_and_their_events_are_merged_as_they_come() {
    let gate = Arc::new(Notify::new());
    let waiting = gate.clone();
    let slow = agent_fn("slow", move |session, out| {
        let gate = waiting.clone();
        async move {
            gate.notified().await;
            out.record(session, says(&format!("slow sees {}", session.messages().len()))).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let quick = agent_fn("quick", move |session, out| {
        let gate = gate.clone();
        async move {
            out.record(session, says("quick 1").set("k", "quick")).await;
            out.record(session, says(&format!("quick sees {}", session.messages().len()))).await;
            gate.notify_one();
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let parallel = ParallelAgent::new("p").branch(slow).branch(quick);
    let mut session = session("go");
    let updates = assert_laws(&parallel, &mut session, &RunContext::default()).await;
    insta::assert_snapshot!(told_of(&updates), @r#"
    quick: quick 1{"set":{"key":"k","value":"quick"}}
    quick: quick sees 2
    p: {"set":{"key":"parallel:p","value":{"ends":{"1":"completed"},"turn":0}}}
    slow: slow sees 1
    p: {"remove":{"key":"parallel:p"}}
    completed
    "#);
    assert_eq!(json!(session.state()), json!({"k": "quick"}));
}

#[tokio::test]
async fn branches_know_that_they_are_branches() {
    let is_branch = |name| {
        agent_fn(name, |session, out| {
            async move {
                let is_branch = out.cx().is_branch();
                out.record(session, says(&is_branch.to_string())).await;
                Ok(StopReason::Completed)
            }
            .boxed()
        })
    };
    let cx = RunContext::default();
    let response = ParallelAgent::new("p").branch(is_branch("a")).complete(&mut session("go"), &cx).await.unwrap();
    assert_eq!(response.text(), "true");
    assert!(!cx.is_branch());
}

#[tokio::test]
async fn a_branchs_rewind_stays_in_its_fork() {
    let rewinds = agent_fn("a", |session, out| {
        async move {
            out.record(session, says("fresh").rewind(0)).await;
            assert_eq!(session.messages().len(), 1);
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let mut session = session("go");
    let updates = assert_laws(&ParallelAgent::new("p").branch(rewinds), &mut session, &RunContext::default()).await;
    assert_eq!(session.messages().len(), 2);
    assert!(updates.iter().all(|update| !matches!(update, Update::Event(event) if event.rewind.is_some())));
}

#[tokio::test]
async fn the_end_of_the_whole_is_the_weightiest_of_its_branches() {
    let weights = |stop| match stop {
        StopReason::Cancelled => 0,
        StopReason::BudgetExhausted => 1,
        StopReason::AwaitingApproval => 2,
        StopReason::Escalated => 3,
        StopReason::Completed => 5,
        _ => 4,
    };
    for first in FINISHED.into_iter().chain(SUSPENDED) {
        for second in FINISHED.into_iter().chain(SUSPENDED) {
            let (a, b) = (ends("a", first), ends("b", second));
            let parallel = ParallelAgent::new("p").branch(a.clone()).branch(b.clone());
            let mut session = session("go");
            let stop = run(&parallel, &mut session).await;
            let expected = if weights(second) < weights(first) { second } else { first };
            assert_eq!((stop, a.runs(), b.runs()), (expected, 1, 1), "{first}, {second}: no short circuit");
            let finished = [first, second].iter().filter(|stop| !stop.is_suspended()).count();
            let kept = session.state().get("parallel:p").map_or(0, |record| record["ends"].as_object().unwrap().len());
            assert_eq!(kept, if stop.is_suspended() { finished } else { 0 }, "{first}, {second}");
        }
    }
    assert_eq!(run(&ParallelAgent::new("p"), &mut session("go")).await, StopReason::Completed);
}

#[tokio::test]
async fn only_the_branches_that_have_not_finished_are_resumed() {
    for (finished, end) in
        [(StopReason::Completed, StopReason::Completed), (StopReason::Escalated, StopReason::Escalated)]
    {
        let a = ends("a", finished);
        let b = ScriptedAgent::new("b").turn(says("b1"), StopReason::Cancelled).says("b2");
        let c = ScriptedAgent::new("c")
            .turn(says("c1"), StopReason::AwaitingApproval)
            .turn(says("c2"), StopReason::BudgetExhausted)
            .says("c3");
        let parallel = ParallelAgent::new("p").branch(a.clone()).branch(b.clone()).branch(c.clone());
        let mut session = session("go");
        assert_eq!(run(&parallel, &mut session).await, StopReason::Cancelled);
        assert_eq!(run(&parallel, &mut session).await, StopReason::BudgetExhausted);
        assert_eq!(run(&parallel, &mut session).await, end);
        assert_eq!((a.runs(), b.runs(), c.runs(), session.state().len()), (1, 2, 3, 0));
    }
}

#[tokio::test]
async fn in_another_turn_all_branches_run_again() {
    let a = ends("a", StopReason::Completed);
    let b = ScriptedAgent::new("b").turn(says("b1"), StopReason::Cancelled).says("b2");
    let parallel = ParallelAgent::new("p").branch(a.clone()).branch(b);
    let mut session = session("go");
    run(&parallel, &mut session).await;
    session.push("something else");
    let updates = assert_laws(&parallel, &mut session, &RunContext::default()).await;
    insta::assert_snapshot!(told_of(&updates), @r#"
    p: {"remove":{"key":"parallel:p"}}
    a: a
    b: b2
    p: {"set":{"key":"parallel:p","value":{"ends":{"0":"completed"},"turn":1}}}
    p: {"remove":{"key":"parallel:p"}}
    completed
    "#);
    assert_eq!((a.runs(), session.state().len()), (2, 0));
}

#[tokio::test]
async fn a_branch_is_finished_once_its_end_is_recorded() {
    let a = ends("a", StopReason::Completed);
    let parallel = |b: ScriptedAgent| ParallelAgent::new("p").branch(a.clone()).branch(b);
    let mut session = session("go");
    // Cut right after the record of the first end.
    let first = parallel(ends("b", StopReason::Completed));
    let cx = RunContext::default();
    let mut pulled = first.run(&mut session, &cx);
    while let Some(update) = pulled.next().await {
        if matches!(update.unwrap(), Update::Event(event) if event.author.as_ref() == "p") {
            break;
        }
    }
    drop(pulled);
    let ended: Vec<String> = session.state()["parallel:p"]["ends"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(ended, ["0"]);
    assert_eq!(run(&parallel(ends("b", StopReason::Completed)), &mut session).await, StopReason::Completed);
    assert_eq!((a.runs(), session.state().len()), (1, 0));
}

#[tokio::test]
async fn an_error_ends_all_branches() {
    let dropped = Arc::new(());
    let held = dropped.clone();
    let endless = agent_fn("endless", move |_, _| {
        let held = held.clone();
        async move {
            let never = std::future::pending().await;
            drop(held);
            never
        }
        .boxed()
    });
    let fails = agent_fn("fails", |_, _| async { Err(Error::new(ErrorKind::Provider, "overloaded")) }.boxed());
    let parallel = ParallelAgent::new("p").branch(endless).branch(fails);
    let error = parallel.complete(&mut session("go"), &RunContext::default()).await.unwrap_err();
    assert_eq!((error.kind(), Arc::strong_count(&dropped)), (ErrorKind::Provider, 2));
}

#[tokio::test]
async fn branches_of_one_name_are_refused_before_any_runs() {
    let a = ends("a", StopReason::Completed);
    let parallel = ParallelAgent::new("p").branch(a.clone()).branch(ends("b", StopReason::Completed)).branch(a.clone());
    let error = parallel.complete(&mut session("go"), &RunContext::default()).await.unwrap_err();
    insta::assert_snapshot!(told(&error), @"Invalid: parallel agent `p` has two branches named `a`; rename one");
    assert_eq!(a.runs(), 0);
}

#[tokio::test]
async fn a_cancelled_parallel_ends_cancelled_and_can_be_taken_up() {
    let log = Log::default();
    let branch = |name| {
        let client = replies([asks([call("c", "del")]), ChatMessage::assistant("ok")]);
        agent(name, &client).tool(guarded("del", &log))
    };
    let parallel = ParallelAgent::new("p").branch(branch("a")).branch(branch("b"));
    let cx = RunContext::default();
    cx.cancel().cancel();
    let mut session = session("go");
    assert_eq!(parallel.complete(&mut session, &cx).await.unwrap().stop, StopReason::Cancelled);
    assert_eq!(run(&parallel, &mut session).await, StopReason::AwaitingApproval);
    session.push(ChatMessage::approve("c"));
    session.push(ChatMessage::approve("c"));
    assert_eq!(run(&parallel, &mut session).await, StopReason::Completed);
    assert_eq!(log.all(), ["del", "del"]);
}

#[tokio::test]
async fn the_ceiling_of_calls_is_exact_over_all_branches_and_stages() {
    let log = Log::default();
    let looper = |name: &str| {
        let client = replies((0..9).map(|_| asks([call("c", "look")])));
        agent(name, &client).tool(noted("look", &log))
    };
    let both = || ParallelAgent::new("p").branch(looper("a")).branch(looper("b"));
    let nested = ParallelAgent::new("q").branch(both()).branch(SequentialAgent::new("s").then(looper("c")));
    let cx = limited(Limits { model_calls: Some(10), ..Limits::default() });
    let mut session = session("go");
    assert_eq!(nested.complete(&mut session, &cx).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!((cx.spent().model_calls, log.all().len()), (10, 10));
    let cx = limited(Limits { tool_calls: Some(4), ..Limits::default() });
    assert_eq!(nested.complete(&mut session, &cx).await.unwrap().stop, StopReason::BudgetExhausted);
    assert_eq!((cx.spent().tool_calls, log.all().len()), (4, 14));
}

#[tokio::test]
async fn usage_of_all_stages_and_branches_adds_up() {
    let uses = |name: &str, n| ScriptedAgent::new(name).turn(says(name).usage(tokens(n, n)), StopReason::Completed);
    let both = ParallelAgent::new("p").branch(uses("b", 2)).branch(uses("c", 4));
    let sequence = SequentialAgent::new("s").then(uses("a", 1)).then(both).finally(uses("z", 8));
    let cx = RunContext::default();
    let response = sequence.complete(&mut session("go"), &cx).await.unwrap();
    assert_eq!(response.usage, tokens(15, 15));
    let runs: Vec<_> = response.events.iter().map(|event| event.run).collect();
    assert!(runs.iter().all(|run| *run == cx.id()));
    let sum: Usage = response.events.iter().filter_map(|event| event.usage).sum();
    assert_eq!(sum, response.usage);
}

#[tokio::test]
async fn stages_share_the_session_and_its_state() {
    let writer = ScriptedAgent::new("writer").turn(says("written").set("draft", "text"), StopReason::Completed);
    let reader = agent_fn("reader", |session, out| {
        async move {
            let draft: Option<String> = session.get("draft");
            out.record(session, says(&draft.unwrap_or_default())).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let response = SequentialAgent::new("s").then(writer).then(reader).ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!(response.text(), "text");
    let by: Vec<&str> = response.events.iter().map(|event: &Event| &*event.author).collect();
    assert_eq!(by, ["writer", "s", "reader", "s"]);
    assert_eq!(response.events[0].state, [set("draft", "text")]);
}
