//! Programs that leave something behind. On the real clock: they do not know of another.
#![cfg(target_os = "linux")]

use std::{fs, path::Path, process::Stdio, time::Duration};

use agent_core::ProcessGroup;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::sleep,
};

/// A program that starts a sleeper, says that it did, and goes on in some way; and the sleeper's number.
async fn started(then: &str) -> (ProcessGroup, String) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("sleep 300 & echo $!; {then}")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut group = ProcessGroup::spawn(command).unwrap();
    let mut said = BufReader::new(group.take_stdout().unwrap()).lines();
    let sleeper = said.next_line().await.unwrap().unwrap();
    (group, sleeper)
}

fn is_running(pid: &str) -> bool {
    // A zombie has ended: nobody waited for it yet.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn ends(pid: &str) {
    while is_running(pid) {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let (mut group, sleeper) = started("read line; exit 3").await;
    assert!(is_running(&sleeper));
    drop(group.take_stdin());
    assert_eq!(group.wait().await.unwrap().code(), Some(3));
    ends(&sleeper).await;
    assert_eq!(group.wait().await.unwrap().code(), Some(3), "again");
}

#[tokio::test]
async fn a_dropped_program_is_killed_with_all_that_it_started() {
    let (group, sleeper) = started("trap '' TERM; wait").await;
    assert!(is_running(&sleeper));
    drop(group);
    ends(&sleeper).await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_kills_nothing() {
    let (mut group, sleeper) = started("wait").await;
    assert!(tokio::time::timeout(Duration::from_millis(50), group.wait()).await.is_err());
    assert!(is_running(&sleeper));
    group.terminate();
    assert!(!group.wait().await.unwrap().success());
    ends(&sleeper).await;
}

#[tokio::test]
async fn all_of_it_is_asked_to_end() {
    let dir = TempDir::new().unwrap();
    let mut command = Command::new("sh");
    let child = "sh -c 'trap \"touch asked; exit\" TERM; touch ready; while :; do sleep 0.01; done'";
    command.args(["-c", &format!("trap 'wait; exit 4' TERM; {child} & wait")]).current_dir(dir.path());
    let mut group = ProcessGroup::spawn(command).unwrap();
    appears(&dir.path().join("ready")).await;
    group.terminate();
    assert_eq!(group.wait().await.unwrap().code(), Some(4));
    assert!(dir.path().join("asked").exists());
}

async fn appears(path: &Path) {
    while !path.exists() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let error = ProcessGroup::spawn(Command::new("no-such-program")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
