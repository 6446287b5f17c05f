//! What a program in a sandbox can do, and what it cannot. Linux, where shells and limits are what they are.
#![cfg(target_os = "linux")]

use std::{net::TcpListener, path::PathBuf, time::Duration};

use agent_eval::{Isolation, Sandbox, SandboxEnd, SandboxLimits, SandboxRun};

/// Runs a shell script in a new sandbox.
async fn run(script: &str, limits: &SandboxLimits) -> (Sandbox, SandboxRun) {
    let sandbox = Sandbox::new().expect("a folder");
    let ran = sandbox.run("sh", ["-c", script], limits).await.expect("it runs");
    (sandbox, ran)
}

/// Processes whose arguments have this word.
fn processes_with(word: &str) -> Vec<PathBuf> {
    let has_word = |dir: &PathBuf| {
        std::fs::read(dir.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).split('\0').any(|arg| arg == word))
    };
    let dirs = std::fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    dirs.filter(has_word).collect()
}

#[tokio::test]
async fn the_folder_is_gone_with_the_sandbox() {
    let (sandbox, ran) =
        run("mkdir deep && echo hello > deep/file && pwd && cat deep/file", &SandboxLimits::default()).await;
    let folder = sandbox.path().to_owned();
    assert_eq!(ran.stdout, format!("{}\nhello\n", folder.display()));
    assert_eq!(ran.end, SandboxEnd::Exit(0));
    drop(sandbox);
    assert!(!folder.exists());
}

#[tokio::test]
async fn the_environment_is_its_own() {
    let (sandbox, ran) =
        run("env | grep -v -e ^PWD= -e ^_= -e ^OLDPWD= -e ^PATH= | sort", &SandboxLimits::default()).await;
    let folder = sandbox.path().display();
    assert_eq!(ran.stdout, format!("HOME={folder}\nLC_ALL=C\nTMPDIR={folder}\n"));
    // Cargo sets this for the test itself.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
}

#[tokio::test]
async fn an_endless_loop_uses_up_its_processor_time() {
    let limits = SandboxLimits { cpu_seconds: 1, ..SandboxLimits::default() };
    let (_, ran) = run("while :; do :; done", &limits).await;
    assert!(matches!(ran.end, SandboxEnd::Signal(9 | 24)), "{ran:?}"); // SIGKILL, SIGXCPU
}

#[tokio::test]
async fn a_program_that_waits_is_killed_with_all_that_it_started() {
    let limits = SandboxLimits { wall: Duration::from_millis(500), ..SandboxLimits::default() };
    let (_, ran) = run("sleep 86397 & setsid sleep 86397 & echo begun; sleep 86397", &limits).await;
    assert_eq!((ran.end, ran.stdout.as_str()), (SandboxEnd::TimeLimit, "begun\n"));
    gone("86397").await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let (_, ran) = run("setsid sleep 86398 > /dev/null 2>&1 & sleep 86398 & exit 3", &SandboxLimits::default()).await;
    assert_eq!(ran.end, SandboxEnd::Exit(3));
    gone("86398").await;
}

/// Waits until no process has this argument; without namespaces one that left its group may stay.
async fn gone(word: &str) {
    if !Isolation::here().namespaces {
        return;
    }
    for _ in 0..100 {
        if processes_with(word).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("still there: {:?}", processes_with(word));
}

#[tokio::test]
async fn a_fork_bomb_runs_out_of_processes() {
    if !Isolation::here().processes {
        eprintln!("skipped: the number of processes cannot be limited here");
        return;
    }
    let limits = SandboxLimits { wall: Duration::from_secs(3), processes: Some(20), ..SandboxLimits::default() };
    let bomb = "sleep 86399 & n=0; while sleep 86399 & do n=$((n + 1)); echo $n; done 2>/dev/null";
    let (_, ran) = run(bomb, &limits).await;
    let most: usize = ran.stdout.lines().last().and_then(|line| line.parse().ok()).unwrap_or(0);
    assert!((1..20).contains(&most), "{ran:?}");
    gone("86399").await;
    let (_, ran) = run("b() { b | b & }; b; sleep 10", &limits).await;
    assert!(ran.end != SandboxEnd::Exit(0), "{ran:?}");
}

#[tokio::test]
async fn memory_is_limited() {
    let limits = SandboxLimits { memory: 64 << 20, ..SandboxLimits::default() };
    let (_, ran) = run("x=0123456789abcdef; while :; do x=$x$x; done", &limits).await;
    assert_ne!(ran.end, SandboxEnd::Exit(0));
    assert_ne!(ran.end, SandboxEnd::TimeLimit);
}

#[tokio::test]
async fn a_file_does_not_grow_beyond_its_limit() {
    let limits = SandboxLimits { file_size: 1 << 20, ..SandboxLimits::default() };
    let (sandbox, ran) = run("head -c 50000000 /dev/zero > big", &limits).await;
    assert_ne!(ran.end, SandboxEnd::Exit(0));
    assert_eq!(std::fs::metadata(sandbox.path().join("big")).expect("written").len(), 1 << 20);
}

#[tokio::test]
async fn a_long_output_is_read_to_its_end_and_cut() {
    let limits = SandboxLimits { output: 1000, cpu_seconds: 20, ..SandboxLimits::default() };
    let (_, ran) = run("head -c 20000000 /dev/zero | tr '\\0' x; echo end >&2", &limits).await;
    assert_eq!((ran.end, ran.stdout, ran.stderr.as_str()), (SandboxEnd::Exit(0), "x".repeat(1000), "end\n"));
}

#[tokio::test]
async fn there_is_no_network() {
    if !Isolation::here().namespaces {
        eprintln!("skipped: the network cannot be taken away here");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let bash = async |limits: SandboxLimits| {
        let sandbox = Sandbox::new().expect("a folder");
        sandbox.run("bash", ["-c", connect.as_str()], &limits).await.expect("it runs")
    };
    let outside = std::process::Command::new("bash").args(["-c", &connect]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&outside.stdout), "connected\n");
    let as_nobody = SandboxLimits::default();
    let as_self = SandboxLimits { processes: None, ..as_nobody };
    for limits in [as_nobody, as_self] {
        let ran = bash(limits).await;
        assert_eq!((ran.end, ran.stdout.as_str()), (SandboxEnd::Exit(1), ""), "{ran:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_ends_as_in_a_shell() {
    let sandbox = Sandbox::new().expect("a folder");
    let ran = sandbox.run("no-such-program", [], &SandboxLimits::default()).await.expect("the shell runs");
    assert_eq!(ran.end, SandboxEnd::Exit(127));
}

#[tokio::test]
async fn a_dropped_run_is_killed() {
    let sandbox = Sandbox::new().expect("a folder");
    let limits = SandboxLimits::default();
    let run = sandbox.run("sleep", ["86396"], &limits);
    assert!(tokio::time::timeout(Duration::from_secs(1), run).await.is_err());
    gone("86396").await;
}

#[tokio::test]
async fn the_environment_of_the_evaluator_cannot_be_read() {
    if !Isolation::here().environment {
        eprintln!("skipped: the processes of the evaluator cannot be hidden here");
        return;
    }
    // As who the evaluator is, it can be read from outside.
    let own = std::fs::read_to_string("/proc/self/environ").expect("readable");
    assert!(own.contains("CARGO_MANIFEST_DIR="));
    let read = "umount /proc 2>/dev/null; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; echo end";
    let (_, ran) = run(read, &SandboxLimits::default()).await;
    assert!(ran.stdout.ends_with("end\n") && !ran.stdout.contains("CARGO_MANIFEST_DIR="), "{ran:?}");
}

#[tokio::test]
async fn root_does_not_run_what_it_is_given() {
    let id = |what: &str| {
        let output = std::process::Command::new("id").arg(what).output().expect("id");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (_, ran) = run("id -u", &SandboxLimits::default()).await;
    let told = Isolation::here().to_string().contains("programs run as root");
    assert_eq!(ran.stdout == "0\n", told && id("-u") == "0\n", "{ran:?}");
}

#[tokio::test]
async fn a_file_is_written_within_the_folder_alone() {
    let outside = tempfile::tempdir().expect("a folder");
    let target = outside.path().join("target");
    std::fs::write(&target, "as it was").expect("written");
    let sandbox = Sandbox::new().expect("a folder");
    let error = |name: &str| sandbox.write(name, "new").expect_err("refused").to_string();
    let remedy = "use a name within its folder";
    for name in [target.to_str().expect("text"), "../out-of-a-sandbox", "a/../../b", ""] {
        assert_eq!(error(name), format!("write {name} into a sandbox: {remedy}"));
    }

    // What an earlier program left.
    let links = format!("ln -s {} file; ln -s {} folder; mkdir deep", target.display(), outside.path().display());
    let links = sandbox.run("sh", ["-c", &links], &SandboxLimits::default()).await.expect("it runs");
    assert_eq!(links.end, SandboxEnd::Exit(0), "{links:?}");
    error("folder/target");
    error("folder/other");
    let written = ["file", "deep/file"].map(|name| sandbox.write(name, "new").expect("written"));
    assert_eq!(written.map(|path| std::fs::read_to_string(path).expect("a file")), ["new", "new"]);
    sandbox.write("file", "newer").expect("replaced");
    let left: Vec<_> = std::fs::read_dir(outside.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(
        (left, std::fs::read_to_string(&target).expect("a file").as_str()),
        (vec!["target".into()], "as it was")
    );
}
