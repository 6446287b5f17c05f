//! What each command says.

use crate::support::*;

/// A project with a run `it` of two sets, one of them with loops.
fn evaluated() -> Workspace {
    let loops = "schema: agent-eval/1\nname: loops\nsubject: loops\ncases:\n  \
        - { id: at-1, input: { text: go }, expected: [good], metadata: { good_at: 1 } }\n  \
        - { id: at-2, input: { text: go }, expected: [good], metadata: { good_at: 2 } }\n  \
        - { id: never, input: { text: go }, expected: [good], metadata: { good_at: 9 } }\n";
    let workspace = Workspace::with(&["good", "bad", "flaky"]).file("evals/loops.yaml", loops);
    let ran = workspace.eval(&["--name", "it", "--repeats", "2", "-j", "1", "--status-level", "none"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    workspace
}

#[test]
fn list_shows_what_would_be_run() {
    let workspace = Workspace::with(&["good", "bad"]).set("other", "acts", &["good"]);
    insta::assert_snapshot!(workspace.eval(&["list"]).told(), @"");
    insta::assert_snapshot!(workspace.eval(&["list", "-E", "tag(good)", "small"]).told(), @"");
}

#[test]
fn lint_finds_everything_at_once() {
    let workspace = Workspace::with(&["good"])
        .set("lost", "nobody", &["good"])
        .file("evals/broken.yaml", "schema: agent-eval/1\nname: broken\ncases: []\n")
        .file(
            "evals/old.yaml",
            "schema: agent-eval/1\nname: old\nsubject: acts\ncases:\n  - id: a\n    input: { text: x }\n    \
             expected: [y]\n    quarantine: { reason: slow, until: 2020-01-31 }\n",
        )
        .file(
            "evals/baselines/gone.json",
            r#"{"schema": "agent-eval-baseline/1", "set": "gone", "run": "x", "cases": {}}"#,
        )
        .file("evals/baselines/bad.json", "{}")
        .file(".config/agent-eval.toml", "[profile.ci]\nretry = 1\n");
    insta::assert_snapshot!(workspace.eval(&["lint"]).told(), @"");
}

#[test]
fn a_plan_estimates_by_the_baseline() {
    let workspace = evaluated();
    insta::assert_snapshot!(workspace.eval(&["--no-run", "small"]).told(), @"");
    assert_eq!(workspace.eval(&["bless", "it"]).code, Some(0));
    let told = workspace.eval(&["--no-run", "--repeats", "10", "small"]).told();
    insta::assert_snapshot!(told, @"");
    assert!(!workspace.run_dir("latest").exists());
}

#[test]
fn cap_shows_what_iterations_are_worth() {
    insta::assert_snapshot!(evaluated().eval(&["cap", "it"]).told(), @"");
}

#[test]
fn blessed_runs_are_compared_with_by_default() {
    let workspace = evaluated();
    insta::assert_snapshot!(workspace.eval(&["bless", "it"]).told(), @"");
    let ran = workspace.eval(&["--name", "next", "--repeats", "2", "small"]);
    assert!(ran.out.contains("small: against the baseline"), "{}", ran.out);
    let coverage = workspace.eval(&["gate", "next", "--gate", "coverage", "--gate", "loops: cap_hit_rate<=0.5"]);
    insta::assert_snapshot!(coverage.told(), @"");
    let ran = workspace.eval(&["gate", "next", "--baseline", "none", "--gate", "coverage"]);
    assert_eq!(ran.code, Some(100), "{ran:?}");
}

#[test]
fn runs_are_compared_case_by_case() {
    let workspace = evaluated();
    let better = workspace.read("evals/small.yaml").replace("act: bad", "act: good");
    let workspace = workspace.file("evals/small.yaml", &better);
    assert_eq!(workspace.eval(&["--name", "new", "--repeats", "2", "small"]).code, Some(0));
    let told = workspace.eval(&["compare", "it", "new", "--gate", "regression<=0.1"]).told();
    let id = |text: &str| {
        let words = text.split_whitespace().find(|word| word.len() > 36 && word.ends_with(',')).map(str::to_owned);
        words.unwrap_or_default()
    };
    insta::assert_snapshot!(told.replace(&id(&told), "RUN,"), @"");
    let markdown = workspace.eval(&["compare", "it", "new", "--format", "md"]);
    assert!(markdown.out.starts_with("## Evaluation: PASS\n"), "{markdown:?}");
}

#[test]
fn a_trial_is_shown_as_what_happened() {
    let workspace = evaluated();
    let without_times = |text: String| -> String {
        let is_time = |word: &str| word.starts_with('+') && word.ends_with('s');
        let line = |line: &str| match line.split_whitespace().next() {
            Some(first) if is_time(first) => format!("{:>10}{}", "+TIME", &line[10..]),
            _ => line.to_owned(),
        };
        let text = text.lines().map(line).collect::<Vec<_>>().join("\n");
        text.split_inclusive(", 0.").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())).collect()
    };
    insta::assert_snapshot!(without_times(workspace.eval(&["show", "it", "loops::at-2#1"]).told()), @"");
    insta::assert_snapshot!(without_times(workspace.eval(&["diff", "it", "flaky", "x"]).told()), @"");
    insta::assert_snapshot!(without_times(workspace.eval(&["diff", "it", "case-2#0", "case-2#1"]).told()), @"");
}

#[test]
fn recorded_trials_are_judged_by_the_present_checks() {
    let workspace = evaluated();
    let lenient = workspace.read("evals/small.yaml").replacen("expected: [good]", "expected: [good, bad]", 3);
    let workspace = workspace.file("evals/small.yaml", &lenient);
    let ran = workspace.eval(&["score", "it", "--name", "again", "--gate", "small: pass_rate>=1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let passed = |run: &str, set: usize| {
        let path = format!("target/evals/{run}/report.json");
        workspace.eval(&["report", run, "--format", "json", "-o", &path]);
        let report: serde_json::Value = serde_json::from_str(&workspace.read(&path)).unwrap();
        report["sets"][set]["total"]["passed"].as_u64()
    };
    assert_eq!((passed("it", 1), passed("again", 1)), (Some(3), Some(6)));
    // What did not change is judged as before, iterations included.
    assert_eq!((passed("it", 0), passed("again", 0)), (Some(4), Some(4)));
    assert_eq!(workspace.eval(&["cap", "again"]).out, workspace.eval(&["cap", "it"]).out);
    let other = workspace.read("evals/small.yaml").replacen("text: go", "text: stop", 1);
    let workspace = workspace.file("evals/small.yaml", &other);
    insta::assert_snapshot!(workspace.eval(&["score", "it"]).told(), @"");
}

#[test]
fn a_report_is_made_again_in_every_form() {
    let workspace = evaluated();
    let html = workspace.eval(&["report", "it", "--html", "-o", "page.html"]);
    assert_eq!(html.code, Some(0), "{html:?}");
    assert_eq!(workspace.read("page.html"), workspace.read("target/evals/it/report.html"));
    assert_eq!(
        workspace.eval(&["report", "it", "--format", "json"]).out,
        workspace.read("target/evals/it/report.json")
    );
    let failing = workspace.eval(&["report", "it", "--format", "junit", "--gate", "small: pass_rate>=0.9"]);
    assert_eq!((failing.code, failing.out.contains("<failure")), (Some(100), true));
}

#[test]
fn progress_has_a_line_for_each_trial() {
    let workspace = Workspace::with(&["good", "bad"]);
    let told = |arguments: &[&str]| {
        let err = workspace.eval(&[&["-j", "1"], arguments].concat()).err;
        let cut = |line: &str| line.replace(|c: char| c.is_ascii_digit() && !line.contains('('), "0");
        err.lines().map(|line| cut(line).replace("0.000s", "TIME") + "\n").collect::<String>()
    };
    insta::assert_snapshot!(told(&["--repeats", "2"]), @"");
    insta::assert_snapshot!(told(&["--status-level", "fail", "--show-progress", "none"]), @"");
}

#[test]
fn help_tells_all() {
    let workspace = Workspace::with(&["good"]);
    let help = workspace.eval(&["--help"]);
    assert_eq!(help.code, Some(0));
    insta::assert_snapshot!(help.out.split("\nArguments:").next().unwrap(), @"");
}
