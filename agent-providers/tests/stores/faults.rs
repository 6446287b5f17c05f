//! What goes wrong with a database, and what is said of it.

use std::{fs, time::Duration};

use agent_core::{ErrorKind, SessionStore};
use agent_providers::{PostgresStore, PostgresStoreOptions, SqliteStore, SqliteStoreOptions};
use futures::future::join_all;

use crate::{
    places::{client, postgres, said, schema, sqlite},
    postgres::PostgresServer,
};

fn shown(error: &agent_core::Error) -> String {
    let passes = if error.is_transient() { " (transient)" } else { "" };
    format!("{:?}{passes}: {error:#}", error.kind())
}

#[tokio::test]
async fn a_file_that_cannot_be_a_sqlite_store_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("text"), "not a database, but long enough to be looked at as if it were one".repeat(20)).unwrap();
    rusqlite::Connection::open(at("other")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    sqlite(&at("newer"), 1);
    rusqlite::Connection::open(at("newer")).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    fs::create_dir(at("directory")).unwrap();
    let mut report = Vec::new();
    for name in ["text", "other", "newer", "directory", "absent/file", ""] {
        let file = if name.is_empty() { name.into() } else { at(name) };
        let before = fs::read(&file).ok();
        let error = SqliteStore::open(&file, SqliteStoreOptions::default()).unwrap_err();
        report.push(shown(&error).replace(dir.path().to_str().unwrap(), "[dir]"));
        assert_eq!(fs::read(&file).ok(), before, "{name}");
    }
    insta::assert_snapshot!(report.join("\n"), @r"
    Store: open session database `[dir]/text`: file is not a database: Error code 26: file is not a database
    Store: open session database `[dir]/other`: it is another program's; choose another file
    Unsupported: open session database `[dir]/newer`: it has version 99 of the tables, and this program knows 1; nothing was changed: use a newer program
    Store: open session database `[dir]/directory`: unable to open database file: [dir]/directory: Error code 14: unable to open database file
    Store: open session database `[dir]/absent/file`: unable to open database file: [dir]/absent/file: Error code 14: unable to open database file
    Store: open session database ``: cannot make an empty path absolute
    ");
}

#[tokio::test]
async fn a_path_is_a_path_whatever_sqlite_makes_of_it() {
    let dir = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory"] {
        let store = sqlite(&dir.path().join(name), 1);
        store.append("a", 0, &[said("hi")]).await.unwrap();
        assert!(dir.path().join(name).is_file(), "{name}");
    }
}

#[tokio::test]
async fn a_sqlite_file_that_others_keep_locked_is_a_transient_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions.db");
    let options = SqliteStoreOptions { busy_timeout: Duration::from_millis(10), ..Default::default() };
    let store = SqliteStore::open(&file, options).unwrap();
    store.append("a", 0, &[said("one")]).await.unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append("a", 1, &[said("two")]).await.unwrap_err();
    let told = shown(&error).replace(dir.path().to_str().unwrap(), "[dir]");
    insta::assert_snapshot!(told, @"Store (transient): append to a session in session database `[dir]/sessions.db`: others kept it locked for 10 ms; try again, raise `busy_timeout`, or write from fewer processes: database is locked: Error code 5: database is locked");
    assert_eq!(store.load("a").await.unwrap().version, 1, "readers do not wait for a writer");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(store.append("a", 1, &[said("two")]).await.unwrap(), 2);
}

#[tokio::test]
async fn a_wait_without_an_end_is_one_that_sqlite_can_count() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteStoreOptions { busy_timeout: Duration::MAX, ..Default::default() };
    let store = SqliteStore::open(dir.path().join("sessions.db"), options).unwrap();
    assert_eq!(store.append("a", 0, &[said("one")]).await.unwrap(), 1);
}

/// Sessions whose first, middle and last event is gone.
async fn lose_events(store: &impl SessionStore, delete: impl AsyncFn(i64)) -> String {
    let mut report = Vec::new();
    for (id, lost) in [("a", 1), ("b", 2), ("c", 3)] {
        store.append(id, 0, &["one", "two", "three"].map(said)).await.unwrap();
        delete(lost).await;
        report.push(shown(&store.load(id).await.unwrap_err()));
        let events = store.events(id, 0).await;
        report.push(events.map_or_else(|error| shown(&error), |events| format!("the first {}", events.len())));
        store.delete(id).await.unwrap();
    }
    report.join("\n")
}

#[tokio::test]
async fn a_session_whose_events_are_not_all_there_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions.db");
    let delete = async |number: i64| {
        let connection = rusqlite::Connection::open(&file).unwrap();
        assert_eq!(connection.execute("DELETE FROM events WHERE number = ?1", [number]).unwrap(), 1);
    };
    let report = lose_events(&sqlite(&file, 100), delete).await;
    insta::assert_snapshot!(report, @"
    Store: load session `a`: not all of its events are there; restore them from a backup, or delete the session
    Store: load session `a`: not all of its events are there; restore them from a backup, or delete the session
    Store: load session `b`: not all of its events are there; restore them from a backup, or delete the session
    Store: load session `b`: not all of its events are there; restore them from a backup, or delete the session
    Store: load session `c`: not all of its events are there; restore them from a backup, or delete the session
    the first 2
    ");

    let Some(server) = PostgresServer::start() else { return };
    let other = client(&server.url()).await;
    let delete = async |number: i64| {
        assert_eq!(other.execute("DELETE FROM agent_events WHERE number = $1", &[&number]).await.unwrap(), 1);
    };
    assert_eq!(lose_events(&postgres(&server.url(), 100).await, delete).await, report);
}

#[tokio::test]
async fn several_may_make_the_tables_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions.db");
    let opened = (0..8).map(|_| {
        tokio::task::spawn_blocking({
            let file = file.clone();
            move || sqlite(&file, 1)
        })
    });
    assert_eq!(join_all(opened).await.into_iter().flatten().count(), 8);

    let Some(server) = PostgresServer::start() else { return };
    let url = schema(&server).await;
    let connected = (0..8).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { postgres(&url, 1).await })
    });
    assert_eq!(join_all(connected).await.into_iter().flatten().count(), 8);
    let rows = client(&url).await.query("SELECT version FROM agent_store", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn a_role_that_may_not_create_tables_may_use_those_that_are_there() {
    let Some(server) = PostgresServer::start() else { return };
    postgres(&server.url(), 100).await;
    let grants = "CREATE ROLE app LOGIN; GRANT SELECT ON agent_store TO app; \
                  GRANT SELECT, INSERT, UPDATE, DELETE ON agent_sessions, agent_events, agent_snapshots TO app; \
                  REVOKE CREATE ON SCHEMA public FROM PUBLIC";
    client(&server.url()).await.batch_execute(grants).await.unwrap();
    let store = postgres(&server.url().replace("tester", "app"), 1).await;
    assert_eq!(store.append("a", 0, &[said("hi")]).await.unwrap(), 1);
    assert_eq!(store.load("a").await.unwrap().version, 1);
    store.delete("a").await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_be_used_says_why_and_keeps_the_password() {
    let Some(server) = PostgresServer::start() else { return };
    let ready = server.url();
    let url = |from: &str, to: &str| ready.replace("tester@", "tester:hush@").replace(from, to);
    let newer = schema(&server).await.replace("tester@", "tester:hush@");
    PostgresStore::connect(newer.as_str(), PostgresStoreOptions::default()).await.unwrap();
    client(&newer).await.batch_execute("UPDATE agent_store SET version = 99").await.unwrap();
    let mut report = Vec::new();
    for url in [
        "postgres://tester:hush@127.0.0.1:hush/postgres".to_owned(),
        "postgres://tester@127.0.0.1/?hush=1".to_owned(),
        url("/postgres", "/absent"),
        url("127.0.0.1", "127.0.0.2"),
        url("sslmode=disable", "sslmode=require"),
        url("", "").replace("tester", "nobody"),
        newer,
    ] {
        let error = PostgresStore::connect(url, PostgresStoreOptions::default()).await.unwrap_err();
        assert!(!format!("{error:?} {error:#}").contains("hush"), "{error:?}");
        report.push(shown(&error));
    }
    let port = &server.port.to_string();
    insta::assert_snapshot!(report.join("\n").replace(port, "PORT"), @r#"
    Invalid: read the URL of a PostgreSQL database: it is none; write postgres://USER:PASSWORD@HOST/DATABASE, with %XX for special characters, and sslmode=disable, prefer or require, if any
    Invalid: read the URL of a PostgreSQL database: it is none; write postgres://USER:PASSWORD@HOST/DATABASE, with %XX for special characters, and sslmode=disable, prefer or require, if any
    Store: connect to database `absent` at 127.0.0.1:PORT: db error: FATAL: database "absent" does not exist
    Store (transient): connect to database `postgres` at 127.0.0.2:PORT: error connecting to server: Connection refused (os error 111)
    Store: connect to database `postgres` at 127.0.0.1:PORT; check the URL's `sslmode`, and who signed its certificate: error performing TLS handshake: server does not support TLS
    Store: connect to database `postgres` at 127.0.0.1:PORT: db error: FATAL: role "nobody" does not exist
    Unsupported: open the session store in database `postgres` at 127.0.0.1:PORT: it has version 99 of the tables, and this program knows 1; nothing was changed: use a newer program
    "#);

    let store = PostgresStore::connect(url("", ""), PostgresStoreOptions::default()).await.unwrap();
    let shown = format!("{store:?}").replace(port, "PORT");
    insta::assert_snapshot!(shown, @"PostgresStore { database: \"database `postgres` at 127.0.0.1:PORT\", options: PostgresStoreOptions { snapshot_every: Some(100), connections: 8, wait: 30s } }");
}

#[tokio::test]
async fn a_connection_that_breaks_is_replaced() {
    let Some(server) = PostgresServer::start() else { return };
    let store = postgres(&server.url(), 100).await;
    store.append("a", 0, &[said("one")]).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    client(&server.url()).await.batch_execute(end).await.unwrap();
    // The pool may not know yet.
    let mut version = store.append("a", 1, &[said("two")]).await;
    while let Err(error) = &version {
        assert!(error.kind() == ErrorKind::Store && error.is_transient(), "{error:?}");
        assert!(error.to_string().contains("may have happened or not"), "{error}");
        version = store.append("a", 1, &[said("two")]).await;
    }
    assert_eq!(version.unwrap(), 2);
}

#[tokio::test]
async fn what_a_server_refuses_did_not_happen_and_what_it_broke_off_may_have() {
    let Some(server) = PostgresServer::start() else { return };
    let store = postgres(&server.url(), 100).await;
    store.append("a", 0, &[said("one")]).await.unwrap();
    let other = client(&server.url()).await;
    let raise = |code: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS 'BEGIN RAISE ''no'' USING ERRCODE = ''{code}''; END' \
             LANGUAGE plpgsql; DROP TRIGGER IF EXISTS refuse ON agent_events; \
             CREATE TRIGGER refuse BEFORE INSERT OR DELETE ON agent_events FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    };
    let mut report = Vec::new();
    for code in ["23000", "57014", "57P01"] {
        other.batch_execute(&raise(code)).await.unwrap();
        report.push(shown(&store.append("a", 1, &[said("two")]).await.unwrap_err()));
        report.push(shown(&store.delete("a").await.unwrap_err()));
    }
    insta::assert_snapshot!(report.join("\n").replace(&server.port.to_string(), "PORT"), @"
    Store: append to a session in database `postgres` at 127.0.0.1:PORT: db error: ERROR: no
    Store: delete a session in database `postgres` at 127.0.0.1:PORT: db error: ERROR: no
    Store (transient): append to a session in database `postgres` at 127.0.0.1:PORT: db error: ERROR: no
    Store (transient): delete a session in database `postgres` at 127.0.0.1:PORT: db error: ERROR: no
    Store (transient): append to a session in database `postgres` at 127.0.0.1:PORT: the connection broke, so this may have happened or not; load again before the next try: db error: ERROR: no
    Store (transient): delete a session in database `postgres` at 127.0.0.1:PORT: db error: ERROR: no
    ");
}

#[tokio::test]
async fn a_pool_that_has_no_connection_left_says_so() {
    let Some(server) = PostgresServer::start() else { return };
    let options = PostgresStoreOptions {
        connections: 1.try_into().unwrap(),
        wait: Duration::from_millis(200),
        ..Default::default()
    };
    let store = PostgresStore::connect(server.url(), options).await.unwrap();
    let other = client(&server.url()).await;
    other.batch_execute("BEGIN; LOCK TABLE agent_sessions").await.unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.append("a", 0, &[said("one")]).await }
    });
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while other.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    let error = store.load("a").await.unwrap_err();
    let told = shown(&error).replace(&server.port.to_string(), "PORT");
    insta::assert_snapshot!(told, @"Store (transient): wait for a connection to database `postgres` at 127.0.0.1:PORT: all 1 are in use; try again, or raise `connections`");
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), 1);
}
