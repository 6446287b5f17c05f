//! What readers see.

use agent_eval::{ExitRules, RunVerdict, TextOptions};

use crate::sample::{rich, tolerated};

#[test]
fn the_text_of_a_run() {
    insta::assert_snapshot!(rich().to_text(&TextOptions::default()));
}

#[test]
fn the_text_in_a_narrow_terminal_with_colors() {
    let options = TextOptions { width: 60, color: true, ..TextOptions::default() };
    let text = tolerated().to_text(&options).replace('\u{1b}', "␛");
    insta::assert_snapshot!(text, @"
    ␛[1mset calls␛[0m
           ␛[1m␛[33mMIXED␛[0m parallel  1/2   50.0 %  2,640 tokens
            ␛[1m␛[32mPASS␛[0m simple    2/2  100.0 %  2,640 tokens

    ␛[1mcalls: trials␛[0m
      pass rate     75.0 % (95 %: 30.1–95.4 %)
      trials        3 passed, 1 failed, of 2 cases
      tokens        4,800 in, 480 out
      agents' time  5.0 s

    ␛[2m  tag    passed    rate         95 %  tokens␛[0m
      joins     3/4  75.0 %  30.1–95.4 %   5,280

    ␛[1mcalls: gates␛[0m
           ␛[1m␛[32mHOLDS␛[0m pass_rate>=0.7 (0.750)

    ␛[1mrun␛[0m
      run         0198c5d2-run
      began       2026-03-01T10:00:00Z
      revision    4f2c9ab with changes
      seed        7
      agent-eval  0.1.0
    ────────────
         ␛[1mSummary␛[0m 1 set, 2 cases, 4 trials: 3 passed, 1 failed;
                 5,280 tokens, 5.0 s of agents' time
            ␛[1m␛[32mPASS␛[0m 1 gate holds; 3 of 4 trials passed (exit code
                 0)

    ␛[1mcalls parallel (repeat 1)␛[0m
            ␛[1m␛[31mfail␛[0m calls: one call is missing

    ␛[1msets␛[0m
           ␛[1mcalls␛[0m 3/4 passed, 75.0 %
    ────────────
            ␛[1m␛[32mPASS␛[0m 1 gate holds; 3 of 4 trials passed (exit code
                 0)
    ");
}

#[test]
fn the_markdown_of_a_run() {
    insta::assert_snapshot!(rich().to_markdown(&ExitRules::default()));
}

#[test]
fn the_junit_of_a_run_that_fails() {
    insta::assert_snapshot!(rich().to_junit(&ExitRules::default()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="agent-eval" tests="12" failures="5" errors="0">
        <testsuite name="calls" tests="2" skipped="0" errors="0" failures="0" time="2.500">
            <testcase name="parallel" classname="calls" time="1.250"/>
            <testcase name="simple" classname="calls" time="1.250"/>
        </testsuite>
        <testsuite name="sql" tests="9" skipped="2" errors="0" failures="4" time="22.500">
            <testcase name="exists" classname="sql" time="3.750">
                <failure message="2/3 trials passed (66.7 %)" type="MIXED">repeat 0:
    error: request the model: connection refused
    error: rows: the checker could not be started
    </failure>
            </testcase>
            <testcase name="group-by" classname="sql" time="3.750">
                <failure message="1/3 trials passed (33.3 %)" type="MIXED">repeats 0, 2:
    fail: rows: the rows differ
      id | total
    - 1 | 20
    + 1 | 10
      2 | 30
    answer: SELECT id, sum(total)
    FROM orders
    GROUP BY 1;
    </failure>
            </testcase>
            <testcase name="left-join" classname="sql" time="3.750">
                <failure message="0/3 trials passed (0.0 %)" type="FAIL">repeats 0, 1, 2:
    fail: rows: no rows
    </failure>
            </testcase>
            <testcase name="limit" classname="sql" time="3.750"/>
            <testcase name="order-by" classname="sql" time="3.750"/>
            <testcase name="window" classname="sql" time="3.750">
                <skipped message="in quarantine: the rubric is being written (until 2026-04-01); 0/3 trials passed (0.0 %)">repeat 0:
    unscored: judge: no rubric
    answer: SELECT 1
    </skipped>
            </testcase>
            <testcase name="gate: pass_rate&gt;=0.5" classname="sql"/>
            <testcase name="gate: no_regression" classname="sql">
                <failure message="worse by 26.7 points, margin 5.0" type="gate"/>
            </testcase>
            <testcase name="gate: cap_hit_rate&lt;=0.3" classname="sql">
                <skipped message="inconclusive: 0.222, the 95 % interval has 0.3"/>
            </testcase>
        </testsuite>
        <testsuite name="agent-eval" tests="1" skipped="0" errors="0" failures="1">
            <testcase name="verdict" classname="agent-eval">
                <failure message="FAIL: sql: no_regression (worse by 26.7 points, margin 5.0)" type="verdict"/>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn the_junit_of_a_run_that_passes_has_no_failures() {
    insta::assert_snapshot!(tolerated().to_junit(&ExitRules::default()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="agent-eval" tests="4" failures="0" errors="0">
        <testsuite name="calls" tests="3" skipped="1" errors="0" failures="0" time="5.000">
            <testcase name="parallel" classname="calls" time="2.500">
                <skipped message="1/2 trials passed (50.0 %); the run&apos;s gates allow it">repeat 1:
    fail: calls: one call is missing
    </skipped>
            </testcase>
            <testcase name="simple" classname="calls" time="2.500"/>
            <testcase name="gate: pass_rate&gt;=0.7" classname="calls"/>
        </testsuite>
        <testsuite name="agent-eval" tests="1" skipped="0" errors="0" failures="0">
            <testcase name="verdict" classname="agent-eval"/>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn the_page_of_a_run() {
    let page = rich().to_html(&ExitRules::default());
    let (_, body) = page.split_once("</style>").unwrap();
    let (body, _) = body.split_once("<script>").unwrap();
    insta::assert_snapshot!(body);
}

#[test]
fn every_rendering_tells_the_verdict_of_the_exit_code() {
    let mut incomplete = tolerated();
    incomplete.missing = 3;
    let mut ill = tolerated();
    ill.infrastructure_errors = 4;
    for (report, code) in [(tolerated(), 0), (rich(), 100), (incomplete, 106), (ill, 101)] {
        let rules = ExitRules::default();
        let verdict = report.verdict(&rules);
        assert_eq!(verdict.exit_code(), code);
        let text = verdict.to_string();
        let word = text.split_once(": ").unwrap().0;
        let told = format!("(exit code {code})");
        let printed = report.to_text(&TextOptions::default());
        let last = printed.rsplit("────\n").next().unwrap();
        assert!(last.trim_start().starts_with(word) && last.ends_with(&format!("{told}\n")), "{printed}");
        let markdown = report.to_markdown(&rules);
        assert!(markdown.starts_with(&format!("## Evaluation: {word}\n")) && markdown.contains(&told), "{markdown}");
        let page = report.to_html(&rules);
        assert!(page.contains(&format!("{word}</span>")) && page.contains(&told), "{page}");
        let json: serde_json::Value = serde_json::from_str(&report.to_json(&rules)).unwrap();
        assert_eq!(json["exit_code"], code);
        assert_eq!(json["verdict"], serde_json::to_value(&verdict).unwrap());
        let junit = report.to_junit(&rules);
        let is_red = junit.contains("<failure") || junit.contains("<error");
        assert_eq!(is_red, !matches!(verdict, RunVerdict::Passed(_)), "{junit}");
    }
}
