//! Profiles, and what outweighs what.

use crate::support::*;

fn with_profiles(text: &str) -> Workspace {
    Workspace::with(&["good", "bad"]).file(".config/agent-eval.toml", text)
}

#[test]
fn a_profile_stands_on_the_default_one_and_flags_outweigh_both() {
    let text = "[profile.default]\nrepeats = 2\njobs = 1\ngates = [\"pass_rate>=0.1\"]\n\n\
                [profile.ci]\nrepeats = 3\ngates = [\"small: pass_rate>=0.9\"]\nformat = [\"json\"]\n";
    let workspace = with_profiles(text);
    let trials = |run: &str| workspace.lines(run) - 1;
    assert_eq!(workspace.eval(&["--name", "default"]).code, Some(0));
    assert_eq!(workspace.eval(&["--name", "ci", "--profile", "ci"]).code, Some(100));
    assert_eq!(workspace.eval(&["--name", "flag", "--profile", "ci", "--repeats", "1"]).code, Some(100));
    assert_eq!((trials("default"), trials("ci"), trials("flag")), (4, 6, 2));
    assert!(!workspace.run_dir("ci").join("report.html").exists(), "JSON alone was asked for");
    assert_eq!(workspace.eval(&["gate", "default", "--profile", "ci"]).code, Some(100));
}

#[test]
fn bad_profiles_say_where_they_are_bad() {
    let texts = [
        "[profile.ci]\nretry = 2\n",
        "[profile.ci]\ngate = []\n",
        "[profile.ci]\nrepeats = \"many\"\n",
        "[profile.ci]\nformat = [\"jsn\"]\n",
        "[profile]\nci = 1\n",
        "[profiles.ci]\n",
        "[profile.ci\n",
    ];
    let told: Vec<String> = texts.iter().map(|text| with_profiles(text).eval(&["--profile", "ci"]).told()).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    error: .config/agent-eval.toml:2:1: unknown field `retry`; known are `repeats`, `jobs`, `retries`, `timeout`, `max-tokens`, `fail-fast`, `seed`, `mode`, `model`, `base-url`, `judge`, `judge-base-url`, `judge-repeats`, `gold-scorers`, `format`, `show-progress`, `status-level`, `gates`, `baseline`, `labels`, `require-evidence`, `max-infrastructure-errors`
    -> 96

    error: .config/agent-eval.toml:2:1: unknown field `gate`; did you mean `gates`?
    -> 96

    error: .config/agent-eval.toml:2:11: invalid type: string "many", expected a whole number
    -> 96

    error: .config/agent-eval.toml:2:11: unknown value `jsn`; did you mean `json`?
    -> 96

    error: .config/agent-eval.toml:2:6: expected a table, found integer; write `[profile.NAME]`
    -> 96

    error: .config/agent-eval.toml:1:2: unknown table `profiles`; write `[profile.NAME]`
    -> 96

    error: .config/agent-eval.toml:1:12: unclosed table, expected `]`
    -> 96
    "#);
}

#[test]
fn an_unknown_profile_is_an_error() {
    let unknown = |text: &str| with_profiles(text).eval(&["--profile", "ic"]).told();
    insta::assert_snapshot!(unknown("[profile.ci]\n") + &unknown(""), @r#"
    error: use the profile `ic`: .config/agent-eval.toml has none; did you mean `ci`?
    -> 96
    error: use the profile `ic`: .config/agent-eval.toml has none; write `[profile.ic]` into it
    -> 96
    "#);
}

#[test]
fn the_environments_model_changes_no_replay() {
    let workspace = Workspace::with(&["good"]);
    let model = |name: &str, flags: &[&str]| {
        let mut command = workspace.command(&[&["--name", name], flags].concat());
        let ran = ran(command.env("AGENT_MODEL", "openai:environment").output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let report: serde_json::Value =
            serde_json::from_str(&workspace.read(&format!("target/evals/{name}/report.json"))).unwrap();
        report["manifest"]["fingerprint"]["small"]["model"].clone()
    };
    assert_eq!(model("default", &[]), serde_json::Value::Null);
    assert_eq!(model("replay", &["--replay"]), serde_json::Value::Null);
    assert_eq!(model("live", &["--live"]), "openai:environment");
    assert_eq!(model("flag", &["--record", "--model", "openai:flag"]), "openai:flag");
}

#[test]
fn a_run_goes_on_with_the_settings_that_it_began_with() {
    let workspace = Workspace::with(&["bad", "good", "good"]);
    let begin = ["--name", "it", "--fail-fast", "-j", "1", "--repeats", "2", "--live", "--model", "a:b", "-E", "all()"];
    assert_eq!(workspace.eval(&begin).code, Some(106));
    let ran = workspace.eval(&["--resume", "--fail-fast=false"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(workspace.lines("it") - 1, 6);
    insta::assert_snapshot!(workspace.eval(&["--resume", "it", "case-1"]).told(), @r#"
    error: go on with run `it`: it has its own cases; name none
    -> 96
    "#);
    insta::assert_snapshot!(workspace.eval(&["--resume", "it", "--model", "c:d"]).told(), @r#"
    error: resume run `target/evals/it`: it is not the same run: /fingerprint/small/model: "a:b" -> "c:d"; undo that, or begin a new run
    -> 96
    "#);
}
