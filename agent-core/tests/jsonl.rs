//! What [`JsonlStore`] does beyond what every store does: files, crashes, other processes.

use std::{
    collections::HashSet,
    env,
    error::Error as _,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    slice,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use agent_core::{ChatMessage, ErrorKind, Event, JsonlStore, Session, SessionStore, Stored};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

fn store() -> (TempDir, JsonlStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = JsonlStore::open(dir.path()).unwrap();
    (dir, store)
}

fn said(text: impl Into<String>) -> Event {
    Event {
        id: Uuid::now_v7(),
        run: Uuid::nil(),
        author: "agent".into(),
        path: Arc::from([]),
        rewind: None,
        messages: vec![ChatMessage::assistant(text)],
        state: vec![],
        usage: None,
        escalate: false,
    }
}

/// An event with an id and a text that are always the same.
fn fixed(text: &str) -> Event {
    Event { id: Uuid::from_u128(7), ..said(text) }
}

fn fold(events: &[Event]) -> Stored {
    let mut session = Session::new();
    for event in events {
        session.apply(event);
    }
    Stored { session, version: events.len() as u64 }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// An error, its kind and its causes, without the directory's name.
fn shown(error: &agent_core::Error, dir: &Path) -> String {
    let mut lines = vec![format!("{:?}: {error}", error.kind())];
    let mut next = error.source();
    while let Some(cause) = next {
        lines.push(format!("  {cause}"));
        next = cause.source();
    }
    lines.join("\n").replace(dir.to_str().unwrap(), "[dir]")
}

/// Replaces bytes in the middle of a file, and leaves its length.
fn scribble(path: &Path, at: usize, text: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + text.len()].copy_from_slice(text);
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_file_is_a_header_and_a_line_for_each_append() {
    let (dir, store) = store();
    store.append("a/b", 0, &[fixed("one")]).await.unwrap();
    store.append("a/b", 1, &[fixed("two"), fixed("three")]).await.unwrap();
    let file = fs::read_to_string(dir.path().join("a%2fb.jsonl")).unwrap();
    insta::assert_snapshot!(file, @r#"
    {"format":"agent-session","version":1,"id":"a/b"}
    {"id":"00000000-0000-0000-0000-000000000007","run":"00000000-0000-0000-0000-000000000000","author":"agent","messages":[{"role":"assistant","contents":[{"text":"one"}]}]}
    [{"id":"00000000-0000-0000-0000-000000000007","run":"00000000-0000-0000-0000-000000000000","author":"agent","messages":[{"role":"assistant","contents":[{"text":"two"}]}]},{"id":"00000000-0000-0000-0000-000000000007","run":"00000000-0000-0000-0000-000000000000","author":"agent","messages":[{"role":"assistant","contents":[{"text":"three"}]}]}]
    "#);
}

#[tokio::test]
async fn nothing_is_written_without_an_event_to_write() {
    let (dir, store) = store();
    store.append("a", 0, &[]).await.unwrap();
    store.append("a", 3, &[said("too early")]).await.unwrap_err();
    store.load("a").await.unwrap();
    store.delete("a").await.unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_store_is_found_again() {
    let (dir, store) = store();
    let log = [said("one"), said("two")];
    store.append("a", 0, &log).await.unwrap();
    drop(store);
    let store = JsonlStore::open(dir.path()).unwrap();
    assert_eq!(store.load("a").await.unwrap(), fold(&log));
    assert_eq!(store.list().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn the_directory_is_created_with_its_parents() {
    let dir = tempfile::tempdir().unwrap();
    let store = JsonlStore::open(dir.path().join("x/y")).unwrap();
    store.append("a", 0, &[said("one")]).await.unwrap();
    assert!(dir.path().join("x/y/a.jsonl").is_file());
    assert_eq!(shown_debug(&store, dir.path()), r#"JsonlStore { dir: "[dir]/x/y" }"#);
}

fn shown_debug(store: &JsonlStore, dir: &Path) -> String {
    format!("{store:?}").replace(dir.to_str().unwrap(), "[dir]")
}

#[tokio::test]
async fn other_files_in_the_directory_are_left_alone() {
    let (dir, store) = store();
    fs::write(dir.path().join("README.md"), "mine").unwrap();
    fs::write(dir.path().join("Not an id.jsonl"), "mine").unwrap();
    fs::create_dir(dir.path().join("more")).unwrap();
    store.append("a", 0, &[said("one")]).await.unwrap();
    assert_eq!(store.list().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn handles_on_one_directory_see_each_other() {
    let (dir, one) = store();
    let two = JsonlStore::open(dir.path()).unwrap();
    let log = [said("one"), said("two"), said("three")];
    assert_eq!(one.append("a", 0, &log[..1]).await.unwrap(), 1);
    assert_eq!(two.append("a", 0, &log[1..]).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(two.append("a", 1, &log[1..]).await.unwrap(), 3);
    let error = one.append("a", 1, &[said("late")]).await.unwrap_err();
    insta::assert_snapshot!(shown(&error, dir.path()), @"Conflict: append to session `a` at version 1: it is at 3; load it again");
    assert_eq!(one.load("a").await.unwrap(), fold(&log));
}

#[tokio::test]
async fn a_session_that_another_handle_deleted_begins_anew() {
    let (dir, one) = store();
    let two = JsonlStore::open(dir.path()).unwrap();
    one.append("a", 0, &[said("one"), said("two")]).await.unwrap();
    two.delete("a").await.unwrap();
    assert_eq!(one.append("a", 2, &[said("late")]).await.unwrap_err().kind(), ErrorKind::Conflict);
    let log: Vec<_> = (0..9).map(|n| said(format!("anew {n}"))).collect();
    for (version, event) in log.iter().enumerate() {
        two.append("a", version as u64, slice::from_ref(event)).await.unwrap();
    }
    // The new file is longer than the old one was, and may have its inode: the first handle must not take it for it.
    assert_eq!(one.append("a", 2, &[said("late")]).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(one.append("a", 9, &[]).await.unwrap(), 9);
    assert_eq!(one.load("a").await.unwrap(), fold(&log));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deleting_while_others_append_loses_no_later_append() {
    let (dir, _) = store();
    let path = dir.path().to_owned();
    let deleter = tokio::spawn(async move {
        for _ in 0..200 {
            JsonlStore::open(&path).unwrap().delete("a").await.unwrap();
        }
    });
    let store = JsonlStore::open(dir.path()).unwrap();
    let mut appended = 0;
    while !deleter.is_finished() {
        let version = store.load("a").await.unwrap().version;
        match store.append("a", version, &[said("text")]).await {
            Ok(new) => appended = new,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
        }
    }
    deleter.await.unwrap();
    let version = store.load("a").await.unwrap().version;
    assert!(version == appended || version == 0, "appended {appended}, found {version}");
    assert_eq!(store.append("a", version, &[said("last")]).await.unwrap(), version + 1);
    assert_eq!(store.load("a").await.unwrap().version, version + 1);
}

/// An append that knows the end of the file does not read what is before: it does not even notice that it is broken.
#[tokio::test]
async fn an_append_reads_only_what_is_new() {
    let (dir, store) = store();
    let (path, other) = (dir.path().join("a.jsonl"), JsonlStore::open(dir.path()).unwrap());
    for version in 0..5 {
        store.append("a", version, &[said(format!("text {version}"))]).await.unwrap();
    }
    assert_eq!(other.append("a", 5, &[said("by another")]).await.unwrap(), 6);
    let header = fs::read_to_string(&path).unwrap().find('\n').unwrap();
    scribble(&path, header + 1, b"broken");
    assert_eq!(store.append("a", 6, &[said("after another")]).await.unwrap(), 7);
    assert_eq!(store.append("a", 7, &[said("after itself")]).await.unwrap(), 8);
    let fresh = JsonlStore::open(dir.path()).unwrap();
    assert_eq!(fresh.append("a", 8, &[said("x")]).await.unwrap_err().kind(), ErrorKind::Store);
}

#[tokio::test]
async fn an_append_after_a_load_does_not_read_again() {
    let (dir, writer) = store();
    let path = dir.path().join("a.jsonl");
    for version in 0..3 {
        writer.append("a", version, &[said("text")]).await.unwrap();
    }
    let reader = JsonlStore::open(dir.path()).unwrap();
    reader.load("a").await.unwrap();
    let header = fs::read_to_string(&path).unwrap().find('\n').unwrap();
    scribble(&path, header + 1, b"broken");
    assert_eq!(reader.append("a", 3, &[said("more")]).await.unwrap(), 4);
}

#[tokio::test]
async fn an_append_writes_only_its_own_line() {
    let (dir, store) = store();
    let size = || fs::metadata(dir.path().join("a.jsonl")).unwrap().len();
    let event = said("text");
    let line = serde_json::to_vec(&event).unwrap().len() as u64 + 1;
    store.append("a", 0, slice::from_ref(&event)).await.unwrap();
    for version in 1..50 {
        let before = size();
        store.append("a", version, slice::from_ref(&event)).await.unwrap();
        assert_eq!(size(), before + line);
    }
}

/// Appends in batches of these sizes; after each the length of the file and the number of events.
fn filled(dir: &Path, batches: &[usize]) -> (Vec<Event>, Vec<(usize, usize)>) {
    let store = JsonlStore::open(dir).unwrap();
    let (mut log, mut ends) = (Vec::new(), Vec::new());
    for (n, size) in batches.iter().enumerate() {
        let batch: Vec<_> = (0..*size).map(|at| said(format!("text\n{n}/{at} é"))).collect();
        block_on(store.append("a", log.len() as u64, &batch)).unwrap();
        log.extend(batch);
        ends.push((usize::try_from(fs::metadata(dir.join("a.jsonl")).unwrap().len()).unwrap(), log.len()));
    }
    (log, ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_file_cut_anywhere_is_a_prefix_of_the_appends(
        batches in prop::collection::vec(1usize..4, 1..5),
        cut in any::<prop::sample::Index>(),
        warm: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, ends) = filled(dir.path(), &batches);
        let path = dir.path().join("a.jsonl");
        let store = JsonlStore::open(dir.path()).unwrap();
        if warm {
            block_on(store.load("a")).unwrap();
        }
        let whole = fs::read(&path).unwrap();
        let cut = cut.index(whole.len() + 1);
        fs::write(&path, &whole[..cut]).unwrap();

        let kept = ends.iter().rev().find(|(end, _)| *end <= cut).map_or(0, |(_, events)| *events);
        log.truncate(kept);
        prop_assert_eq!(block_on(store.load("a")).unwrap(), fold(&log));
        prop_assert_eq!(block_on(store.events("a", 0)).unwrap(), log.clone());
        let ids = if kept > 0 { vec!["a"] } else { vec![] };
        prop_assert_eq!(block_on(store.list()).unwrap(), ids);

        log.push(said("after the crash"));
        let appended = block_on(store.append("a", kept as u64, &log[kept..])).unwrap();
        prop_assert_eq!(appended, log.len() as u64);
        let fresh = JsonlStore::open(dir.path()).unwrap();
        prop_assert_eq!(block_on(fresh.load("a")).unwrap(), fold(&log));
        prop_assert_eq!(block_on(fresh.list()).unwrap(), ["a"]);
    }

    #[test]
    fn a_broken_line_is_an_error_that_names_it(
        batches in prop::collection::vec(1usize..4, 1..5),
        line in any::<prop::sample::Index>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), &batches);
        let path = dir.path().join("a.jsonl");
        let whole = fs::read_to_string(&path).unwrap();
        let line = 1 + line.index(batches.len()); // 0 is the header
        let starts: Vec<_> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
        scribble(&path, starts[line - 1] + 1, b"\0\0\0\0");
        let broken = fs::read(&path).unwrap();

        let store = JsonlStore::open(dir.path()).unwrap();
        let errors = [
            block_on(store.load("a")).unwrap_err(),
            block_on(store.events("a", 99)).unwrap_err(),
            block_on(store.append("a", 1, &[said("x")])).unwrap_err(),
        ];
        for error in errors {
            prop_assert_eq!(error.kind(), ErrorKind::Store);
            let context = error.to_string();
            prop_assert!(context.contains(path.to_str().unwrap()), "{}", context);
            prop_assert!(context.contains(&format!("line {} ", line + 1)), "{}", context);
        }
        prop_assert_eq!(fs::read(&path).unwrap(), broken);
    }
}

#[tokio::test]
async fn a_torn_line_is_never_glued_to_the_next() {
    for tail in [r#"{"id":"0199"#.to_owned(), r#"{"id":"0199"#.repeat(1000)] {
        let (dir, store) = store();
        let log = [said("one"), said("two")];
        store.append("a", 0, &log[..1]).await.unwrap();
        let path = dir.path().join("a.jsonl");
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(tail.as_bytes()).unwrap(); // by a process that crashed
        store.append("a", 1, &log[1..]).await.unwrap();
        assert!(fs::read(&path).unwrap().ends_with(b"\n"), "nothing is left of it");
        assert_eq!(store.load("a").await.unwrap(), fold(&log));
    }
}

#[tokio::test]
async fn a_session_that_was_torn_when_it_was_created_can_be_shared() {
    let (dir, one) = store();
    fs::write(dir.path().join("a.jsonl"), r#"{"format":"#).unwrap();
    assert_eq!(one.load("a").await.unwrap(), Stored::default());
    JsonlStore::open(dir.path()).unwrap().append("a", 0, &[said("by another")]).await.unwrap();
    assert_eq!(one.append("a", 1, &[said("two")]).await.unwrap(), 2);
}

/// The append waits for the lock on a file that, when it gets it, is another one under the same name.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_waited_goes_to_the_file_that_is_there_now() {
    let (dir, store) = store();
    let path = dir.path().join("a.jsonl");
    let old = said("old");
    store.append("a", 0, slice::from_ref(&old)).await.unwrap();
    let text = fs::read(&path).unwrap();
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    let late = said("late");
    let waiting = tokio::spawn({
        let (store, late) = (store.clone(), late.clone());
        async move { store.append("a", 1, &[late]).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await; // too short a wait would hide a fault, never invent one
    fs::remove_file(&path).unwrap();
    fs::write(&path, text).unwrap();
    held.unlock().unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
    assert_eq!(store.load("a").await.unwrap(), fold(&[old, late]));
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_with_a_remedy() {
    let (dir, store) = store();
    let path = dir.path().join("a.jsonl");
    store.append("a", 0, &[fixed("one")]).await.unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let (header, event) = good.split_once('\n').unwrap();
    let files = [
        ("not an event", format!("{header}\n{{\"id\":7}}\n{event}")),
        ("an empty line", format!("{good}\n")),
        ("two events on a line", format!("{header}\n{}{event}", event.trim_end())),
        ("not a header", event.to_owned()),
        ("no line at all", "no session".to_owned()),
        ("another format", good.replace("agent-session", "agent-memory")),
        ("a newer version", good.replace("\"version\":1", "\"version\":2,\"new\":true")),
        ("another session", good.replace("\"id\":\"a\"", "\"id\":\"b\"")),
    ];
    let mut report = Vec::new();
    for (what, text) in files {
        let store = JsonlStore::open(dir.path()).unwrap();
        fs::write(&path, &text).unwrap();
        let error = store.load("a").await.unwrap_err();
        report.push(format!("# {what}\n{}", shown(&error, dir.path())));
        let refused = store.append("a", 1, &[said("x")]).await.unwrap_err();
        assert_eq!(refused.to_string(), error.to_string(), "{what}");
        if !error.to_string().contains("line") || error.to_string().contains("first line") {
            assert_eq!(store.delete("a").await.unwrap_err().to_string(), error.to_string(), "{what}");
            let listed = store.list().await;
            assert_eq!(listed.err().map(|e| e.kind()), (what != "no line at all").then_some(error.kind()), "{what}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{what}");
    }
    insta::assert_snapshot!(report.join("\n"), @r#"
    # not an event
    Store: read session file `[dir]/a.jsonl`: line 2 is not an event; restore the file from a backup, or cut it off before that line to keep what came earlier
      invalid type: integer `7`, expected a formatted UUID string at line 1 column 7
    # an empty line
    Store: read session file `[dir]/a.jsonl`: line 3 is not an event; restore the file from a backup, or cut it off before that line to keep what came earlier
      EOF while parsing a value at line 2 column 0
    # two events on a line
    Store: read session file `[dir]/a.jsonl`: line 2 is not an event; restore the file from a backup, or cut it off before that line to keep what came earlier
      trailing characters at line 1 column 170
    # not a header
    Store: read session file `[dir]/a.jsonl`: its first line is not the header of a session; move the file out of the store's directory, or restore it from a backup
      missing field `format` at line 1 column 169
    # no line at all
    Store: read session file `[dir]/a.jsonl`: its first line is not the header of a session; move the file out of the store's directory, or restore it from a backup
      expected ident at line 1 column 2
    # another format
    Store: read session file `[dir]/a.jsonl`: its first line is not the header of a session; move the file out of the store's directory, or restore it from a backup
    # a newer version
    Unsupported: read session file `[dir]/a.jsonl`: it has version 2 of the format, and this program knows 1; nothing was changed: use a newer program, or move the file out of the store's directory
    # another session
    Store: read session file `[dir]/a.jsonl`: it holds another session, "b"; undo the file's renaming or, if it never was renamed, use another id
    "#);
}

#[tokio::test]
async fn a_session_with_a_broken_line_can_be_deleted() {
    let (dir, store) = store();
    store.append("a", 0, &[said("one"), said("two")]).await.unwrap();
    let path = dir.path().join("a.jsonl");
    let header = fs::read_to_string(&path).unwrap().find('\n').unwrap();
    scribble(&path, header + 1, b"broken");
    store.delete("a").await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn long_ids_are_told_by_their_headers() {
    let (dir, store) = store();
    let (one, two) = ("x/".repeat(500) + "1", "x/".repeat(500) + "2");
    store.append(&one, 0, &[said("one")]).await.unwrap();
    store.append(&two, 0, &[said("two")]).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [&*one, &two]);
    assert_eq!(store.list_page("x/", Some(&one), 1).await.unwrap(), [&*two]);

    // As if both had one hash: the second's file has the first's name.
    let file_of = |text: &str| {
        let mut files = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        files.find(|path| fs::read_to_string(path).unwrap().contains(text)).unwrap()
    };
    let (first, second) = (file_of("\"one\""), file_of("\"two\""));
    fs::rename(&second, &first).unwrap();
    let shortened = |error: agent_core::Error| {
        let name = first.file_name().unwrap().to_str().unwrap();
        shown(&error, dir.path()).replace(name, "[name]").replace(&"x/".repeat(500), "[long]")
    };
    let error = shortened(store.load(&one).await.unwrap_err());
    insta::assert_snapshot!(error, @r#"Store: read session file `[dir]/[name]`: it holds another session, "[long]2"; undo the file's renaming or, if it never was renamed, use another id"#);
    assert_eq!(shortened(store.append(&one, 1, &[said("x")]).await.unwrap_err()), error);
    assert_eq!(shortened(store.delete(&one).await.unwrap_err()), error);
    assert_eq!(shortened(store.list().await.unwrap_err()), error);
}

#[cfg(unix)] // the causes are the operating system's words
#[tokio::test]
async fn what_is_no_file_or_directory_is_an_error() {
    let (dir, store) = store();
    let mut report = Vec::new();
    fs::create_dir(dir.path().join("a.jsonl")).unwrap();
    for error in [
        store.load("a").await.unwrap_err(),
        store.append("a", 0, &[said("x")]).await.unwrap_err(),
        store.delete("a").await.unwrap_err(),
        store.list().await.unwrap_err(),
    ] {
        report.push(shown(&error, dir.path()));
    }
    fs::write(dir.path().join("file"), "").unwrap();
    report.push(shown(&JsonlStore::open(dir.path().join("file")).unwrap_err(), dir.path()));
    fs::remove_dir_all(dir.path()).unwrap();
    for error in [store.append("a", 0, &[said("x")]).await.unwrap_err(), store.list().await.unwrap_err()] {
        report.push(shown(&error, dir.path()));
    }
    insta::assert_snapshot!(report.join("\n"), @"
    Store: open session file `[dir]/a.jsonl`
      is a directory
    Store: open session file `[dir]/a.jsonl`
      Is a directory (os error 21)
    Store: open session file `[dir]/a.jsonl`
      Is a directory (os error 21)
    Store: open session file `[dir]/a.jsonl`
      is a directory
    Store: open session directory `[dir]/file`
      File exists (os error 17)
    Store: open session file `[dir]/a.jsonl`
      No such file or directory (os error 2)
    Store: list session directory `[dir]`
      No such file or directory (os error 2)
    ");
}

#[tokio::test]
async fn an_event_that_could_not_be_loaded_again_is_refused() {
    let (dir, store) = store();
    let mut deep = json!("bottom");
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let event = Event { state: vec![agent_core::StateChange::Set { key: "deep".into(), value: deep }], ..said("x") };
    let error = store.append("a", 0, &[event]).await.unwrap_err();
    let text = shown(&error, dir.path());
    let (text, _where) = text.split_once(" at line").unwrap();
    insta::assert_snapshot!(text, @"
    Store: append events that could not be read again as JSON
      recursion limit exceeded
    ");
    assert_eq!(store.load("a").await.unwrap(), Stored::default());
}

#[tokio::test]
async fn a_session_s_file_is_read_wherever_it_lies() {
    let (dir, store) = store();
    let events = [fixed("one"), fixed("two")];
    store.append("chat/42", 0, &events).await.unwrap();
    let moved = dir.path().join("a copy");
    fs::rename(dir.path().join("chat%2f42.jsonl"), &moved).unwrap();
    assert_eq!(JsonlStore::read_file(&moved).unwrap(), ("chat/42".to_owned(), events.to_vec()));

    let whole = fs::read_to_string(&moved).unwrap();
    fs::write(&moved, &whole[..whole.len() - 1]).unwrap();
    let (_, left) = JsonlStore::read_file(&moved).unwrap();
    assert_eq!(left, Vec::new(), "a torn line is left out");
    assert_eq!(fs::read_to_string(&moved).unwrap(), whole[..whole.len() - 1], "and nothing is changed");

    let error = JsonlStore::read_file(dir.path().join("absent")).unwrap_err();
    insta::assert_snapshot!(shown(&error, dir.path()), @"Store: read session file `[dir]/absent`: there is no such file");
}

/// Keeps the warnings of all threads.
struct Warnings;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Vec::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            fields.push(format!("{field}={value:?}"));
        });
        WARNINGS.lock().unwrap().push(fields.join(" "));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_torn_line_is_warned_of_with_its_file_and_offset() {
    tracing::subscriber::set_global_default(Warnings).unwrap();
    let (dir, store) = store();
    let path = dir.path().join("a.jsonl");
    fs::write(&path, r#"{"format":"agent-se"#).unwrap();
    assert_eq!(store.load("a").await.unwrap(), Stored::default());
    store.append("a", 0, &[fixed("one")]).await.unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"[{").unwrap();
    store.events("a", 0).await.unwrap();
    store.append("a", 1, &[fixed("two")]).await.unwrap();
    store.load("a").await.unwrap();
    let dir = dir.path().to_str().unwrap();
    let warnings: Vec<_> = WARNINGS.lock().unwrap().iter().filter(|w| w.contains(dir)).cloned().collect();
    insta::assert_snapshot!(warnings.join("\n").replace(dir, "[dir]"), @"
    message=dropped a torn last line: a write was interrupted at this byte offset or later file=[dir]/a.jsonl offset=0
    message=dropped a torn last line: a write was interrupted at this byte offset or later file=[dir]/a.jsonl offset=0
    message=dropped a torn last line: a write was interrupted at this byte offset or later file=[dir]/a.jsonl offset=218
    message=dropped a torn last line: a write was interrupted at this byte offset or later file=[dir]/a.jsonl offset=218
    ");
}

// Other processes: this program again, with what to do in its environment.

const CHILD: &str = "AGENT_CORE_TEST_CHILD";
const DIR: &str = "AGENT_CORE_TEST_DIR";

/// This program again, doing what [`another_process`] has under this name.
fn another(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "another_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, role).env(DIR, dir).stdout(Stdio::piped());
    command
}

#[tokio::test]
#[ignore = "run by the other tests, as another process"]
async fn another_process() {
    let (Ok(role), Ok(dir)) = (env::var(CHILD), env::var(DIR)) else { return };
    let store = JsonlStore::open(PathBuf::from(dir)).unwrap();
    match role.split_once(' ') {
        Some(("compete", writer)) => compete(&store, writer).await,
        Some(("fill", _)) => append_until_killed(&store).await,
        Some(("overfill", _)) => overfill(&store).await,
        Some(_) | None => panic!("unknown role {role}"),
    }
}

const WRITERS: usize = 4;
const EACH: usize = 25;
const SESSIONS: [&str; 3] = ["one", "Two", "x/3"];

async fn compete(store: &JsonlStore, writer: &str) {
    while store.load("go").await.unwrap().version == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let mut versions = [0; SESSIONS.len()];
    for n in 0..EACH * SESSIONS.len() {
        let (at, id) = (n % SESSIONS.len(), SESSIONS[n % SESSIONS.len()]);
        let event = said(format!("{writer}/{n}"));
        versions[at] = loop {
            match store.append(id, versions[at], slice::from_ref(&event)).await {
                Ok(version) => break version,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
            }
            println!("lost");
            versions[at] = store.load(id).await.unwrap().version;
        };
        println!("won {at} {} {}", versions[at], event.id);
    }
}

#[test]
fn processes_that_compete_lose_no_event_and_share_no_version() {
    let (dir, store) = store();
    let writers: Vec<Child> =
        (0..WRITERS).map(|writer| another(&format!("compete {writer}"), dir.path()).spawn().unwrap()).collect();
    block_on(store.append("go", 0, &[said("go")])).unwrap();
    let mut won = HashSet::new();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8(output.stdout).unwrap();
        won.extend(text.lines().filter_map(|line| {
            let mut words = line.split_once("won ")?.1.split(' ').map(str::to_owned);
            Some((words.next()?, words.next()?, words.next()?))
        }));
    }
    let mut stored = HashSet::new();
    for (at, id) in SESSIONS.iter().enumerate() {
        let log = block_on(store.events(id, 0)).unwrap();
        assert_eq!(log.len(), WRITERS * EACH, "{id}");
        assert_eq!(block_on(store.load(id)).unwrap(), fold(&log));
        stored.extend(log.iter().zip(1..).map(|(event, version)| {
            let version: u64 = version;
            (at.to_string(), version.to_string(), event.id.to_string())
        }));
    }
    assert_eq!(won, stored, "each stored event was won once, at the version that its writer was told");
}

/// How many events the append at this version has.
fn batch(version: u64) -> u64 {
    1 + version % 3
}

/// Long enough that a kill may come in the middle of the write.
fn numbered(n: u64) -> Event {
    said(format!("{n} {}", "x".repeat(300_000)))
}

async fn append_until_killed(store: &JsonlStore) {
    let mut version = store.load("a").await.unwrap().version;
    loop {
        let events: Vec<_> = (version..version + batch(version)).map(numbered).collect();
        version = store.append("a", version, &events).await.unwrap();
        println!("stored {version}");
    }
}

#[test]
fn a_process_killed_while_it_appends_leaves_whole_appends() {
    let (dir, _) = store();
    for kill in 0..12 {
        let mut child = another("fill up", dir.path()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut told = output.lines().map_while(Result::ok).filter_map(|line| {
            let (_, version) = line.split_once("stored ")?;
            Some(version.parse::<u64>().unwrap())
        });
        let mut last = told.next().unwrap();
        thread::sleep(Duration::from_micros(kill * 1700));
        child.kill().unwrap();
        child.wait().unwrap();
        last = told.last().unwrap_or(last);

        let store = JsonlStore::open(dir.path()).unwrap();
        let log = block_on(store.events("a", 0)).unwrap();
        let version = log.len() as u64;
        assert!(version == last || version == last + batch(last), "told {last}, found {version}");
        for (n, event) in log.iter().enumerate() {
            assert!(event.messages[0].text().starts_with(&format!("{n} ")), "event {n}");
        }
    }
}

async fn overfill(store: &JsonlStore) {
    let log = [said("small"), said("also small")];
    store.append("a", 0, &log[..1]).await.unwrap();
    let dir = PathBuf::from(env::var(DIR).unwrap());
    let before = fs::read(dir.join("a.jsonl")).unwrap();
    let error = store.append("a", 1, &[said("x".repeat(1 << 20))]).await.unwrap_err();
    assert_eq!(fs::read(dir.join("a.jsonl")).unwrap(), before, "what was written of it is taken back");
    println!("refused {}", shown(&error, &dir).replace('\n', " "));
    store.append("a", 1, &log[1..]).await.unwrap();
    assert_eq!(store.load("a").await.unwrap(), fold(&log));
}

/// The limit on a file's size stands in for a full disk: the write succeeds in part, then fails.
#[cfg(unix)]
#[test]
fn an_append_that_finds_no_space_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let inner = another("overfill it", dir.path());
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]).arg(inner.get_program()).args(inner.get_args());
    shell.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let refused = text.lines().find_map(|line| line.split_once("refused ")).unwrap().1;
    insta::assert_snapshot!(refused, @"Store: append to session file `[dir]/a.jsonl`   File too large (os error 27)");
}
