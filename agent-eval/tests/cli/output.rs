//! What is printed, and is not read to its end.

use std::io::{BufRead, BufReader};

use crate::support::*;

#[test]
fn nobody_has_to_read_all_that_is_printed() {
    // More than a pipe holds.
    let workspace = Workspace::with(&["good"; 800]);
    assert_eq!(workspace.eval(&["--name", "monday"]).code, Some(0));
    let commands: [&[&str]; 3] = [
        &["export", "small", "--to", "promptfoo", "--lossy"],
        &["report", "monday", "--format", "json"],
        &["compare", "monday", "monday", "--format", "json"],
    ];
    for arguments in commands {
        let mut child = workspace.command(arguments).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == BEGIN));
        assert!(!lines.next().unwrap().unwrap().is_empty());
        drop(lines);
        let ran = ran(child.wait_with_output().unwrap());
        assert!(ran.code == Some(0) && !ran.err.contains("panicked"), "{ran:?}");
    }
}
