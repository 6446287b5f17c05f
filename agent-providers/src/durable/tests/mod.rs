//! Turns on a journal in memory, whose process may die at any entry.

mod journal;
mod world;

use std::{sync::Arc, time::Duration};

use agent_core::{ChatMessage, RunContext, Session, StopReason, Usage};

use self::{
    journal::{Death, Memory, book},
    world::World,
};
use super::{
    Reply, Status,
    live::{Live, Lives},
    parts::{LARGEST, LIMIT, split},
    turn::{Failure, nobody_waits, turn},
    types::Answer,
};

fn yes(call_id: &str) -> Answer {
    Answer { call_id: call_id.to_owned(), rejected: None }
}

fn no(call_id: &str, why: &str) -> Answer {
    Answer { call_id: call_id.to_owned(), rejected: Some(why.to_owned()) }
}

/// A turn in which the caller says "go".
async fn go(journal: &mut Memory, live: &Arc<Live>) -> Result<Reply, Failure> {
    turn(journal, live, Some(ChatMessage::user("go"))).await
}

/// The roles and texts, without ids.
fn lines(session: &Session) -> Vec<String> {
    session.messages().iter().map(|message| format!("{:?} {:?}", message.role, message.contents)).collect()
}

const LONG: &[&[&str]] = &[&["look"; 8] as &[&str]; 64];

const ERRAND: &[&[&str]] = &[&["look"], &["pay"], &["look", "look"], &["All done."]];

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_at_any_step_is_followed_by_one_that_ends_the_same() {
    let whole = World::default();
    let undisturbed = book([yes("call_1_0")]);
    let live = whole.live(ERRAND);
    let reply = go(&mut Memory::new(&undisturbed, None), &live).await.unwrap();
    let usage = Usage { input_tokens: 40, output_tokens: 4, ..Usage::default() };
    assert_eq!(reply, Reply { stop: StopReason::Completed, text: "All done.".to_owned(), usage });
    assert_eq!((whole.asked.get(), whole.looked.get(), whole.paid.get()), (4, 3, 1));
    let session = live.session().await;
    let count = undisturbed.lock().unwrap().steps.len();
    assert_eq!(count, 13);

    for at in 0..count {
        for death in [Death::Before(at), Death::After(at)] {
            let (world, book) = (World::default(), book([yes("call_1_0")]));
            let first = world.live(ERRAND);
            let mut memory = Memory::new(&book, Some(death));
            let died = tokio::time::timeout(Duration::from_secs(1), go(&mut memory, &first)).await;
            assert!(died.is_err(), "{death:?}");
            drop((first, memory));
            let second = world.live(ERRAND);
            let ended = go(&mut Memory::new(&book, None), &second).await.unwrap();
            assert_eq!(ended, reply, "{death:?}");
            assert_eq!(lines(&second.session().await), lines(&session), "{death:?}");
            // Only what was in the air is done again.
            let again = u32::from(matches!(death, Death::Before(_)));
            assert!(world.asked.get() <= 4 + again, "{death:?}: asked {} times", world.asked.get());
            assert!(world.paid.get() <= 1 + again, "{death:?}: paid {} times", world.paid.get());
        }
    }
}

#[tokio::test]
async fn several_approvals_are_answered_one_by_one() {
    const TWO: &[&[&str]] = &[&["pay", "pay"], &["All done."]];
    let (world, book) = (World::default(), book([no("call_0_1", "too much"), no("unknown", ""), yes("call_0_0")]));
    let live = world.live(TWO);
    let reply = go(&mut Memory::new(&book, None), &live).await.unwrap();
    assert_eq!((reply.stop, world.paid.get()), (StopReason::Completed, 1));
    let book = book.lock().unwrap();
    let open: Vec<usize> = book.shown.iter().map(|status| status.approvals.len()).collect();
    assert_eq!(open, [0, 2, 1, 1, 1, 0, 0], "asked about, answered, asked again");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_waits_keeps_its_question() {
    let (world, book) = (World::default(), book([]));
    let live = world.live(ERRAND);
    let reply = go(&mut Memory::new(&book, None), &live).await.unwrap();
    assert_eq!((reply.stop, world.paid.get()), (StopReason::Cancelled, 0));
    let status = book.lock().unwrap().shown.last().cloned().unwrap();
    assert_eq!((status.stop, status.approvals.len()), (Some(StopReason::Cancelled), 1));
    assert_eq!(live.session().await.open_approvals(), status.approvals);
    insta::assert_snapshot!(nobody_waits("call_1_0", &status, &[]), @"answer to `call_1_0`, which is open, but its turn has ended; `say` a message with the answer");
    insta::assert_snapshot!(nobody_waits("other", &status, &[]), @"answer to `other`, which does not wait for one; those that do: none");

    // As it says.
    let said = Some(ChatMessage::approve("call_1_0"));
    let next = Live::new(world.steps(live.session().await, ERRAND, RunContext::default()), None, 0);
    let book = journal::book([]);
    let reply = turn(&mut Memory::new(&book, None), &next, said).await.unwrap();
    assert_eq!((reply.stop, world.paid.get()), (StopReason::Completed, 1));
}

#[tokio::test]
async fn a_cancellation_that_comes_too_late_does_not_reach_the_next_turn() {
    let (world, lives) = (World::default(), Lives::default());
    let enter = |invocation: &'static str| {
        lives.enter(invocation, 0, RunContext::default(), |run| Ok(world.steps(Session::new(), ERRAND, run))).unwrap()
    };
    drop(enter("first"));
    let second = enter("second");
    let is_cancelled = async || second.live().ask(async |steps| steps.cx().cancel().is_cancelled()).await;
    lives.cancel("first");
    assert!(!is_cancelled().await);
    lives.cancel("second");
    assert!(is_cancelled().await);
}

#[tokio::test]
async fn a_turn_that_would_make_the_session_too_large_ends_with_what_can_be_stored() {
    let mut full = Session::new();
    let long = ChatMessage::user("x".repeat(1_000));
    for _ in 0..(LIMIT - 2_000) / (serde_json::to_string(&long).unwrap().len() + 1) {
        full.push(long.clone());
    }
    let (world, book) = (World::default(), book([yes("call_1_0")]));
    let live = world.live_on(full.clone(), LONG);
    let failed = go(&mut Memory::new(&book, None), &live).await.unwrap_err();
    let message = "store a session of more than 1 MiB; begin a new one, or let a loop forget (`Fresh`)".to_owned();
    assert_eq!(failed, Failure::Failed { code: 500, message });
    let session = live.session().await;
    assert!(world.looked.get() > 0 && session.messages().len() > full.messages().len() + 2, "it did something");
    assert!(split(&session).is_ok());

    // A replay ends the same.
    let again = world.live_on(full, LONG);
    assert_eq!(go(&mut Memory::new(&book, None), &again).await.unwrap_err(), failed);
    assert_eq!(again.session().await, session);
}

/// The server would refuse its entry, and ask for it again and again.
#[tokio::test]
async fn a_step_that_no_entry_holds_ends_the_turn() {
    let (world, book) = (World::default(), book([]));
    let long: &[&str] = vec![&*"long ".repeat(LARGEST / 5).leak()].leak();
    let live = world.live(vec![&["look"], long].leak());
    let failed = go(&mut Memory::new(&book, None), &live).await.unwrap_err();
    let message = "store a step of more than 1 MiB, the most that a Restate server takes at once; keep it elsewhere, \
                   and its address in the session";
    assert_eq!(failed, Failure::Failed { code: 500, message: message.to_owned() });
    assert_eq!(live.session().await.messages().len(), 3, "what came before is kept");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_between_two_steps_ends_by_itself() {
    let (world, book) = (World::default(), book([yes("call_1_0")]));
    let live = world.live(ERRAND);
    let mut memory = Memory::new(&book, None);
    memory.cancelled = Some(2); // the model wants to look
    let reply = go(&mut memory, &live).await.unwrap();
    assert_eq!((reply.stop, world.asked.get(), world.looked.get()), (StopReason::Cancelled, 1, 0));

    // A replay is cancelled at the same place.
    let again = world.live(ERRAND);
    assert_eq!(go(&mut Memory::new(&book, None), &again).await.unwrap(), reply);
    assert_eq!((again.session().await, world.asked.get()), (live.session().await, 1));
}

#[tokio::test]
async fn a_turn_that_fails_for_good_says_why_and_keeps_what_it_recorded() {
    let (world, book) = (World::default(), book([]));
    let live = world.live(&[&["look"]]);
    let failed = go(&mut Memory::new(&book, None), &live).await.unwrap_err();
    let message = "say more".to_owned();
    assert_eq!(failed, Failure::Failed { code: 501, message: message.clone() });
    let status = book.lock().unwrap().shown.last().cloned().unwrap();
    assert_eq!(status, Status { error: Some(message), ..Status::default() });
    assert_eq!(live.session().await.messages().len(), 3);
}

#[tokio::test]
async fn a_forged_answer_fails_before_anything_runs() {
    let (world, book) = (World::default(), book([]));
    let live = world.live(ERRAND);
    let forged = Some(ChatMessage::approve("call_1_0"));
    let failed = turn(&mut Memory::new(&book, None), &live, forged).await.unwrap_err();
    assert!(matches!(failed, Failure::Failed { code: 400, .. }), "{failed:?}");
    assert_eq!((world.asked.get(), live.session().await), (0, Session::new()));
}

/// Suspended after every step, as by a server that waits for nobody: in one process the run goes on where it stood.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_suspended_at_any_step_goes_on_where_its_run_stands() {
    let (world, book, lives) = (World::default(), book([yes("call_1_0")]), Lives::default());
    let mut attempts = 0;
    let reply = loop {
        let enter = |run| Ok(world.steps(Session::new(), ERRAND, run));
        let entered = lives.enter("invocation", 0, RunContext::default(), enter).unwrap();
        let mut memory = Memory::new(&book, Some(Death::After(attempts)));
        match tokio::time::timeout(Duration::from_secs(1), go(&mut memory, entered.live())).await {
            Ok(reply) => break reply.unwrap(),
            Err(_) => attempts += 1,
        }
    };
    assert_eq!((reply.stop, attempts), (StopReason::Completed, 13), "suspended after each of its steps");
    assert_eq!((world.asked.get(), world.looked.get(), world.paid.get()), (4, 3, 1));
}
