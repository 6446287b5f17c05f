//! Many trials: how long they take, and how much memory.

use std::time::Instant;

use crate::support::*;
use agent_eval::RunOptions;

/// Prints figures for 1,000 cases with few and with many repeats; to be read by a person, in release:
/// `cargo test --release -p agent-eval --test engine -- --ignored --nocapture scale`.
#[test]
#[ignore = "a measurement"]
fn many_trials_are_fast_and_memory_stays_flat() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for count in [1, 10, 20] {
        let dir = tempfile::tempdir().unwrap();
        let subject = writes(4, |trial| match (number(trial) + trial.key.repeat) % 8 {
            0 => Writer::Never,
            1 | 2 => Writer::GoodAt(3),
            3 | 4 => Writer::GoodAt(2),
            _ => Writer::GoodAt(1),
        });
        let set = set_of(ids(1000));
        let options = RunOptions { log: Some(dir.path().into()), ..repeats(count) };
        let began = Instant::now();
        let report = runtime.block_on(set.run(&subject, options)).unwrap();
        let took = began.elapsed();
        assert_eq!(report.missing, 0);
        let log = std::fs::metadata(dir.path().join("trials.jsonl")).unwrap().len();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
        println!("1000 cases x {count}: {took:.2?}, log {} MB, {peak}", log / 1_000_000);
    }
}
