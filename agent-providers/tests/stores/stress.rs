//! Many processes, many sessions. `STORES_STRESS_SECONDS=30` makes it longer than the 2 seconds of the suite.

use std::{
    collections::{BTreeSet, HashMap},
    env, slice,
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{ErrorKind, SessionStore};
use agent_providers::{PostgresStore, PostgresStoreOptions};

use crate::{
    places::{Place, fold, open, said},
    processes::another,
};

const WRITERS: u64 = 8;
const SESSIONS: u64 = 100;

/// So often each writer appends at the least, however busy the machine is: about 360 times in all a writer comes to a session
/// for the first time, and all but the first writers of a session find it changed.
const LEAST: u32 = 60;

fn seconds() -> u64 {
    env::var("STORES_STRESS_SECONDS").map_or(2, |seconds| seconds.parse().unwrap())
}

/// One writer: appends to sessions at the versions that it knows, until its time is over and it has done enough.
pub(crate) async fn append(store: &Arc<dyn SessionStore>, writer: &str) {
    let mut random = fastrand::Rng::with_seed(writer.parse().unwrap());
    let mut versions = HashMap::new();
    let (end, mut appends, mut lost) = (Instant::now() + Duration::from_secs(seconds()), 0, 0);
    while Instant::now() < end || appends < LEAST {
        appends += 1;
        let session = random.u64(..SESSIONS);
        let known = versions.entry(session).or_default();
        let events: Vec<_> = (0..random.u64(1..4)).map(|_| said(format!("by {writer}"))).collect();
        match store.append(&session.to_string(), *known, &events).await {
            Ok(version) => {
                for (at, event) in (*known + 1..).zip(&events) {
                    println!("won {session} {at} {}", event.id);
                }
                assert_eq!(version, *known + events.len() as u64);
                *known = version;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
                lost += 1;
                *known = store.load(&session.to_string()).await.unwrap().version;
            }
        }
    }
    println!("lost {lost}");
}

async fn compete(place: Place) {
    let began = Instant::now();
    open(&place.name).await;
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| another(&format!("append {writer}"), &place.name).spawn().unwrap()).collect();
    let (mut won, mut wins, mut lost) = (BTreeSet::new(), 0, 0);
    // All outputs are read at once: a writer whose output nobody reads stands still.
    let writers = writers.into_iter().map(|writer| std::thread::spawn(|| writer.wait_with_output().unwrap()));
    for writer in writers.collect::<Vec<_>>() {
        let output = writer.join().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        for line in text.lines() {
            if let Some((_, event)) = line.split_once("won ") {
                wins += 1;
                won.insert(event.to_owned());
            } else if let Some((_, count)) = line.split_once("lost ") {
                lost += count.parse::<u64>().unwrap();
            }
        }
    }
    let store = open(&place.name).await;
    let mut stored = BTreeSet::new();
    for session in 0..SESSIONS {
        let log = store.events(&session.to_string(), 0).await.unwrap();
        assert_eq!(store.load(&session.to_string()).await.unwrap(), fold(&log));
        stored
            .extend(log.iter().zip(1..).map(|(event, version): (_, u64)| format!("{session} {version} {}", event.id)));
    }
    assert_eq!(won.len(), wins, "no version was given twice");
    assert_eq!(won, stored, "each stored event was won once, at the version that its writer was told");
    assert!(wins > 100 && lost > 100, "{wins} won, {lost} lost: too few to show anything");
    println!("{wins} events stored and {lost} conflicts in {:?}", began.elapsed());
}

#[tokio::test]
async fn processes_that_append_to_a_sqlite_store_lose_nothing() {
    compete(Place::sqlite()).await;
}

#[tokio::test]
async fn processes_that_append_to_a_postgres_store_lose_nothing() {
    let Some(place) = Place::postgres() else { return };
    compete(place).await;
}

#[tokio::test]
async fn processes_that_append_to_a_jsonl_store_lose_nothing() {
    compete(Place::jsonl()).await;
}

/// A pool of one connection serves many at once: it is taken for a statement, not for a run.
#[tokio::test]
async fn a_pool_may_be_smaller_than_the_number_of_sessions() {
    let Some(place) = Place::postgres() else { return };
    let options = PostgresStoreOptions { connections: 1.try_into().unwrap(), ..Default::default() };
    let store = PostgresStore::connect(place.name.as_str(), options).await.unwrap();
    let events = [said("hi")];
    let appends = (0..50).map(|session| {
        let (store, events) = (&store, &events);
        async move { store.append(&format!("{session}"), 0, slice::from_ref(&events[0])).await.unwrap() }
    });
    assert_eq!(futures::future::join_all(appends).await, [1; 50]);
}
