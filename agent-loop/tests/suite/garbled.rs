//! Records that somebody changed, or that a newer program wrote.

use agent_core::{ErrorKind, Session, StopReason, testing::ScriptedClient};
use agent_loop::{LoopAgent, LoopOutcome, evaluate_fn};
use serde_json::{Value, json};

use crate::support::{Count, asked, cap, chat, gated, go, never, outcome, reloaded, try_go};

const RECORD: &str = "loop:loop";
const LIST: &str = "loop:loop:iterations";

/// A loop that waits for an approval in its second pass, and its session.
async fn waiting() -> (LoopAgent, Count, Session) {
    let client = ScriptedClient::new().says("1").calls("c", "pay", json!({})).says("2").says("3").says("4");
    let (pay, paid) = gated("pay");
    let agent = LoopAgent::new("loop", chat("a", &client).tool(pay), cap(3)).evaluator(never());
    let mut session = asked("buy");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::AwaitingApproval);
    (agent, paid, session)
}

fn garbled(session: &Session, key: &str, value: Value) -> Session {
    let mut json = json!(session);
    json["state"][key] = value;
    serde_json::from_value(json).unwrap()
}

#[tokio::test]
async fn a_loop_whose_record_cannot_be_read_does_not_begin_anew() {
    let mut told = Vec::new();
    for (key, value) in [
        (LIST, json!(["seven\nnever"])),
        (LIST, json!(["7\nnever", "8 x"])),
        (LIST, json!([7])),
        (LIST, json!({})),
        (RECORD, json!({ "stop": "paused", "turn": 0, "request": [0, 1], "mark": 1 })),
        (RECORD, json!({ "turn": 0 })),
    ] {
        let (agent, paid, session) = waiting().await;
        let mut session = garbled(&session, key, value);
        session.push(agent_core::ChatMessage::approve("c"));
        let before = session.clone();
        let error = try_go(&agent, &mut session).await.unwrap_err();
        assert_eq!((error.kind(), paid.get()), (ErrorKind::Invalid, 0), "{error:#}");
        assert_eq!(session, before, "nothing is lost");
        told.push(format!("{error:#}"));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    take up a loop: its record in the session's state, `loop:loop:iterations`, cannot be read; restore it, or remove it to begin anew: invalid value: string "seven", expected an iteration's record: a text, an object or a list
    take up a loop: its record in the session's state, `loop:loop:iterations`, cannot be read; restore it, or remove it to begin anew: invalid value: string "8 x", expected an iteration's record: a text, an object or a list
    take up a loop: its record in the session's state, `loop:loop:iterations`, cannot be read; restore it, or remove it to begin anew: invalid type: integer `7`, expected an iteration's record: a text, an object or a list
    take up a loop: its record in the session's state, `loop:loop:iterations`, cannot be read; restore it, or remove it to begin anew: invalid type: map, expected a sequence
    take up a loop: its record in the session's state, `loop:loop`, cannot be read; restore it, or remove it to begin anew: unknown variant `paused`, expected one of `completed`, `escalated`, `awaiting_approval`, `length`, `filtered`, `turn_limit`, `iteration_limit`, `budget_exhausted`, `halted`, `cancelled`
    take up a loop: its record in the session's state, `loop:loop`, cannot be read; restore it, or remove it to begin anew: missing field `request`
    "#);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_no_outcome() {
    let (_, _, session) = waiting().await;
    assert_eq!(LoopOutcome::of(&garbled(&session, LIST, json!(["seven"])), "loop"), None, "not that of no passes");
    assert_eq!(LoopOutcome::of(&garbled(&session, RECORD, json!("running")), "loop"), None);
}

#[tokio::test]
async fn a_new_request_makes_the_session_usable() {
    for (key, value) in
        [(LIST, json!(["seven"])), (RECORD, json!({ "stop": "paused", "turn": 0, "request": [0, 1], "mark": 1 }))]
    {
        let (agent, _, session) = waiting().await;
        let mut session = garbled(&session, key, value);
        session.push("something else");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!(outcome(&session).iterations.len(), 3);
    }
}

#[tokio::test]
async fn a_record_that_tells_no_turn_is_stale() {
    for record in [json!("running"), json!({}), json!({ "turn": "0" }), json!({ "turn": 7 })] {
        let (inner, _) = crate::support::says("a");
        let agent = LoopAgent::new("loop", inner, cap(2)).evaluator(never());
        let mut session = asked("go").with_state(RECORD, record).with_state(LIST, json!([7]));
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
        assert_eq!(outcome(&session).iterations.len(), 2);
    }
}

#[tokio::test]
async fn any_name_and_any_feedback_are_kept_as_they_are() {
    let texts = ["", " ", "\n", "a\nb", "\n\na\r\n", "7 1", "null", "\u{0}\u{feff}é", "\u{2028}x"];
    for name in texts {
        for feedback in texts {
            let (inner, _) = crate::support::says("a");
            let objects = evaluate_fn(name, move |_| agent_loop::LoopEvaluation::feedback(feedback));
            let agent = LoopAgent::new("loop", inner, cap(2)).evaluator(objects);
            let mut session = asked("go");
            assert_eq!(go(&agent, &mut session).await.stop, StopReason::IterationLimit);
            let outcome = outcome(&reloaded(&session));
            let kept = outcome.iterations.iter().map(|record| (record.by.as_deref(), record.feedback.as_deref()));
            let said = (!feedback.trim().is_empty()).then_some(feedback);
            assert_eq!(kept.collect::<Vec<_>>(), [(Some(name), said); 2], "{name:?} {feedback:?}");
            assert_eq!((outcome.by.as_deref(), outcome.why.as_deref()), (Some(name), said));
        }
    }
}
