//! B: what is sent.

use agent_core::{
    AgentExt, ChatMessage, Format, RunContext, SequentialAgent, Session, StopReason, agent_fn, run_typed,
    testing::ScriptedClient,
};
use agent_loop::{LoopAgent, LoopEvaluation};
use serde_json::json;

use crate::support::{acts, asked, cap, chat, fresh, go, never, outcome, said, says, scripted, until, user_words};

/// B1
#[tokio::test]
async fn the_callers_words_are_never_repeated() {
    let client = ScriptedClient::new().says("1").says("2").says("3");
    let agent = LoopAgent::new("loop", chat("w", &client), cap(5)).evaluator(until(3));
    go(&agent, &mut asked("go")).await;
    let heard: Vec<_> = client.requests().iter().map(|request| user_words(&request.messages)).collect();
    assert_eq!(heard, [vec!["go"], vec!["go", "f1"], vec!["go", "f1", "f2"]]);
}

/// B2
#[tokio::test]
async fn feedback_is_said_verbatim_and_once() {
    let feedback = "  keep *this*:\n\t- ünïcode {key}  \n";
    let evaluations = [LoopEvaluation::feedback(feedback), LoopEvaluation::again(), LoopEvaluation::Satisfied];
    let agent = LoopAgent::new("loop", says("w").0, cap(5)).evaluator(scripted("e", &evaluations));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    assert_eq!(said(&session), ["user: go", "w: 1", &format!("loop: {feedback}"), "w: 2", "w: 3"]);
}

/// B2
#[tokio::test]
async fn blank_feedback_says_nothing() {
    for blank in [None, Some(String::new()), Some(" \n\t ".into())] {
        for options in [cap(5), fresh(5)] {
            let evaluations = [LoopEvaluation::Continue(blank.clone()), LoopEvaluation::Satisfied];
            let agent = LoopAgent::new("loop", says("w").0, options).evaluator(scripted("e", &evaluations));
            let mut session = asked("go");
            go(&agent, &mut session).await;
            assert_eq!(user_words(session.messages()), ["go"]);
            let record = &outcome(&session).iterations[0];
            assert_eq!((record.by.as_deref(), record.feedback.as_deref()), (Some("e"), None));
        }
    }
    assert_eq!(LoopEvaluation::feedback(" \n"), LoopEvaluation::Continue(None));
}

/// B3
#[tokio::test]
async fn fresh_context_is_what_was_there_and_all_feedback() {
    let evaluations = ["a", "", "b\nc"].map(LoopEvaluation::feedback);
    let first = says("before").0;
    let client = ScriptedClient::new().says("1").says("2").says("3").says("4");
    let agent = LoopAgent::new("loop", chat("w", &client), fresh(4))
        .evaluator(scripted("e", &[&evaluations[..], &[LoopEvaluation::Satisfied]].concat()));
    let mut session = asked("go");
    go(&SequentialAgent::new("all").then(first).then(agent), &mut session).await;
    let heard: Vec<Vec<String>> =
        client.requests().iter().map(|request| request.messages.iter().map(crate::support::show).collect()).collect();
    let base = ["user: go", "before: 1"];
    let with = |feedback: &'static str| [&base[..], &[feedback]].concat();
    assert_eq!(heard[0], base);
    assert_eq!(heard[1], with("loop: ## Feedback\n\n- a"));
    assert_eq!(heard[2], with("loop: ## Feedback\n\n- a"));
    insta::assert_snapshot!(heard[3].join("\n"), @"
    user: go
    before: 1
    loop: ## Feedback

    - a
    - b
    c
    ");
    assert_eq!(said(&session), [&with("loop: ## Feedback\n\n- a\n- b\nc")[..], &["w: 4"]].concat());
}

/// B3
#[tokio::test]
async fn fresh_context_without_feedback_has_no_message() {
    let agent = LoopAgent::new("loop", says("w").0, fresh(3)).evaluator(never());
    let mut session = asked("go");
    go(&agent, &mut session).await;
    assert_eq!(said(&session), ["user: go", "w: 3"]);
}

/// B4
#[tokio::test]
async fn fresh_context_keeps_the_state() {
    let (agent, _) = acts("w", |run| {
        let draft = agent_core::Draft::message(ChatMessage::assistant("x")).append("done", run);
        (vec![draft], Ok(StopReason::Completed))
    });
    let agent = LoopAgent::new("loop", agent, fresh(3)).evaluator(never());
    let mut session = asked("go").with_state("mine", 7);
    go(&agent, &mut session).await;
    assert_eq!((session.get::<Vec<u32>>("done"), session.get("mine")), (Some(vec![1, 2, 3]), Some(7)));
}

/// B5, B6
#[tokio::test]
async fn continue_with_says_exactly_its_messages_in_one_event() {
    let words = vec![
        ChatMessage::system("be brief"),
        ChatMessage::assistant("I will").by("critic"),
        ChatMessage::user("again"),
    ];
    let evaluations = [LoopEvaluation::feedback("f"), LoopEvaluation::ContinueWith(words), LoopEvaluation::Satisfied];
    for (options, expected) in [
        (
            cap(5),
            vec![
                "user: go",
                "w: 1",
                "loop: f",
                "w: 2",
                "loop (system): be brief",
                "critic: I will",
                "loop: again",
                "w: 3",
            ],
        ),
        (fresh(5), vec!["user: go", "loop (system): be brief", "critic: I will", "loop: again", "w: 3"]),
    ] {
        let agent = LoopAgent::new("loop", says("w").0, options).evaluator(scripted("e", &evaluations));
        let mut session = asked("go");
        let response = go(&agent, &mut session).await;
        assert_eq!(said(&session), expected);
        let sizes: Vec<_> = response.events.iter().filter(|e| &*e.author == "loop").map(|e| e.messages.len()).collect();
        assert_eq!(sizes, [0, 1, 3, 0]);
        let record = &outcome(&session).iterations[1];
        assert_eq!((record.by.as_deref(), record.feedback.as_deref()), (Some("e"), None));
    }
}

/// B5: they are no feedback, so a later fresh iteration does not hear of them.
#[tokio::test]
async fn continue_with_is_not_in_the_feedback_log() {
    let evaluations =
        [LoopEvaluation::ContinueWith(vec!["hint".into()]), LoopEvaluation::feedback("f"), LoopEvaluation::Satisfied];
    let agent = LoopAgent::new("loop", says("w").0, fresh(5)).evaluator(scripted("e", &evaluations));
    let mut session = asked("go");
    go(&agent, &mut session).await;
    assert_eq!(said(&session), ["user: go", "loop: ## Feedback\n\n- f", "w: 3"]);
}

/// B5
#[tokio::test]
async fn continue_with_nothing_goes_on_without_a_word() {
    for (options, expected) in [(cap(5), vec!["user: go", "w: 1", "w: 2"]), (fresh(5), vec!["user: go", "w: 2"])] {
        let evaluations = [LoopEvaluation::ContinueWith(vec![]), LoopEvaluation::Satisfied];
        let agent = LoopAgent::new("loop", says("w").0, options).evaluator(scripted("e", &evaluations));
        let mut session = asked("go");
        go(&agent, &mut session).await;
        assert_eq!(said(&session), expected);
    }
}

/// B6
#[tokio::test]
async fn the_loops_words_are_never_part_of_last() {
    let agent = LoopAgent::new("loop", says("w").0, cap(3)).evaluator(agent_loop::evaluate_fn("e", |cx| {
        let said: Vec<String> = cx.last.messages().map(ChatMessage::text).collect();
        assert_eq!(said, [cx.iteration.to_string()]);
        assert_eq!(cx.earlier.len(), cx.iteration as usize - 1);
        for (at, earlier) in cx.earlier.iter().enumerate() {
            assert_eq!(earlier.response.text(), (at + 1).to_string());
            assert!(earlier.response.events.iter().all(|event| &*event.author == "w"));
        }
        LoopEvaluation::feedback("f")
    }));
    assert_eq!(go(&agent, &mut asked("go")).await.stop, StopReason::IterationLimit);
}

/// B7
#[tokio::test]
async fn a_rewind_is_one_small_event_however_long_the_history() {
    let mut sizes = Vec::new();
    for length in [1, 500] {
        let mut session = Session::new();
        (0..length).for_each(|_| session.push("a long message of the caller, said again and again"));
        let agent = LoopAgent::new("loop", says("w").0, fresh(2)).evaluator(until(2));
        let response = go(&agent, &mut session).await;
        let rewinds: Vec<_> = response.events.iter().filter(|event| event.rewind.is_some()).collect();
        assert_eq!(rewinds.len(), 1);
        assert_eq!(rewinds[0].rewind, Some(length));
        sizes.push(serde_json::to_string(rewinds[0]).unwrap().len());
    }
    assert_eq!(sizes[0] + "500".len() - "1".len(), sizes[1]);
}

/// B8: the caller's format reaches the inner agent, and the value is the last answer.
#[tokio::test]
async fn a_typed_result_is_read_from_the_last_answer() {
    let client = ScriptedClient::new().says("1").says("2");
    let agent = LoopAgent::new("loop", chat("w", &client), cap(3))
        .evaluator(scripted("e", &[LoopEvaluation::feedback("3"), LoopEvaluation::Satisfied]));
    let typed = run_typed::<u8>(&agent, &mut asked("go"), &RunContext::default()).await.unwrap();
    assert_eq!(typed.value, 2);
    for request in client.requests() {
        assert_eq!(request.options.format, Format::of::<u8>());
    }
}

#[tokio::test]
async fn the_request_is_the_same_in_all_iterations() {
    for options in [cap(3), fresh(3)] {
        for first_speaks in [false, true] {
            let seen = crate::support::Log::default();
            let log = seen.clone();
            let agent =
                LoopAgent::new("loop", says("w").0, options).evaluator(agent_loop::evaluate_fn("e", move |cx| {
                    log.add(cx.request.iter().map(crate::support::show).collect::<Vec<_>>().join(" | "));
                    LoopEvaluation::feedback("f")
                }));
            let mut all = SequentialAgent::new("all");
            if first_speaks {
                all = all.then(says("first").0);
            }
            let mut session = Session::new();
            session.push("old");
            session.push(ChatMessage::assistant("old answer"));
            session.push("go");
            session.push("quickly");
            go(&all.then(agent), &mut session).await;
            assert_eq!(seen.get(), ["user: go | user: quickly"; 3], "{options:?}");
        }
    }
}

/// The inner agent may cut the history itself: a request that is gone is none, not a crash.
#[tokio::test]
async fn a_request_that_was_forgotten_is_read_with_a_check() {
    let inner = agent_fn("w", |session, out| {
        Box::pin(async move {
            out.record(session, agent_core::Draft::default().rewind(0)).await;
            Ok(StopReason::Completed)
        })
    });
    let agent = LoopAgent::new("loop", inner, fresh(3)).evaluator(agent_loop::evaluate_fn("e", |cx| {
        assert_eq!(cx.request, []);
        LoopEvaluation::again()
    }));
    let mut session = asked("go").with_state("k", json!(1));
    assert_eq!(agent.complete(&mut session, &RunContext::default()).await.unwrap().stop, StopReason::IterationLimit);
    assert_eq!(session.messages(), []);
}
