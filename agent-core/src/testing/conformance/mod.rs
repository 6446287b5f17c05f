//! What every session store must do.

mod samples;

use std::{fmt::Debug, sync::Arc};

use futures_util::future::join_all;

use self::samples::{full_events, odd_ids, said};
use crate::{ChatMessage, ErrorKind, Event, Session, SessionStore, Stored};

/// Checks that a [`SessionStore`] keeps what its trait promises: a suite for tests of your own store.
///
/// `make` is called once for each check, and must give a store without sessions; several stores may be in use at once
/// only if yours are apart. Run it on a multi-threaded runtime, so that the concurrent appends are:
///
/// ```
/// use agent_core::{MemoryStore, testing::store_conformance};
///
/// #[tokio::main] // in a test: #[tokio::test(flavor = "multi_thread")]
/// async fn main() {
///     store_conformance(async || MemoryStore::new()).await;
/// }
/// ```
///
/// It stores some thousand small events, most of them in one session, and one of 1 MiB. Among the ids are empty, very
/// long (4000 bytes) and otherwise odd ones, because callers choose them: a store whose back end cannot take an id must
/// escape it.
///
/// # Panics
/// If the store breaks a rule; the message says which. Outside a tokio runtime.
pub async fn store_conformance<S: SessionStore + 'static>(make: impl AsyncFn() -> S) {
    unknown_ids_are_empty(&make().await).await;
    a_session_is_the_fold_of_its_events(&make().await).await;
    events_skips_the_first(&make().await).await;
    a_conflict_changes_nothing(&make().await).await;
    an_empty_append_changes_nothing(&make().await).await;
    every_field_comes_back(&make().await).await;
    a_big_event_comes_back(&make().await).await;
    a_long_history_comes_back(&make().await).await;
    ids_stay_apart(&make().await).await;
    pages_are_parts_of_the_list(&make().await).await;
    delete_forgets(&make().await).await;
    one_concurrent_append_wins(Arc::new(make().await)).await;
}

async fn unknown_ids_are_empty(store: &impl SessionStore) {
    let rule = "an id that was never appended to is an empty session of version 0, not listed";
    same(&load(store, "unknown").await, &Stored::default(), rule);
    same_list(&events(store, "unknown", 0).await, &[], rule);
    same_list(&events(store, "unknown", 7).await, &[], rule);
    same_list(&list(store).await, &[], rule);
}

async fn a_session_is_the_fold_of_its_events(store: &impl SessionStore) {
    let log: Vec<Event> = (0..7).map(|n| said(&format!("text {n}"))).collect();
    let mut version = 0;
    for batch in [&log[..1], &log[1..4], &log[4..6], &log[6..]] {
        version += batch.len() as u64;
        let appended = append(store, "a", version - batch.len() as u64, batch).await;
        same(&appended, &version, "append returns the number of stored events");
        check_session(store, "a", &log[..usize::try_from(version).expect("a few events")]).await;
    }
}

async fn events_skips_the_first(store: &impl SessionStore) {
    let log: Vec<Event> = (0..5).map(|n| said(&format!("text {n}"))).collect();
    append(store, "a", 0, &log[..3]).await;
    append(store, "a", 3, &log[3..]).await;
    for from in 0..5 {
        let rule = format!("events(id, {from}) skips the first {from} of 5 events, batches or not");
        same_list(&events(store, "a", from as u64).await, &log[from..], &rule);
    }
    for from in [5, 6, u64::from(u32::MAX) + 1, u64::MAX] {
        let rule = format!("events(id, {from}) of 5 events is empty, not an error");
        same_list(&events(store, "a", from).await, &[], &rule);
    }
}

async fn a_conflict_changes_nothing(store: &impl SessionStore) {
    refuse(store, "unknown", 1, &[said("too early")]).await;
    same_list(&list(store).await, &[], "a refused append creates no session");
    let log = [said("one"), said("two")];
    append(store, "a", 0, &log).await;
    for expected in [0, 1, 3, u64::MAX] {
        refuse(store, "a", expected, &[said("late"), said("later")]).await;
        check_session(store, "a", &log).await;
    }
    refuse(store, "a", 1, &[]).await;
    same(&append(store, "a", 2, &[said("three")]).await, &3, "after a conflict the right version is accepted");
}

async fn an_empty_append_changes_nothing(store: &impl SessionStore) {
    same(&append(store, "a", 0, &[]).await, &0, "appending no events to an unknown id gives version 0");
    same_list(&list(store).await, &[], "appending no events creates no session");
    let log = [said("one")];
    append(store, "a", 0, &log).await;
    same(&append(store, "a", 1, &[]).await, &1, "appending no events leaves the version");
    check_session(store, "a", &log).await;
}

async fn every_field_comes_back(store: &impl SessionStore) {
    let log = full_events();
    let (first, rest) = log.split_at(1);
    append(store, "a", 0, first).await;
    append(store, "a", 1, rest).await;
    check_session(store, "a", &log).await;
}

async fn a_big_event_comes_back(store: &impl SessionStore) {
    let log = [said(&"1 MiB of text…".repeat((1 << 20) / 16)), said("and a small one")];
    append(store, "a", 0, &log[..1]).await;
    append(store, "a", 1, &log[1..]).await;
    check_session(store, "a", &log).await;
}

async fn a_long_history_comes_back(store: &impl SessionStore) {
    let mut log = Vec::new();
    for batch in [1, 98, 1, 1, 399, 500, 9000] {
        let events: Vec<_> = (0..batch).map(|n| said(&format!("text {n} of {batch}"))).collect();
        append(store, "a", log.len() as u64, &events).await;
        log.extend(events);
        check_session(store, "a", &log).await;
    }
    for from in [1, 99, 5000, 9999] {
        let rule = format!("events(id, {from}) skips the first {from} of 10,000 events");
        same_list(&events(store, "a", from as u64).await, &log[from..], &rule);
    }
}

async fn ids_stay_apart(store: &impl SessionStore) {
    let ids = odd_ids();
    for id in &ids {
        let rule = format!("id {id:?} is a session of its own, so its first append");
        ok(store.append(id, 0, &[said(id)]).await, &rule);
    }
    for id in &ids {
        let stored = load(store, id).await;
        let texts: Vec<_> = stored.session.messages().iter().map(ChatMessage::text).collect();
        same(&(stored.version, texts), &(1, vec![id.clone()]), &format!("id {id:?} is a session of its own"));
    }
    same_list(&list(store).await, &ids, "list gives every id once, in byte order");
    let (gone, kept): (Vec<_>, Vec<_>) = ids.iter().cloned().enumerate().partition(|(at, _)| at % 2 == 0);
    for (_, id) in gone {
        ok(store.delete(&id).await, &format!("delete {id:?}"));
    }
    let kept: Vec<_> = kept.into_iter().map(|(_, id)| id).collect();
    same_list(&list(store).await, &kept, "delete removes one id and no other");
}

async fn pages_are_parts_of_the_list(store: &impl SessionStore) {
    let ids = odd_ids();
    for id in &ids {
        append(store, id, 0, &[said(id)]).await;
    }
    let afters = ids.iter().map(String::as_str).chain(["a ", "b0", "zzzz"]).map(Some);
    for after in afters.chain([None]) {
        for prefix in ["", "a", "a/", "a%", "a_", "A", "é", "unknown"] {
            for limit in [0, 1, 3, usize::MAX] {
                let rule = format!("list_page({prefix:?}, {after:?}, {limit}) is that part of the list");
                let fits = |id: &&String| id.starts_with(prefix) && after.is_none_or(|after| id.as_str() > after);
                let expected: Vec<_> = ids.iter().filter(fits).take(limit).cloned().collect();
                same_list(&ok(store.list_page(prefix, after, limit).await, &rule), &expected, &rule);
            }
        }
    }
    let (mut paged, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = ok(store.list_page("", after.as_deref(), 4).await, "list_page");
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        paged.extend(page);
    }
    same_list(&paged, &list(store).await, "paging from the start to the end gives the list");
}

async fn delete_forgets(store: &impl SessionStore) {
    ok(store.delete("unknown").await, "delete an unknown id");
    let old: Vec<_> = (0..250).map(|n| said(&format!("old {n}"))).collect();
    append(store, "a", 0, &old).await;
    append(store, "b", 0, &[said("other")]).await;
    ok(store.delete("a").await, "delete a session");
    same(&load(store, "a").await, &Stored::default(), "a deleted session is as unknown");
    same_list(&list(store).await, &["b".to_owned()], "a deleted session is not listed");
    refuse(store, "a", 250, &[said("to what is gone")]).await;
    let log = [said("new")];
    same(&append(store, "a", 0, &log).await, &1, "a deleted id begins again at version 0");
    check_session(store, "a", &log).await;
}

async fn one_concurrent_append_wins(store: Arc<impl SessionStore + 'static>) {
    let mut log = Vec::new();
    for version in 0..16 {
        let appends = (0..8).map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let event = said(&format!("writer {writer} at version {version}"));
                (store.append("a", version, std::slice::from_ref(&event)).await, event)
            })
        });
        let mut winners = Vec::new();
        for done in join_all(appends).await {
            match done.expect("an append does not panic") {
                (Ok(new), event) => winners.push((new, event)),
                (Err(error), _) => {
                    let rule = "a writer that comes too late gets a Conflict";
                    assert!(error.kind() == ErrorKind::Conflict, "{rule}, not {error:?}");
                }
            }
        }
        same(&winners.len(), &1, &format!("of 8 concurrent appends at version {version} exactly one succeeds"));
        for (new, event) in winners {
            same(&new, &(version + 1), "append returns the number of stored events");
            log.push(event);
        }
        check_session(&store, "a", &log).await;
    }
}

async fn check_session(store: &impl SessionStore, id: &str, log: &[Event]) {
    let mut session = Session::new();
    for event in log {
        session.apply(event);
    }
    same_list(&events(store, id, 0).await, log, "events gives what was appended, in order");
    let stored = load(store, id).await;
    same(&stored, &Stored { session, version: log.len() as u64 }, "load gives the fold of the events");
}

async fn load(store: &impl SessionStore, id: &str) -> Stored {
    ok(store.load(id).await, &format!("load {id:?}"))
}

async fn events(store: &impl SessionStore, id: &str, from: u64) -> Vec<Event> {
    ok(store.events(id, from).await, &format!("events({id:?}, {from})"))
}

async fn list(store: &impl SessionStore) -> Vec<String> {
    ok(store.list().await, "list")
}

async fn append(store: &impl SessionStore, id: &str, expected: u64, events: &[Event]) -> u64 {
    let what = format!("append {} events to {id:?} at version {expected}", events.len());
    ok(store.append(id, expected, events).await, &what)
}

async fn refuse(store: &impl SessionStore, id: &str, expected: u64, events: &[Event]) {
    let result = store.append(id, expected, events).await;
    let is_conflict = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict);
    assert!(is_conflict, "append to {id:?} at the wrong version {expected} is a Conflict, not {result:?}");
}

fn same<T: PartialEq + Debug>(found: &T, expected: &T, rule: &str) {
    assert!(found == expected, "{rule}\n  expected {}\n  found    {}", cut(expected), cut(found));
}

fn same_list<T: PartialEq + Debug>(found: &[T], expected: &[T], rule: &str) {
    let Some(at) = (0..found.len().max(expected.len())).find(|at| found.get(*at) != expected.get(*at)) else { return };
    same(&found.get(at), &expected.get(at), &format!("{rule}; item {at} is another"));
}

/// The value in a length that can be read: a store may hold megabytes.
fn cut(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let end = text.char_indices().nth(2000).map(|(at, _)| at);
    end.map_or_else(|| text.clone(), |end| format!("{}…", &text[..end]))
}

fn ok<T>(result: crate::Result<T>, what: &str) -> T {
    result.unwrap_or_else(|error| panic!("{what} succeeds, not {error:?}"))
}
