//! The laws of a run.

use futures_util::StreamExt;

use crate::{Agent, Event, RunContext, Session, Update};

/// Runs an agent to its end and checks the laws that every run keeps; returns its updates.
///
/// - The session after the run is the session before with the events applied.
/// - [`Done`](Update::Done) comes once, and last.
/// - Each event carries the run's id and an author, ids rise, and its path begins with the context's.
/// - A snapshot taken before the run does not change.
///
/// # Panics
/// If a law is broken, or if the run fails: the message names which.
pub async fn assert_laws(agent: &(impl Agent + ?Sized), session: &mut Session, cx: &RunContext) -> Vec<Update> {
    let snapshot = session.clone();
    let before = serde_json::to_value(&snapshot).expect("a session is JSON");
    let mut folded = snapshot.clone();
    let mut updates: Vec<Update> = Vec::new();
    let mut last: Option<Event> = None;
    let mut run = agent.run(session, cx);
    while let Some(update) = run.next().await {
        let update = update.unwrap_or_else(|error| panic!("the run failed after {} updates: {error:?}", updates.len()));
        assert!(!matches!(updates.last(), Some(Update::Done(_))), "an update after the end: {update:?}");
        if let Update::Event(event) = &update {
            check_stamps(event, last.as_ref(), cx);
            folded.apply(event);
            last = Some(event.clone());
        }
        updates.push(update);
    }
    drop(run);
    assert!(matches!(updates.last(), Some(Update::Done(_))), "the run stopped without saying how it ended");
    assert_eq!(*session, folded, "the session is not the fold of its events");
    let after = serde_json::to_value(&snapshot).expect("a session is JSON");
    assert_eq!(before, after, "a snapshot changed");
    updates
}

fn check_stamps(event: &Event, last: Option<&Event>, cx: &RunContext) {
    assert_eq!(event.run, cx.id(), "an event of another run: {event:?}");
    assert!(!event.author.is_empty(), "an event without an author: {event:?}");
    assert!(event.path.starts_with(cx.path()), "an event from outside of {:?}: {event:?}", cx.path());
    if let Some(last) = last {
        assert!(last.id < event.id, "event ids do not rise: {} comes before {}", last.id, event.id);
    }
}
