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
    insta::assert_snapshot!(workspace.eval(&["list"]).told(), @r#"
    other: 1 case, evals/other.yaml
        other::case-0  good
    small: 2 cases, evals/small.yaml
        small::case-0  good
        small::case-1  bad
    -> 0
    "#);
    insta::assert_snapshot!(workspace.eval(&["list", "-E", "tag(good)", "small"]).told(), @r#"
    small: 1 case, evals/small.yaml
        small::case-0  good
    -> 0
    "#);
}

#[test]
fn lint_finds_everything_at_once() {
    let workspace = Workspace::with(&["good"])
        .set("lost", "nobody", &["good"])
        .file("evals/broken.yaml", "schema: agent-eval/1\nname: broken\ncases: []\n")
        .file(
            "evals/old.yaml",
            "schema: agent-eval/1\nname: old\nsubject: acts\ncases:\n  - id: a\n    input: { text: x }\n    \
             expected: [z]\n    quarantine: { reason: slow, until: 2020-01-31 }\n",
        )
        .file(
            "evals/baselines/gone.json",
            r#"{"schema": "agent-eval-baseline/1", "set": "gone", "run": "x", "cases": {}}"#,
        )
        .file("evals/baselines/bad.json", "{}")
        .file(".config/agent-eval.toml", "[profile.ci]\nretry = 1\n");
    insta::assert_snapshot!(workspace.eval(&["lint"]).told(), @r#"
    error: evals/broken.yaml:1:1: the set has no cases; an empty set would always pass
    error: evals/lost.yaml: the set's subject `nobody` is unknown; known are `acts`, `loops`
    warning: evals/old.yaml: the quarantine of case `a` ended on 2020-01-31
    error: .config/agent-eval.toml:2:1: unknown field `retry`; known are `repeats`, `jobs`, `retries`, `timeout`, `max-tokens`, `fail-fast`, `seed`, `mode`, `model`, `base-url`, `judge`, `judge-base-url`, `judge-repeats`, `gold-scorers`, `format`, `show-progress`, `status-level`, `gates`, `baseline`, `labels`, `require-evidence`, `max-infrastructure-errors`
    error: parse baseline `evals/baselines/bad.json`; name another, or bless anew: missing field `schema` at line 1 column 2
    warning: evals/baselines/gone.json: there is no set `gone`
    3 sets, 3 cases: 4 errors, 2 warnings
    -> 96
    "#);
}

#[test]
fn lint_reads_profiles_and_labels_as_runs_do() {
    let label =
        |set: &str, case: &str| format!(r#"{{"set": "{set}", "case": "{case}", "answer": "a", "good": true}}"#) + "\n";
    let workspace = Workspace::with(&["good"])
        .file("evals/broken.yaml", "schema: agent-eval/1\nname: broken\ncases: []\n")
        .file(
            ".config/agent-eval.toml",
            "[profile.ci]\nrepeats = 0\njobs = 0\ntimeout = \"soon\"\nmax-infrastructure-errors = 5\n\
             labels = \"nowhere.jsonl\"\n\
             gates = [\"pas_rate>=0.9\", \"smal: coverage\", \"small: coverage\", \"broken: coverage\"]\n",
        )
        .file("evals/labels/bad.jsonl", "{}\n")
        .file("evals/labels/gone.jsonl", &label("gone", "b"))
        .file("evals/labels/small.jsonl", &(label("small", "case-0") + &label("small", "case-7")));
    insta::assert_snapshot!(workspace.eval(&["lint"]).told(), @r#"
    error: evals/broken.yaml:1:1: the set has no cases; an empty set would always pass
    error: .config/agent-eval.toml: profile `ci`: run each case 0 times: nothing would be run; give at least 1
    error: .config/agent-eval.toml: profile `ci`: run 0 trials at once: nothing would be run; give at least 1
    error: .config/agent-eval.toml: profile `ci`: read the time limit `soon`: expected number at 0; write `90s` or `5m`
    error: .config/agent-eval.toml: profile `ci`: allow a share of 5 infrastructure errors: give one from 0 to 1
    error: .config/agent-eval.toml: profile `ci`: read nowhere.jsonl: No such file or directory (os error 2)
    error: .config/agent-eval.toml: profile `ci`: read gate `pas_rate>=0.9`: use one of pass_rate>=X, pass_at_K>=X, pass_hat_K>=X, case_rate>=X, error_rate<=X, cap_hit_rate<=X, tokens_per_solved<=X, regression<=X, hard(TAG), coverage; X is a share from 0 to 1, and a number of tokens
    error: .config/agent-eval.toml: profile `ci`: read gate `smal: coverage`: there is no set `smal`; did you mean `small`?
    error: evals/labels/bad.jsonl:1:1: no label: missing field `set`
    warning: evals/labels/gone.jsonl: there is no set `gone`, so nothing reads it
    warning: evals/labels/gone.jsonl: there are no cases gone::b; take their labels out
    warning: evals/labels/small.jsonl: there are no cases small::case-7; take their labels out
    1 set, 1 case: 9 errors, 3 warnings
    -> 96
    "#);
}

#[test]
fn lint_reads_the_baselines_that_profiles_name() {
    let workspace = Workspace::with(&["good"])
        .file("other/small.json", "{}")
        .file("one.json", r#"{"schema": "agent-eval-baseline/1", "set": "small", "run": "x", "cases": {}}"#)
        .file(
            ".config/agent-eval.toml",
            "[profile.bad]\nbaseline = \"other\"\n[profile.gone]\nbaseline = \"nowhere.json\"\n\
             [profile.none]\nbaseline = \"none\"\n[profile.one]\nbaseline = \"one.json\"\n",
        );
    insta::assert_snapshot!(workspace.eval(&["lint"]).told(), @r#"
    error: .config/agent-eval.toml: profile `bad`: parse baseline `other/small.json`; name another, or bless anew: missing field `schema` at line 1 column 2
    error: .config/agent-eval.toml: profile `gone`: compare with `nowhere.json`: no file and no folder is there; find the run `nowhere.json` in target/evals: there is none yet; run the sets first
    1 set, 1 case: 2 errors, 0 warnings
    -> 96
    "#);
}

#[test]
fn a_plan_estimates_by_the_baseline() {
    let workspace = evaluated();
    insta::assert_snapshot!(workspace.eval(&["--no-run", "small"]).timeless(), @r#"
    small: 3 cases, 3 trials; about 300 tokens and TIME of agents' time, by run it
    in all: 3 trials; about 300 tokens, and TIME with 4 at once
    -> 0
    "#);
    assert_eq!(workspace.eval(&["bless", "it"]).code, Some(0));
    let told = workspace.eval(&["--no-run", "--repeats", "10", "small"]).timeless();
    insta::assert_snapshot!(told, @r#"
    small: 3 cases, 30 trials; about 3,000 tokens and TIME of agents' time, by the baseline
    in all: 30 trials; about 3,000 tokens, and TIME with 4 at once
    -> 0
    "#);
    assert!(!workspace.run_dir("latest").exists());
}

#[test]
fn a_plan_of_a_run_that_goes_on_is_of_what_is_left() {
    let workspace = Workspace::with(&["good", "bad", "good"]);
    assert_eq!(workspace.eval(&["--name", "it", "--repeats", "2", "-j", "1"]).code, Some(0));
    let log = workspace.read("target/evals/it/trials.jsonl");
    let workspace = workspace.file("target/evals/it/trials.jsonl", &log.lines().take(5).collect::<Vec<_>>().join("\n"));
    let planned = |arguments: &[&str]| {
        let ran = workspace.eval(&[arguments, &["--no-run"]].concat());
        ran.out.lines().next().unwrap().split(';').next().unwrap().to_owned()
    };
    assert_eq!(planned(&["--resume", "it"]), "small: 3 cases, 3 trials", "a torn line is one that is missing");
    assert_eq!(planned(&["--resume", "it", "--rerun", "failed"]), "small: 3 cases, 4 trials");
    assert_eq!(workspace.eval(&["--resume", "it"]).code, Some(0));
    assert_eq!(planned(&["--resume", "it"]), "small: 3 cases, 0 trials");
}

#[test]
fn a_line_of_progress_reorders_nothing() {
    let text = Workspace::with(&["good"]).read("evals/small.yaml").replace("id: case-0", r#"id: "a\u202Eb""#);
    let ran = Workspace::empty().file("evals/small.yaml", &text).eval(&["--name", "it"]);
    assert!(ran.err.contains(r"small::a\u{202e}b#0"), "{ran:?}");
    assert!(!ran.err.contains('\u{202e}'), "{ran:?}");
}

#[test]
fn cap_shows_what_iterations_are_worth() {
    insta::assert_snapshot!(evaluated().eval(&["cap", "it"]).told(), @r#"
    loops: loop
      k  at risk  passed  hazard  pass by k         95 %  at least  resampling   gain    95 % of gain
      1        6       2  33.3 %     33.3 %  0.0–100.0 %    33.3 %      33.3 %   +0.0    +0.0 to +0.0
      2        4       2  50.0 %     66.7 %  0.0–100.0 %    66.7 %      33.3 %  +33.3  +0.0 to +100.0
      3        2       0   0.0 %     66.7 %  0.0–100.0 %    66.7 %           –      –               –

      k  tokens  per solve  one more solve  mean length
      1       0          0               0         1.00
      2       0          0               0         1.67
      3       0          0               –         2.00

      trials             6, cap 3
      recommended cap    2: no later iteration gains 1.0 points; where none was seen, 6 trials rule out
                         gains above 39.3
      cap hits           2/6 = 33.3 % (95 %: 9.7–70.0 %)
      stops              4 completed, 2 iteration_limit
      accepted at exit   4 good, 0 bad (precision 100.0 %)
      not accepted       0 good, 2 bad (recall 100.0 %)
      wasted iterations  0
      stalls             0.0 % of later iterations
      oscillations       0.0 % of trials with 3 or more

      iterations at exit
      1  ████████████████████████████████████████ 2
      2  ████████████████████████████████████████ 2
      3  ████████████████████████████████████████ 2

       diagnosis no evidence that feedback helps: with 2 iterations the loop passes +33.3 points against
                 2 fresh answers, and the 95 % interval has 0 (paired over cases)
       diagnosis the recommended cap is supported to 39.3 points only: 6 trials cannot rule out smaller
                 gains
    -> 0
    "#);
}

#[test]
fn blessed_runs_are_compared_with_by_default() {
    let workspace = evaluated();
    insta::assert_snapshot!(workspace.eval(&["bless", "it"]).told(), @r#"
    evals/baselines/loops.json: 3 cases, 4 of 6 trials passed
    evals/baselines/small.json: 3 cases, 3 of 6 trials passed
    -> 0
    "#);
    let ran = workspace.eval(&["--name", "next", "--repeats", "2", "small"]);
    assert!(ran.out.contains("small: against the baseline"), "{}", ran.out);
    let coverage = workspace.eval(&["gate", "next", "--gate", "coverage", "--gate", "loops: cap_hit_rate<=0.5"]);
    insta::assert_snapshot!(coverage.told(), @r#"
    small: gates
           HOLDS coverage (every case of the baseline was run)

            PASS 1 gate holds; 3 of 6 trials passed (exit code 0)
    -> 0
    "#);
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
    insta::assert_snapshot!(told.replace(&id(&told), "RUN,"), @r#"
    small: against the baseline
      baseline         RUN, 3 cases in both
      difference       +33.3 points (95 %: -110.1 to +176.8)
      evidence         p 1.000, of harm 0.500 (sign flip)
      cases            1 better, 0 worse
      detectable drop  93.4 points

      case    before      now  points
      case-1   0.0 %  100.0 %  +100.0

    small: gates
          UNSURE regression<=0.1 (+33.3 points over 3 pairs, p of harm 0.5000 (sign flip); drops below
                 93.4 points go unseen)

            PASS 1 gate does not fail, and may hold by luck; 5 of 6 trials passed (exit code 0)
    -> 0
    "#);
    let markdown = workspace.eval(&["compare", "it", "new", "--format", "md"]);
    assert!(markdown.out.starts_with("## Evaluation: PASS\n"), "{markdown:?}");
}

#[test]
fn a_trial_is_shown_as_what_happened() {
    let workspace = evaluated();
    insta::assert_snapshot!(workspace.eval(&["show", "it", "loops::at-2#1"]).timeless(), @r#"
    loops::at-2#1: pass, completed, 0 tokens, TIME
                user: go
       TIME  writer (refine 1): draft 1
                == iteration 1: the draft is a fail; not accepted by is-good: not good
       TIME  refine: not good
       TIME  writer (refine 2): good
                == iteration 2: the draft is a pass; accepted
                check expected: pass
    -> 0
    "#);
    insta::assert_snapshot!(workspace.eval(&["diff", "it", "flaky", "x"]).timeless(), @r#"
    error: find case `flaky`: the run `it` has none of this name; `report RUN` shows its cases
    -> 96
    "#);
    insta::assert_snapshot!(workspace.eval(&["diff", "it", "case-2#0", "case-2#1"]).timeless(), @r#"
    - small::case-2#0: pass, completed, 100 tokens, TIME
    + small::case-2#1: fail, completed, 100 tokens, TIME

      user: go
    - actor: good
    - check expected: pass
    + actor: bad
    + check expected: fail: the answer is not the expected text
    +     - good
    +     + bad
    -> 0
    "#);
}

#[test]
fn verdicts_are_shown_at_the_iterations_that_they_are_of() {
    let turn = "{ say: go, expected: [good] }";
    let set = format!(
        "schema: agent-eval/1\nname: talk\nsubject: nested\ncases:\n  \
         - {{ id: a, input: {{ turns: [{turn}, {turn}] }} }}\n"
    );
    let workspace = Workspace::empty().file("evals/talk.yaml", &set);
    assert_eq!(workspace.eval(&["--name", "it", "--repeats", "2"]).code, Some(0));
    insta::assert_snapshot!(workspace.eval(&["show", "it", "a#0"]).timeless(), @r#"
    talk::a#0: pass, completed, 0 tokens, TIME
                user: go
       TIME  writer (outer 1, inner 1): draft
       TIME  inner (outer 1): not good
       TIME  writer (outer 1, inner 2): draft
       TIME  outer: not good
       TIME  writer (outer 2, inner 1): good
                user: go
       TIME  writer (outer 1, inner 1): other
       TIME  inner (outer 1): not good
       TIME  writer (outer 1, inner 2): other
                == iteration 1: the draft is a fail; not accepted by is-good: not good
       TIME  outer: not good
       TIME  writer (outer 2, inner 1): good
                == iteration 2: the draft is a pass; accepted
                check expected (turn 0): pass
                check expected (turn 1): pass
    -> 0
    "#);
    insta::assert_snapshot!(workspace.eval(&["diff", "it", "a#0", "a#1"]).timeless(), @r#"
    - talk::a#0: pass, completed, 0 tokens, TIME
    + talk::a#1: pass, completed, 0 tokens, TIME

      user: go
      writer (outer 1, inner 1): draft
      inner (outer 1): not good
      writer (outer 1, inner 2): draft
      outer: not good
      writer (outer 2, inner 1): good
      user: go
      writer (outer 1, inner 1): other
      inner (outer 1): not good
      writer (outer 1, inner 2): other
      == iteration 1: the draft is a fail; not accepted by is-good: not good
      outer: not good
      writer (outer 2, inner 1): good
      == iteration 2: the draft is a pass; accepted
      check expected (turn 0): pass
      check expected (turn 1): pass
    -> 0
    "#);
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
    insta::assert_snapshot!(workspace.eval(&["score", "it"]).told(), @r#"
    error: score case `case-0` of set `small`: it says something else now; run it again
    -> 96
    "#);
}

#[test]
fn a_report_is_made_again_in_every_form() {
    let workspace = evaluated();
    let html = workspace.eval(&["report", "it", "--html", "-o", "page.html"]);
    assert_eq!(html.code, Some(0), "{html:?}");
    assert_eq!(workspace.read("page.html"), workspace.read("target/evals/it/report.html"));
    let shown = |page: &str| page.matches("<details class=\"trial\">").count();
    let not_passed = shown(&workspace.read("page.html"));
    let all = workspace.eval(&["report", "it", "--html", "--all-trials", "-o", "all.html"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert!(shown(&workspace.read("all.html")) > not_passed, "trials that passed are shown on demand");
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
        let timeless = |line: &str| {
            let (word, rest) = line.split_once('[').unwrap();
            format!("{word}[TIME]{}\n", rest.split_once(']').unwrap().1)
        };
        err.lines().map(timeless).collect::<String>()
    };
    insta::assert_snapshot!(told(&["--repeats", "2"]), @r#"
    PASS [TIME] (1/4) small::case-0#0
    FAIL [TIME] (2/4) small::case-1#0
    PASS [TIME] (3/4) small::case-0#1
    FAIL [TIME] (4/4) small::case-1#1
    "#);
    insta::assert_snapshot!(told(&["--status-level", "fail", "--show-progress", "none"]), @r#"
            FAIL [TIME] small::case-1#0
    "#);
}

#[test]
fn help_tells_all() {
    let workspace = Workspace::with(&["good"]);
    let help = workspace.eval(&["--help"]);
    assert_eq!(help.code, Some(0));
    // Lines may be broken anywhere.
    let (commands, rest) = help.out.split_once("\nArguments:").unwrap();
    let name = |line: &str| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')).map(str::to_owned);
    let names: Vec<String> =
        commands.lines().filter_map(name).filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
    insta::assert_snapshot!(names.join(" "), @"run score compare gate cap bless show diff list lint import export report help");
    for code in ["0", "2", "4", "5", "94", "96", "100", "101", "106", "107"] {
        assert!(rest.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))), "{code}: {rest}");
    }
    let defaults = ["4", "0", "the time", "evals/baselines", "no gate", "0.05", "table,json,junit,html"];
    let words = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    for default in defaults {
        assert!(words.contains(&format!("[default: {default}")), "{default}: {words}");
    }
}
