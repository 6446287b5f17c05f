//! `cargo xtask inspect`, run as a program.

mod page;
mod sample;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// What the program prints for these arguments, run in this directory.
fn inspect(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.arg("inspect").args(args).current_dir(dir).output().unwrap()
}

/// What it prints if it succeeds.
fn shown(dir: &Path, args: &[&str]) -> String {
    let output = inspect(dir, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it says if it fails.
fn refused(dir: &Path, args: &[&str]) -> String {
    let output = inspect(dir, args);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    String::from_utf8(output.stderr).unwrap().trim().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_loop_is_a_timeline_with_its_iterations_and_repeats() {
    let dir = TempDir::new().unwrap();
    sample::haiku(dir.path()).await;
    insta::assert_snapshot!(shown(dir.path(), &["haiku.jsonl", "--width", "100"]), @r#"
    session haiku
    18 events · 2 runs · 1h 4s · 1,516 tokens: 1,400 in (300 cached), 116 out (12 thoughts)

    run 1 at 2025-11-30T20:02:13Z
     1   +0.000s  user    request    Write a haiku about loops.
     2   +0.250s  refine  loop       refine begins
                  ╭ refine #1
     3   +0.500s  │ writer  call       count(line: "An old silent pond")
                  │         tokens     120 in, 15 out
     4   +0.750s  │ writer  result     count → 5
     5   +1.000s  │ writer  answer     An old silent pond
                  │         state      haiku = "An old silent pond"
                  │         tokens     150 in, 8 out
     6   +1.250s  refine  verdict    refine #1: decided by checker · 293 tokens · 0 ms
                          feedback   Five, seven, five. Say DONE once the count is right.
                  ╭ refine #2
     7   +1.500s  │ writer  call       ⟳2 (as 3) count(line: "An old silent pond")
                  │         tokens     210 in, 15 out
     8   +1.750s  │ writer  result     ⟳2 (as 4) count → 5
     9   +2.000s  │ writer  answer     ⟳2 (as 5) An old silent pond
                  │         state      haiku = "An old silent pond"
                  │         tokens     240 in, 8 out
    10   +2.250s  refine  verdict    ⟳2 (as 6) refine #2: decided by checker · 473 tokens · 0 ms
                          feedback   ⟳2 (as 6) Five, seven, five. Say DONE once the count is right.
                  ╭ refine #3
    11   +2.500s  │ writer  call       publish(lines: 3, place: "board")
                  │         tokens     300 in, 40 out
    12   +2.750s  │ writer  approval?  publish(lines: 3, place: "board")
    13   +3.000s  refine  loop       refine ends, awaiting approval

    run 2 at 2025-11-30T21:02:16Z
    14  +1:00:03  user    approved   publish(lines: 3, place: "board")
    15  +1:00:03  refine  loop       refine goes on
                  ╭ refine #3
    16  +1:00:03  │ writer  result     publish → published
    17  +1:00:04  │ writer  thoughts   It is out; that was the last thing to do.
                  │         answer     An old silent pond A frog jumps into the pond — Splash! Silence …
                  │         state      haiku = "An old silent pond\nA frog jumps into the pond —\nSplas…
                  │         tokens     380 in (300 cached), 30 out (12 thoughts)
    18  +1:00:04  refine  verdict    refine #3: nobody objected · 750 tokens · 0 ms
                          loop       refine ends, completed

    loop refine  completed  3 iterations · 1,516 tokens · 0 ms
      #1 · 293 tokens · 0 ms · checker: Five, seven, five. Say DONE once the count is right.
      #2 · 473 tokens · 0 ms · checker: Five, seven, five. Say DONE once the count is right.
      #3 · 750 tokens · 0 ms

    long texts are cut; --full shows them whole
    "#);
}

#[tokio::test(start_paused = true)]
async fn nested_loops_show_where_each_event_belongs() {
    let dir = TempDir::new().unwrap();
    sample::nested(dir.path()).await;
    insta::assert_snapshot!(shown(dir.path(), &["nested.jsonl", "--width", "90"]), @r#"
    session nested
    14 events · 1 run · 3s 200ms · 0 tokens: 0 in, 0 out

    run 1 at 2025-11-30T20:02:13Z
     1   +0.000s  user   request    Fix it.
     2   +0.250s  ship   loop       ship begins
                  ╭ ship #1
     3   +0.500s  │ fix    loop       fix begins
                  │ ╭ fix #1
     4   +0.750s  │ │ coder  answer     try one
     5   +1.000s  │ fix    verdict    fix #1: decided by tests · 0 tokens · 0 ms
                  │        feedback   2 of 3 tests fail
                  │ ╭ fix #2
     6   +1.250s  │ │ coder  answer     try two
     7   +1.500s  │ fix    verdict    fix #2: decided by tests · 0 tokens · 0 ms
                  │        loop       fix ends, iteration limit reached, by tests: 1 of 3 tes…
     8   +1.750s  ship   rewind     keeps 1 of 4 messages
                         verdict    ship #1: decided by review · 0 tokens · 0 ms
                         feedback   ## Feedback - no
                  ╭ ship #2
     9   +2.000s  │ fix    loop       fix begins
                  │ ╭ fix #1
    10   +2.250s  │ │ coder  answer     try three
    11   +2.500s  │ fix    verdict    fix #1: decided by tests · 0 tokens · 0 ms
                  │        feedback   ⟳2 (as 5) 2 of 3 tests fail
                  │ ╭ fix #2
    12   +2.750s  │ │ coder  answer     good enough
                  │ │        state      quality = 3
                  │ │        state      log += "gave up"
                  │ │        escalates  asks the enclosing loop to end
    13   +3.000s  │ fix    verdict    fix #2: decided by coder · 0 tokens · 0 ms
                  │        loop       fix ends, completed, by coder
    14   +3.250s  ship   verdict    ship #2: decided by review · 0 tokens · 0 ms
                         loop       ship ends, iteration limit reached, by review: no

    loop fix  completed  2 iterations · 0 tokens · 0 ms
      by coder
      #1 · 0 tokens · 0 ms · tests: 2 of 3 tests fail
      #2 · 0 tokens · 0 ms · coder

    loop ship  iteration limit reached  2 iterations · 0 tokens · 0 ms
      by review: no
      #1 · 0 tokens · 0 ms · review: no
      #2 · 0 tokens · 0 ms · review: no

    long texts are cut; --full shows them whole
    "#);
}

#[tokio::test(start_paused = true)]
async fn long_texts_are_wrapped_when_all_is_asked_for() {
    let dir = TempDir::new().unwrap();
    sample::haiku(dir.path()).await;
    insta::assert_snapshot!(shown(dir.path(), &["haiku.jsonl", "--width", "70", "--full"]), @r#"
    session haiku
    18 events · 2 runs · 1h 4s · 1,516 tokens: 1,400 in (300 cached), 116 out (12 thoughts)

    run 1 at 2025-11-30T20:02:13Z
     1   +0.000s  user    request    Write a haiku about loops.
     2   +0.250s  refine  loop       refine begins
                  ╭ refine #1
     3   +0.500s  │ writer  call       count(line: "An old silent pond")
                  │         tokens     120 in, 15 out
     4   +0.750s  │ writer  result     count → 5
     5   +1.000s  │ writer  answer     An old silent pond
                  │         state      haiku = "An old silent pond"
                  │         tokens     150 in, 8 out
     6   +1.250s  refine  verdict    refine #1: decided by checker · 293
                                     tokens · 0 ms
                          feedback   Five, seven, five. Say DONE once the
                                     count is right.
                  ╭ refine #2
     7   +1.500s  │ writer  call       ⟳2 (as 3) count(line: "An old
                  │                    silent pond")
                  │         tokens     210 in, 15 out
     8   +1.750s  │ writer  result     ⟳2 (as 4) count → 5
     9   +2.000s  │ writer  answer     ⟳2 (as 5) An old silent pond
                  │         state      haiku = "An old silent pond"
                  │         tokens     240 in, 8 out
    10   +2.250s  refine  verdict    ⟳2 (as 6) refine #2: decided by
                                     checker · 473 tokens · 0 ms
                          feedback   ⟳2 (as 6) Five, seven, five. Say DONE
                                     once the count is right.
                  ╭ refine #3
    11   +2.500s  │ writer  call       publish(lines: 3, place: "board")
                  │         tokens     300 in, 40 out
    12   +2.750s  │ writer  approval?  publish(lines: 3, place: "board")
    13   +3.000s  refine  loop       refine ends, awaiting approval

    run 2 at 2025-11-30T21:02:16Z
    14  +1:00:03  user    approved   publish(lines: 3, place: "board")
    15  +1:00:03  refine  loop       refine goes on
                  ╭ refine #3
    16  +1:00:03  │ writer  result     publish → published
    17  +1:00:04  │ writer  thoughts   It is out; that was the last thing
                  │                    to do.
                  │         answer     An old silent pond
                  │                    A frog jumps into the pond —
                  │                    Splash! Silence again. DONE
                  │         state      haiku = "An old silent pond\nA frog
                  │                    jumps into the pond —\nSplash!
                  │                    Silence again. DONE"
                  │         tokens     380 in (300 cached), 30 out (12
                  │                    thoughts)
    18  +1:00:04  refine  verdict    refine #3: nobody objected · 750
                                     tokens · 0 ms
                          loop       refine ends, completed

    loop refine  completed  3 iterations · 1,516 tokens · 0 ms
      #1 · 293 tokens · 0 ms · checker: Five, seven, five. Say DONE once
      the count is right.
      #2 · 473 tokens · 0 ms · checker: Five, seven, five. Say DONE once
      the count is right.
      #3 · 750 tokens · 0 ms
    "#);
}

#[tokio::test(start_paused = true)]
async fn no_line_is_wider_than_asked() {
    let dir = TempDir::new().unwrap();
    sample::haiku(dir.path()).await;
    for width in [60, 80, 200] {
        let text = shown(dir.path(), &["haiku.jsonl", "--width", &width.to_string()]);
        let wide: Vec<&str> = text.lines().skip(2).filter(|line| line.chars().count() > width).collect();
        assert_eq!(wide, Vec::<&str>::new(), "at {width}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_cannot_move_the_cursor_or_turn_the_line() {
    let dir = TempDir::new().unwrap();
    let file = sample::hostile(dir.path()).await;
    let text = shown(dir.path(), &[file.to_str().unwrap(), "--full"]);
    assert!(text.contains("\\u{1b}[31mred\\u{1b}[0m\\u{202e}turned\\u{d}"), "{text}");
    let bad: Vec<char> = text.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
    assert_eq!(bad, Vec::<char>::new());
}

#[tokio::test(start_paused = true)]
async fn colors_are_for_terminals() {
    let dir = TempDir::new().unwrap();
    sample::haiku(dir.path()).await;
    let colored = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env(name, "1").args(["inspect", "haiku.jsonl"]);
        let output = command.current_dir(dir.path()).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(!shown(dir.path(), &["haiku.jsonl"]).contains('\u{1b}'), "the output is no terminal");
    assert!(colored("CLICOLOR_FORCE"));
    assert!(!colored("NO_COLOR"));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_found_by_its_directory_and_id() {
    let dir = TempDir::new().unwrap();
    sample::haiku(dir.path()).await;
    let by_id = shown(dir.path(), &["--dir", ".", "--id", "haiku"]);
    assert_eq!(by_id, shown(dir.path(), &["haiku.jsonl"]));
    insta::assert_snapshot!(refused(dir.path(), &["--dir", ".", "--id", "limerick"]), @"error: read session `limerick` in `.`: it is not there; there are: `haiku`");
    insta::assert_snapshot!(refused(dir.path(), &["--dir", "nowhere", "--id", "haiku"]), @"error: open session directory `nowhere`: there is no such directory");
    assert!(!dir.path().join("nowhere").exists(), "looking creates nothing");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_read_under_any_name() {
    let dir = TempDir::new().unwrap();
    let file = sample::haiku(dir.path()).await;
    let text = shown(dir.path(), &["haiku.jsonl"]);
    fs::rename(file, dir.path().join("copy of it.txt")).unwrap();
    assert_eq!(shown(dir.path(), &["copy of it.txt"]), text);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_refused_and_said() {
    let dir = TempDir::new().unwrap();
    let file = sample::haiku(dir.path()).await;
    let good = fs::read_to_string(&file).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("empty", "");
    write("notes", "hello\n");
    write("newer", &good.replacen("\"version\":1", "\"version\":2", 1));
    write("broken", &format!("{good}{{\"id\":1}}\n"));
    let errors = ["missing", "empty", "notes", "newer", "broken", "."].map(|name| refused(dir.path(), &[name]));
    insta::assert_snapshot!(errors.join("\n"), @"
    error: read session file `missing`: there is no such file
    error: read session file `empty`: its first line is not the header of a session; move the file out of the store's directory, or restore it from a backup: EOF while parsing a value at line 1 column 0
    error: read session file `notes`: its first line is not the header of a session; move the file out of the store's directory, or restore it from a backup: expected value at line 1 column 1
    error: read session file `newer`: it has version 2 of the format, and this program knows 1; nothing was changed: use a newer program, or move the file out of the store's directory
    error: read session file `broken`: line 3 is not an event; restore the file from a backup, or cut it off before that line to keep what came earlier: invalid type: integer `1`, expected a formatted UUID string at line 1 column 7
    error: open session file `.`: is a directory
    ");
}

#[tokio::test(start_paused = true)]
async fn a_torn_last_line_is_left_out_with_a_warning() {
    let dir = TempDir::new().unwrap();
    let file = sample::haiku(dir.path()).await;
    let text = shown(dir.path(), &["haiku.jsonl"]);
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{good}{{\"id\":\"0")).unwrap();
    let output = inspect(dir.path(), &["haiku.jsonl"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
    assert!(String::from_utf8(output.stderr).unwrap().contains("dropped a torn last line"), "{:?}", output.status);
}

/// A writer holds the file's lock for one append at a time, so a reader gets in between.
#[tokio::test]
async fn a_session_is_read_while_another_process_writes() {
    use agent_core::{ChatMessage, JsonlStore, SessionStore};
    let dir = TempDir::new().unwrap();
    let file = sample::haiku(dir.path()).await;
    let (id, events) = JsonlStore::read_file(&file).unwrap();
    let store = JsonlStore::open(dir.path()).unwrap();
    let path = dir.path().to_owned();
    let reader = tokio::task::spawn_blocking(move || {
        for _ in 0..5 {
            shown(&path, &["haiku.jsonl"]);
        }
    });
    let mut version = events.len() as u64;
    while !reader.is_finished() {
        let mut event = events[0].clone();
        event.messages = vec![ChatMessage::user("and another")];
        version = store.append(&id, version, &[event]).await.unwrap();
    }
    reader.await.unwrap();
    assert!(version > events.len() as u64);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_instead_of_waited_for() {
    let dir = TempDir::new().unwrap();
    assert!(Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    insta::assert_snapshot!(refused(dir.path(), &["pipe"]), @"error: open session file `pipe`: it is a pipe or a device; copy its content into a file");
}

/// Linux: a device that is always full.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn what_cannot_be_printed_is_an_error() {
    let dir = TempDir::new().unwrap();
    sample::haiku(dir.path()).await;
    for args in [&["haiku.jsonl"][..], &["haiku.jsonl", "--html", "haiku.html"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let output = command.arg("inspect").args(args).current_dir(dir.path()).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("error: print "), "{args:?}: {said}");
    }
}

/// Whatever a file says, its numbers do not overflow.
#[test]
fn the_highest_numbers_are_shown() {
    let dir = TempDir::new().unwrap();
    let record = serde_json::json!({ "append": { "key": "loop:l:iterations", "value": {
        "millis": u64::MAX, "usage": { "input_tokens": u64::MAX, "output_tokens": u64::MAX }, "digest": u64::MAX,
    } } });
    let begin = serde_json::json!({ "turn": u64::MAX, "request": { "start": u64::MAX, "end": 0 }, "mark": u64::MAX });
    let event = serde_json::json!({
        "id": "ffffffff-ffff-7fff-bfff-ffffffffffff", "run": "ffffffff-ffff-7fff-bfff-ffffffffffff", "author": "l",
        "path": [{ "name": "l", "iteration": u32::MAX }], "rewind": u64::MAX,
        "usage": { "input_tokens": u64::MAX, "output_tokens": u64::MAX }, "state": [{ "set": { "key": "loop:l", "value": begin } }, record, record],
    });
    let header = r#"{"format":"agent-session","version":1,"id":"high"}"#;
    fs::write(dir.path().join("high.jsonl"), format!("{header}\n{event}\n{event}\n")).unwrap();
    assert!(shown(dir.path(), &["high.jsonl"]).contains("4 iterations"));
    shown(dir.path(), &["high.jsonl", "--html", "high.html"]);
}

#[test]
fn a_file_or_a_directory_is_asked_for() {
    let dir = TempDir::new().unwrap();
    for args in [&[][..], &["--dir", "."], &["--id", "a"], &["a.jsonl", "--dir", ".", "--id", "a"]] {
        assert_eq!(inspect(dir.path(), args).status.code(), Some(2), "{args:?}");
    }
}
