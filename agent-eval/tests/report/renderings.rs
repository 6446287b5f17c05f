//! What readers see.

use agent_eval::{ExitRules, RunVerdict, TextOptions};

use crate::sample::{rich, tolerated};

#[test]
fn the_text_of_a_run() {
    insta::assert_snapshot!(rich().to_text(&TextOptions::default()), @r#"
    set calls
            PASS parallel  1/1  100.0 %  1,320 tokens
            PASS simple    1/1  100.0 %  1,320 tokens

    calls: trials
      pass rate     100.0 % (95 %: 34.2–100.0 %)
      trials        2 passed, of 2 cases
      tokens        2,400 in, 240 out
      agents' time  2.5 s

      tag    passed     rate          95 %  tokens
      joins     2/2  100.0 %  34.2–100.0 %   2,640

    set sql
           MIXED exists     2/3   66.7 %  3,960 tokens
           MIXED group-by   1/3   33.3 %  3,960 tokens
            FAIL left-join  0/3    0.0 %  3,960 tokens
            PASS limit      3/3  100.0 %  3,960 tokens
            PASS order-by   3/3  100.0 %  3,960 tokens
        UNSCORED window     0/3    0.0 %  3,960 tokens  (in quarantine)

    sql: trials
      pass rate     50.0 % (95 %: 29.0–71.0 %)
      trials        9 passed, 5 failed, 3 unscored, 1 with errors, of 6 cases
      tokens        21,600 in, 2,160 out
      agents' time  22.5 s
      pass@k        k=1 50.0 %, k=2 62.0 %, k=3 67.0 %
      pass^k        k=1 50.0 %, k=2 41.0 %, k=3 33.0 %

      tag    passed    rate         95 %  tokens
      joins    9/18  50.0 %  29.0–71.0 %  23,760

    sql: loop
      k  at risk  passed  hazard  pass by k         95 %  at least  resampling  gain   95 % of gain
      1       18       8  44.4 %     44.4 %  25.0–61.0 %    44.4 %      44.4 %  +0.0   +0.0 to +0.0
      2       10       4  40.0 %     66.7 %  44.0–83.0 %    66.7 %      60.0 %  +6.7  -2.0 to +15.0
      3        6       1  16.7 %     72.2 %  50.0–89.0 %    72.2 %      68.0 %  +4.2  -5.0 to +13.0
      4        4       0   0.0 %     72.2 %  50.0–89.0 %    72.2 %           –     –              –

      k  tokens  per solve  one more solve  mean length
      1   1,000      2,250           2,250         1.00
      2   1,450      2,709           3,625         1.56
      3   1,900      3,377          11,400         1.89
      4   2,350      4,100               –         2.11

      trials             18, cap 4
      recommended cap    3: no later iteration gains 1.0 points; where none was seen, 18 trials rule out
                         gains above 15.3
      cap hits           4/18 = 22.2 % (95 %: 9.0–45.2 %)
      stops              13 completed, 1 error, 4 iteration_limit
      accepted at exit   12 good, 1 bad
      not accepted       0 good, 4 bad
      wasted iterations  2
      stalls             10.0 % of later iterations
      oscillations       – of trials with 3 or more

      iterations at exit
      1  ████████████████████████████████████████ 8
      2  ████████████████████ 4
      3  ██████████ 2
      4  ████████████████████ 4

       diagnosis the loop accepts bad drafts: 1 of 13 accepted ones fail the gold checks; pass-by-k
                 beyond their exit assumes that they would have gone on like the others

    sql: judges
      judged outcomes        15, each asked 5 times
      agreement of repeats   0.81 (Krippendorff's alpha)
      agreement with labels  – (Cohen's kappa)
      sensitivity            95.0 %
      specificity            80.0 %
      judged pass rate       60.0 %
      corrected pass rate    53.3 % (Rogan and Gladen)

    sql: against the baseline
      baseline             0198b000-run, 5 cases in both
      difference           -26.7 points (95 %: -61.0 to +8.0)
      evidence             p 0.250, of harm 0.125 (sign flip)
      cases                1 better, 2 worse
      detectable drop      56.0 points
      not in this run      retired
      not in the baseline  window
      changed              sql.model: "small-1" → "small-2"

      case        before      now  points
      left-join  100.0 %    0.0 %  -100.0
      group-by   100.0 %   33.3 %   -66.7
      limit       66.7 %  100.0 %   +33.3

    sql: gates
           HOLDS pass_rate>=0.5 (0.500)
          FAILED no_regression (worse by 26.7 points, margin 5.0)
          UNSURE cap_hit_rate<=0.3 (0.222, the 95 % interval has 0.3)

    run
      run         0198c5d2-run
      began       2026-03-01T10:00:00Z
      revision    4f2c9ab with changes
      seed        7
      agent-eval  0.1.0
         warning sql: changed: sql.model: "small-1" → "small-2"
         warning 1 of 20 trials failed because of the infrastructure; they count as not passed
    ────────────
         Summary 2 sets, 8 cases, 20 trials: 11 passed, 5 failed, 3 unscored, 1 with errors; 26,400
                 tokens, 25.0 s of agents' time
            FAIL sql: no_regression (worse by 26.7 points, margin 5.0) (exit code 100)

    sql exists (repeat 0)
           error request the model: connection refused
           error rows: the checker could not be started

    sql group-by (repeats 0, 2)
            fail rows [0.5]: the rows differ
                   id | total
                 - 1 | 20
                 + 1 | 10
                   2 | 30
          answer
                 SELECT id, sum(total)
                 FROM orders
                 GROUP BY 1;

    sql left-join (repeats 0, 1, 2)
            fail rows: no rows

    sql window (repeat 0)
        unscored judge: no rubric
          answer
                 SELECT 1
    ────────────
            FAIL sql: no_regression (worse by 26.7 points, margin 5.0) (exit code 100)
    "#);
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
            ␛[1m␛[32mPASS␛[0m 1 gates hold; 3 of 4 trials passed (exit code
                 0)

    ␛[1mcalls parallel (repeat 1)␛[0m
            ␛[1m␛[31mfail␛[0m calls: one call is missing
    ────────────
            ␛[1m␛[32mPASS␛[0m 1 gates hold; 3 of 4 trials passed (exit code
                 0)
    ");
}

#[test]
fn the_markdown_of_a_run() {
    insta::assert_snapshot!(rich().to_markdown(&ExitRules::default()), @r#"
    ## Evaluation: FAIL

    sql: no\_regression (worse by 26.7 points, margin 5.0) (exit code 100)

    2 sets, 8 cases, 20 trials: 11 passed, 5 failed, 3 unscored, 1 with errors; 26,400 tokens, 25.0 s of agents' time

    | set | cases | passed | rate | 95 % | tokens | gates that hold |
    | :-- | --: | --: | --: | --: | --: | --: |
    | `calls` | 2 | 2/2 | 100.0 % | 34.2–100.0 % | 2,640 | 0 of 0 |
    | `sql` | 6 | 9/18 | 50.0 % | 29.0–71.0 % | 23,760 | 1 of 3 |

    - ⚠️ sql: changed: sql.model: "small-1" → "small-2"
    - ⚠️ 1 of 20 trials failed because of the infrastructure; they count as not passed

    ### `calls`

    - pass rate: 100.0 % (95 %: 34.2–100.0 %)
    - trials: 2 passed, of 2 cases
    - tokens: 2,400 in, 240 out
    - agents' time: 2.5 s

    <details><summary>Tags</summary>

    | tag | passed | rate | 95 % | tokens |
    | :-- | --: | --: | --: | --: |
    | `joins` | 2/2 | 100.0 % | 34.2–100.0 % | 2,640 |

    </details>

    ### `sql`

    | gate | verdict | numbers |
    | :-- | :-- | :-- |
    | `pass_rate>=0.5` | HOLDS | 0.500 |
    | `no_regression` | FAILED | worse by 26.7 points, margin 5.0 |
    | `cap_hit_rate<=0.3` | UNSURE | 0.222, the 95 % interval has 0.3 |

    - pass rate: 50.0 % (95 %: 29.0–71.0 %)
    - trials: 9 passed, 5 failed, 3 unscored, 1 with errors, of 6 cases
    - tokens: 21,600 in, 2,160 out
    - agents' time: 22.5 s
    - pass@k: k=1 50.0 %, k=2 62.0 %, k=3 67.0 %
    - pass^k: k=1 50.0 %, k=2 41.0 %, k=3 33.0 %

    - **diagnosis:** the loop accepts bad drafts: 1 of 13 accepted ones fail the gold checks; pass-by-k beyond their exit assumes that they would have gone on like the others

    <details><summary>Loop</summary>

    | k | at risk | passed | hazard | pass by k | 95 % | at least | resampling | gain | 95 % of gain | tokens | per solve | one more solve | mean length |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |
    | 1 | 18 | 8 | 44.4 % | 44.4 % | 25.0–61.0 % | 44.4 % | 44.4 % | +0.0 | +0.0 to +0.0 | 1,000 | 2,250 | 2,250 | 1.00 |
    | 2 | 10 | 4 | 40.0 % | 66.7 % | 44.0–83.0 % | 66.7 % | 60.0 % | +6.7 | -2.0 to +15.0 | 1,450 | 2,709 | 3,625 | 1.56 |
    | 3 | 6 | 1 | 16.7 % | 72.2 % | 50.0–89.0 % | 72.2 % | 68.0 % | +4.2 | -5.0 to +13.0 | 1,900 | 3,377 | 11,400 | 1.89 |
    | 4 | 4 | 0 | 0.0 % | 72.2 % | 50.0–89.0 % | 72.2 % | – | – | – | 2,350 | 4,100 | – | 2.11 |

    - trials: 18, cap 4
    - recommended cap: 3: no later iteration gains 1.0 points; where none was seen, 18 trials rule out gains above 15.3
    - cap hits: 4/18 = 22.2 % (95 %: 9.0–45.2 %)
    - stops: 13 completed, 1 error, 4 iteration\_limit
    - accepted at exit: 12 good, 1 bad
    - not accepted: 0 good, 4 bad
    - wasted iterations: 2
    - stalls: 10.0 % of later iterations
    - oscillations: – of trials with 3 or more

    | iterations at exit | trials |
    | --: | --: |
    | 1 | 8 |
    | 2 | 4 |
    | 3 | 2 |
    | 4 | 4 |

    </details>

    <details><summary>Judges</summary>

    - judged outcomes: 15, each asked 5 times
    - agreement of repeats: 0.81 (Krippendorff's alpha)
    - agreement with labels: – (Cohen's kappa)
    - sensitivity: 95.0 %
    - specificity: 80.0 %
    - judged pass rate: 60.0 %
    - corrected pass rate: 53.3 % (Rogan and Gladen)

    </details>

    Against the baseline:

    - baseline: 0198b000-run, 5 cases in both
    - difference: -26.7 points (95 %: -61.0 to +8.0)
    - evidence: p 0.250, of harm 0.125 (sign flip)
    - cases: 1 better, 2 worse
    - detectable drop: 56.0 points
    - not in this run: retired
    - not in the baseline: window
    - changed: sql.model: "small-1" → "small-2"

    <details><summary>Changed cases</summary>

    | case | before | now | points |
    | :-- | --: | --: | --: |
    | `left-join` | 100.0 % | 0.0 % | -100.0 |
    | `group-by` | 100.0 % | 33.3 % | -66.7 |
    | `limit` | 66.7 % | 100.0 % | +33.3 |

    </details>

    <details><summary>Tags</summary>

    | tag | passed | rate | 95 % | tokens |
    | :-- | --: | --: | --: | --: |
    | `joins` | 9/18 | 50.0 % | 29.0–71.0 % | 23,760 |

    </details>

    <details><summary>Cases that did not pass in all trials (4 of 6)</summary>

    | case | verdict | passed | rate | quarantine |
    | :-- | :-- | --: | --: | :-- |
    | `exists` | MIXED | 2/3 | 66.7 % |  |
    | `group-by` | MIXED | 1/3 | 33.3 % |  |
    | `left-join` | FAIL | 0/3 | 0.0 % |  |
    | `window` | UNSCORED | 0/3 | 0.0 % | the rubric is being written (until 2026-04-01) |

    #### `exists`, repeat 0

    error: request the model: connection refused

    error: `rows`: the checker could not be started

    #### `group-by`, repeats 0, 2

    fail: `rows`: the rows differ

    ```diff
      id | total
    - 1 | 20
    + 1 | 10
      2 | 30
    ```

    answer:

    ```text
    SELECT id, sum(total)
    FROM orders
    GROUP BY 1;
    ```

    #### `left-join`, repeats 0, 1, 2

    fail: `rows`: no rows

    #### `window`, repeat 0

    unscored: `judge`: no rubric

    answer:

    ```text
    SELECT 1
    ```

    </details>

    <details><summary>Run</summary>

    - run: 0198c5d2-run
    - began: 2026-03-01T10:00:00Z
    - revision: 4f2c9ab with changes
    - seed: 7
    - agent-eval: 0.1.0

    </details>
    "#);
}

#[test]
fn the_junit_of_a_run_that_fails() {
    insta::assert_snapshot!(rich().to_junit(&ExitRules::default()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="agent-eval" tests="12" skipped="2" failures="5" errors="0">
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
    <testsuites name="agent-eval" tests="4" skipped="1" failures="0" errors="0">
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
