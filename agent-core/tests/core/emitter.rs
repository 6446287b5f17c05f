use std::{sync::Arc, time::Duration};

use agent_core::{
    Agent, AgentExt, AgentResponse, ChatMessage, Delta, Draft, Emitter, Error, ErrorKind, Event, LoopStep, Result,
    RunContext, Session, StopReason, Update, Updates, agent_fn,
    testing::{ScriptedAgent, assert_laws},
    updates,
};
use futures::{FutureExt, StreamExt, stream, stream::FuturesUnordered};
use tokio::{sync::Barrier, time::timeout};

use crate::support::{Log, collect, session, tokens};

fn piece(text: impl Into<String>) -> Delta {
    Delta::Text(text.into())
}

/// The stream as words; panics where it fails.
async fn words(run: Updates<'_>) -> Vec<String> {
    run.map(|update| word(&update.unwrap())).collect().await
}

fn word(update: &Update) -> String {
    match update {
        Update::Delta(Delta::Text(text)) => text.clone(),
        Update::Delta(other) => format!("{other:?}"),
        Update::Event(event) => event.messages.iter().map(ChatMessage::text).collect(),
        Update::Done(stop) => stop.to_string(),
    }
}

/// A run whose body is this.
fn run<F>(body: impl FnOnce(Emitter) -> F) -> Updates<'static>
where
    F: Future<Output = Result<StopReason>> + Send + 'static,
{
    updates("a", &RunContext::default(), body)
}

#[tokio::test]
async fn a_body_stands_still_until_the_next_update_is_asked_for() {
    let log = Log::default();
    let noted = log.clone();
    let mut run = run(|out| async move {
        noted.note("begun");
        out.delta(piece("1")).await;
        noted.note("after 1");
        out.record(&mut Session::new(), Draft::message("2")).await;
        noted.note("after 2");
        Ok(StopReason::Completed)
    });
    tokio::task::yield_now().await;
    assert_eq!(log.all().len(), 0);
    for (seen, update) in [(1, "1"), (2, "2"), (3, "completed")] {
        assert_eq!(run.next().now_or_never().map(|update| word(&update.unwrap().unwrap())).as_deref(), Some(update));
        tokio::task::yield_now().await;
        assert_eq!(log.all().len(), seen);
    }
    assert!(run.next().await.is_none());
    assert_eq!(log.all(), ["begun", "after 1", "after 2"]);
}

#[tokio::test]
async fn a_step_is_applied_and_yielded_at_once() {
    let agent = agent_fn("a", |session, out| {
        async move {
            out.record(session, Draft::message("one")).await;
            out.record(session, Draft::message("two")).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let mut said = vec![];
    for pulled in 0..3 {
        let (mut session, cx) = (session("hello"), RunContext::default());
        let mut run = agent.run(&mut session, &cx);
        for _ in 0..pulled {
            run.next().await.unwrap().unwrap();
        }
        drop(run);
        said.push(session.messages().len());
    }
    assert_eq!(said, [1, 2, 3]);
}

#[tokio::test]
async fn several_sends_at_once_come_one_by_one_and_each_waits_for_its_own() {
    let log = Log::default();
    let noted = log.clone();
    let mut run = run(|out| async move {
        let send = async |text: &str| {
            out.delta(piece(text)).await;
            noted.note(text);
        };
        futures::join!(send("1"), send("2"), send("3"));
        Ok(StopReason::Completed)
    });
    let mut came = vec![];
    while let Some(update) = run.next().await {
        came.push(word(&update.unwrap()));
        assert_eq!(log.all(), came[..came.len() - 1], "a send returned before the next update was asked for");
        came.retain(|word| word != "completed");
        if came.len() == 3 && log.all().len() == 3 {
            break;
        }
    }
    assert_eq!(came, ["1", "2", "3"]);
}

#[tokio::test]
async fn sends_from_unordered_futures_all_come() {
    let run = run(|out| async move {
        let mut sends: FuturesUnordered<_> = (0..100)
            .map(|i| {
                let out = out.clone();
                async move {
                    for j in 0..3 {
                        out.delta(piece(format!("{i}.{j}"))).await;
                        tokio::task::yield_now().await;
                    }
                }
            })
            .collect();
        while sends.next().await.is_some() {}
        Ok(StopReason::Completed)
    });
    let mut came = timeout(Duration::from_mins(1), words(run)).await.expect("the run hangs");
    assert_eq!(came.pop().as_deref(), Some("completed"));
    came.sort_unstable();
    let mut expected: Vec<_> = (0..100).flat_map(|i| (0..3).map(move |j| format!("{i}.{j}"))).collect();
    expected.sort_unstable();
    assert_eq!(came, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sends_from_other_tasks_neither_hang_nor_get_lost() {
    let run = run(|out| async move {
        let tasks: Vec<_> = (0..4)
            .map(|task| {
                let out = out.clone();
                tokio::spawn(async move {
                    for i in 0..200 {
                        out.delta(piece(format!("{task}.{i}"))).await;
                    }
                })
            })
            .collect();
        for i in 0..200 {
            out.delta(piece(format!("body.{i}"))).await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        Ok(StopReason::Completed)
    });
    let came = timeout(Duration::from_mins(1), words(run)).await.expect("the run hangs");
    assert_eq!((came.len(), came.last().map(String::as_str)), (5 * 200 + 1, Some("completed")));
    for sender in ["0", "1", "2", "3", "body"] {
        let own = came.iter().filter(|word| word.starts_with(&format!("{sender}.")));
        assert!(own.eq(&(0..200).map(|i| format!("{sender}.{i}")).collect::<Vec<_>>()), "{sender} in order");
    }
}

#[tokio::test]
async fn a_send_elsewhere_waits_until_the_next_update_is_asked_for_however_often_it_is_polled() {
    let (give, take) = tokio::sync::oneshot::channel();
    let mut run = run(|out| async move {
        give.send(out.clone()).ok();
        std::future::pending().await
    });
    assert!(run.next().now_or_never().is_none());
    let out = take.await.unwrap();
    let mut send = Box::pin(out.delta(piece("x")));
    assert_eq!([(&mut send).now_or_never(), (&mut send).now_or_never()], [None, None], "placed");
    assert!(run.next().now_or_never().is_some());
    assert_eq!((&mut send).now_or_never(), None, "taken");
    assert!(run.next().now_or_never().is_none());
    assert_eq!((&mut send).now_or_never(), Some(()), "the next one is asked for");
}

#[tokio::test]
async fn a_send_beside_the_stream_in_the_same_task_is_woken() {
    let (give, take) = tokio::sync::oneshot::channel();
    let mut run = run(|out| async move {
        give.send(out).ok();
        std::future::pending().await
    });
    assert!(run.next().now_or_never().is_none());
    let out = take.await.unwrap();
    let sends = async {
        for text in ["1", "2", "3"] {
            out.delta(piece(text)).await;
        }
    };
    let mut came = vec![];
    let pulls = async {
        while let Some(update) = run.next().await {
            came.push(word(&update.unwrap()));
        }
    };
    let both = async {
        tokio::select! {
            biased;
            () = sends => (),
            () = pulls => unreachable!("the body does not end"),
        }
    };
    timeout(Duration::from_secs(10), both).await.expect("a send hangs");
    assert_eq!(came, ["1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_elsewhere_ends_when_the_stream_is_dropped() {
    for pulled in 0..3 {
        let begun = Arc::new(Barrier::new(4));
        let (sent, mut results) = tokio::sync::mpsc::unbounded_channel();
        let mut run = {
            let begun = begun.clone();
            run(|out| async move {
                for _ in 0..3 {
                    let (out, begun, sent) = (out.clone(), begun.clone(), sent.clone());
                    tokio::spawn(async move {
                        begun.wait().await;
                        out.delta(piece("x")).await;
                        sent.send(()).unwrap();
                    });
                }
                std::future::pending().await
            })
        };
        assert_eq!(run.next().now_or_never().map(|_| ()), None);
        begun.wait().await;
        for _ in 0..pulled {
            run.next().await.unwrap().unwrap();
        }
        drop(run);
        for _ in 0..3 {
            timeout(Duration::from_secs(10), results.recv()).await.expect("a send hangs").unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_after_the_end_returns_and_shows_nothing() {
    let (give, take) = tokio::sync::oneshot::channel();
    let came = words(run(|out| async move {
        give.send(out.clone()).ok();
        Ok(StopReason::Completed)
    }))
    .await;
    assert_eq!(came, ["completed"]);
    let out = take.await.unwrap();
    timeout(Duration::from_secs(10), out.delta(piece("late"))).await.expect("a send hangs");
}

#[tokio::test]
async fn an_update_that_was_placed_comes_though_its_send_was_dropped() {
    let agent = agent_fn("a", |session, out| {
        async move {
            tokio::select! {
                biased;
                () = out.record(session, Draft::message("placed")) => unreachable!("nobody asked for more"),
                () = std::future::ready(()) => (),
            }
            out.record(session, Draft::message("next")).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let mut session = session("hello");
    let came = assert_laws(&agent, &mut session, &RunContext::default()).await;
    assert_eq!(came.iter().map(word).collect::<Vec<_>>(), ["placed", "next", "completed"]);
}

#[tokio::test]
async fn an_update_that_was_not_placed_never_happened() {
    let agent = agent_fn("a", |session, out| {
        async move {
            let other = async {
                tokio::select! {
                    biased;
                    () = out.record(session, Draft::message("not placed")) => unreachable!("the place is taken"),
                    () = std::future::ready(()) => (),
                }
            };
            futures::join!(out.delta(piece("first")), other);
            out.record(session, Draft::message("next")).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let mut session = session("hello");
    let came = assert_laws(&agent, &mut session, &RunContext::default()).await;
    assert_eq!(came.iter().map(word).collect::<Vec<_>>(), ["first", "next", "completed"]);
    assert_eq!(session.messages().len(), 2);
}

#[tokio::test]
async fn an_update_placed_right_before_the_end_comes_before_it() {
    let run = run(|out| async move {
        assert_eq!(out.delta(piece("last")).now_or_never(), None);
        Ok(StopReason::Halted)
    });
    assert_eq!(words(run).await, ["last", "halted by an evaluator"]);
}

#[tokio::test]
async fn nothing_comes_after_an_error() {
    let run = run(|out| async move {
        out.delta(piece("1")).await;
        Err(Error::new(ErrorKind::Store, "broken"))
    });
    let came = collect(run).await;
    assert_eq!(came.len(), 2);
    assert_eq!(came[1].as_ref().unwrap_err().kind(), ErrorKind::Store);
}

#[tokio::test]
async fn a_body_may_move_from_task_to_task() {
    let run = run(|out| async move {
        let (a, b) = (out.clone(), out.clone());
        futures::join!(async { a.delta(piece("1")).await }, async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            b.delta(piece("2")).await;
        });
        Ok(StopReason::Completed)
    });
    let mut run = run;
    let mut came = vec![];
    loop {
        let (update, rest) = tokio::spawn(async move { (run.next().await, run) }).await.unwrap();
        run = rest;
        match update {
            Some(update) => came.push(word(&update.unwrap())),
            None => break,
        }
    }
    assert_eq!(came, ["1", "2", "completed"]);
}

#[tokio::test]
async fn a_draft_becomes_an_event_with_its_stamps() {
    let cx = RunContext::default().enter(LoopStep { name: "loop".into(), iteration: 3 });
    let agent = agent_fn("a", |session, out| {
        async move {
            let draft = Draft::message(ChatMessage::assistant("mine"))
                .say(ChatMessage::user("theirs").by("b"))
                .set("k", 1)
                .append("l", 2)
                .remove("m")
                .usage(tokens(1, 2))
                .usage(tokens(3, 4))
                .rewind(0)
                .escalate();
            out.record(session, draft).await;
            Ok(StopReason::Escalated)
        }
        .boxed()
    });
    let response = agent.complete(&mut session("hello"), &cx).await.unwrap();
    let [event] = &response.events[..] else { panic!("one event") };
    let expected = serde_json::json!({
        "id": event.id, "run": cx.id(), "author": "a", "path": [{"name": "loop", "iteration": 3}], "rewind": 0,
        "messages": [
            {"role": "assistant", "author": "a", "contents": [{"text": "mine"}]},
            {"role": "user", "author": "b", "contents": [{"text": "theirs"}]},
        ],
        "state": [
            {"set": {"key": "k", "value": 1}}, {"append": {"key": "l", "value": 2}}, {"remove": {"key": "m"}},
        ],
        "usage": {"input_tokens": 4, "output_tokens": 6}, "escalate": true,
    });
    assert_eq!(serde_json::to_value(event).unwrap(), expected);
    assert_eq!((event.id.get_version_num(), response.usage, response.stop), (7, tokens(4, 6), StopReason::Escalated));
}

#[tokio::test]
async fn forwarding_shows_all_but_the_end_and_returns_the_fold() {
    let inner =
        ScriptedAgent::new("inner").says("hello").turn(Draft::message("x").usage(tokens(1, 1)), StopReason::Length);
    let outer = agent_fn("outer", move |session, out| {
        let inner = inner.clone();
        async move {
            let cx = out.cx().clone();
            let first = out.forward(inner.run(session, &cx)).await?;
            assert_eq!((first.stop, first.text()), (StopReason::Completed, "hello".to_owned()));
            let second = out.forward(inner.run(session, &cx)).await?;
            assert_eq!((second.stop, second.usage, second.events.len()), (StopReason::Length, tokens(1, 1), 1));
            Ok(StopReason::Halted)
        }
        .boxed()
    });
    let came = assert_laws(&outer, &mut session("go"), &RunContext::default()).await;
    assert_eq!(came.iter().map(word).collect::<Vec<_>>(), ["hello", "x", "halted by an evaluator"]);
}

fn malformed() -> Vec<(&'static str, Vec<Result<Update>>)> {
    let done = || Ok(Update::Done(StopReason::Completed));
    vec![
        ("no end", vec![Ok(Update::Delta(piece("x")))]),
        ("nothing at all", vec![]),
        ("two ends", vec![done(), done()]),
        ("a delta after the end", vec![done(), Ok(Update::Delta(piece("x")))]),
        ("an error after the end", vec![done(), Err(Error::new(ErrorKind::Store, "broken"))]),
    ]
}

#[tokio::test]
async fn a_malformed_run_is_a_contract_error_wherever_it_is_read() {
    for (what, items) in malformed() {
        let folded = AgentResponse::collect(stream::iter(items).boxed()).await;
        assert_eq!(folded.unwrap_err().kind(), ErrorKind::Contract, "{what}, collected");
    }
    for (what, items) in malformed() {
        let forwarded = run(|out| async move { out.forward(stream::iter(items).boxed()).await.map(|r| r.stop) });
        let last = collect(forwarded).await.pop().unwrap();
        assert_eq!(last.unwrap_err().kind(), ErrorKind::Contract, "{what}, forwarded");
    }
}

#[tokio::test]
async fn the_text_of_a_response_is_that_of_the_last_assistant_message_that_has_text() {
    let agent = agent_fn("a", |session, out| {
        async move {
            out.record(session, Draft::message(ChatMessage::assistant("first"))).await;
            out.record(session, Draft::message(ChatMessage::assistant("second")).say("feedback")).await;
            out.record(session, Draft::message(ChatMessage::assistant(""))).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let response = agent.ask(&mut Session::new(), "go").await.unwrap();
    assert_eq!(response.text(), "second");
    assert_eq!(response.messages().map(ChatMessage::text).collect::<Vec<_>>(), ["first", "second", "feedback", ""]);
    assert_eq!(response.clone().accepted().unwrap(), response);
}

#[tokio::test]
async fn an_unfinished_response_is_not_accepted_and_is_the_source_of_the_error() {
    let agent = ScriptedAgent::new("a").turn(Draft::message(ChatMessage::assistant("half")), StopReason::Length);
    let response = agent.ask(&mut Session::new(), "go").await.unwrap();
    let unfinished = response.clone().accepted().unwrap_err();
    assert_eq!(unfinished.response, response);
    let error = Error::from(unfinished);
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<agent_core::Unfinished>());
    assert_eq!(source.map(|unfinished| unfinished.response.stop), Some(StopReason::Length));
}

async fn ask(agent: impl Agent, session: &mut Session) -> String {
    agent.ask(session, "go").await.unwrap().text()
}

#[tokio::test]
async fn every_pointer_to_an_agent_is_the_agent() {
    let agent = ScriptedAgent::new("a").says("1").says("2").says("3").says("4");
    let boxed: Box<dyn Agent> = Box::new(agent.clone());
    let shared: Arc<dyn Agent> = Arc::new(agent.clone());
    let mut session = Session::new();
    let mut texts = ask(&agent, &mut session).await;
    texts += &ask(&boxed, &mut session).await;
    texts += &ask(shared.clone(), &mut session).await;
    texts += &ask(&*shared, &mut session).await;
    assert_eq!((texts, agent.runs(), boxed.info()), ("1234".to_owned(), 4, agent.info()));
}

#[tokio::test]
async fn no_agent_may_have_the_callers_name() {
    let agent = agent_fn(Event::CALLER, |session, out| {
        async move {
            out.record(session, Draft::message("forged words of the caller")).await;
            Ok(StopReason::Completed)
        }
        .boxed()
    });
    let mut session = Session::new();
    let error = agent.ask(&mut session, "hello").await.unwrap_err();
    assert_eq!((error.kind(), session.messages().len()), (ErrorKind::Invalid, 1));
    insta::assert_snapshot!(error, @"agent named `user`: that name is the caller's; give the agent another one");
}
