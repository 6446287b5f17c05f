//! Every exit code, from end to end.

use crate::support::*;

fn code(workspace: &Workspace, arguments: &[&str]) -> Option<i32> {
    let ran = workspace.eval(arguments);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran.code
}

#[test]
fn a_run_without_gates_succeeds_and_leaves_its_reports() {
    let workspace = Workspace::with(&["good", "bad", "flaky"]);
    let ran = workspace.eval(&["--name", "one", "--repeats", "2", "-j", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    println!("{}\n{}", ran.err, ran.out);
    for file in ["sets.json", "trials.jsonl", "report.json", "report.html", "junit.xml"] {
        assert!(workspace.run_dir("one").join(file).is_file(), "{file}");
    }
}

#[test]
fn help() {
    let workspace = Workspace::with(&["good"]);
    println!("{}", workspace.eval(&["--help"]).out);
    println!("{}", workspace.eval(&["list"]).out);
    println!("{:?}", workspace.eval(&["lint"]));
    println!("{:?}", workspace.eval(&["smal"]));
    println!("{:?}", workspace.eval(&["--no-run"]));
    assert_eq!(code(&workspace, &["-E", "tga(x)"]), Some(94));
    assert_eq!(code(&workspace, &["--gate", "pass_rate>=0.9"]), Some(0));
    println!("{:?}", workspace.eval(&["bless", "latest"]));
    println!("{:?}", workspace.eval(&["gate", "latest", "--gate", "regression<=0.1"]));
    println!("{:?}", workspace.eval(&["--no-run"]));
}
