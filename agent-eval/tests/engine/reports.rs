//! What a reader sees of a run of the engine.

use agent_eval::{ExitRules, Gate, Report, TextOptions};

use crate::support::*;

/// A loop of 5 trials each on 4 cases, without what differs between equal runs.
async fn looped() -> Report {
    const GOOD_AT: [[u32; 5]; 4] = [[1; 5], [1, 1, 2, 2, 2], [2, 3, 3, 4, 0], [1, 0, 0, 0, 0]];
    let subject = writes(5, |trial| match GOOD_AT[number(trial) as usize][trial.key.repeat as usize] {
        0 => Writer::Never,
        good_at => Writer::GoodAt(good_at),
    });
    let gates = ["pass_rate>=0.7", "cap_hit_rate<=0.1"].map(|gate| gate.parse::<Gate>().unwrap());
    let mut options = repeats(5);
    options.report.gates = gates.into();
    let mut report = set_of(ids(4)).run(&subject, options).await.unwrap();
    report.manifest.run = "run".to_owned();
    report.manifest.began = "then".to_owned();
    report.manifest.version = "0".to_owned();
    for set in &mut report.sets {
        set.total.wall_ms = 0;
        set.cases.iter_mut().for_each(|case| case.tally.wall_ms = 0);
    }
    report
}

#[tokio::test]
async fn the_text_of_a_loop() {
    insta::assert_snapshot!(looped().await.to_text(&TextOptions::default()), @"
    set set
            PASS case-0000  5/5  100.0 %   5,000 tokens
            PASS case-0001  5/5  100.0 %   8,600 tokens
           MIXED case-0002  4/5   80.0 %  21,600 tokens
           MIXED case-0003  1/5   20.0 %  29,000 tokens

    set: trials
      pass rate     75.0 % (95 %: 40.0–100.0 %)
      trials        15 passed, 5 failed, of 4 cases
      tokens        64,200 in, 0 out
      agents' time  0.0 s
      pass@k        k=1 75.0 %, k=2 85.0 %, k=3 90.0 %, k=5 100.0 %
      pass^k        k=1 75.0 %, k=2 65.0 %, k=3 60.0 %, k=5 50.0 %

    set: loop
      k  at risk  passed  hazard  pass by k          95 %  at least  resampling  gain    95 % of gain
      1       20       8  40.0 %     40.0 %   10.0–80.0 %    40.0 %      40.0 %  +0.0    +0.0 to +0.0
      2       12       4  33.3 %     60.0 %  20.0–100.0 %    60.0 %      52.5 %  +7.5  -10.0 to +25.0
      3        8       2  25.0 %     70.0 %  40.0–100.0 %    70.0 %      62.5 %  +7.5  -27.5 to +45.0
      4        6       1  16.7 %     75.0 %  40.0–100.0 %    75.0 %      70.0 %  +5.0  -45.0 to +60.0
      5        5       0   0.0 %     75.0 %  40.0–100.0 %    75.0 %      75.0 %  +0.0  -60.0 to +60.0

      k  tokens  per solve  one more solve  mean length
      1   1,000      2,500           2,500         1.00
      2   1,200      2,867           3,600         1.60
      3   1,400      3,257           5,600         2.00
      4   1,600      3,680           9,600         2.30
      5   1,800      4,280               –         2.55

      trials             20, cap 5
      recommended cap    4: no later iteration gains 1.0 points; where none was seen, 20 trials rule out
                         gains above 13.9
      cap hits           5/20 = 25.0 % (95 %: 11.2–46.9 %)
      stops              15 completed, 5 iteration_limit
      accepted at exit   15 good, 0 bad
      not accepted       0 good, 5 bad
      wasted iterations  0
      stalls             0.0 % of later iterations
      oscillations       0.0 % of trials with 3 or more

      iterations at exit
      1  ████████████████████████████████████████ 8
      2  ████████████████████ 4
      3  ██████████ 2
      4  █████ 1
      5  █████████████████████████ 5

       diagnosis feedback does not help: with 5 iterations the loop passes +0.0 points against 5 fresh
                 answers (paired over cases; <= 0)
       diagnosis the recommended cap is supported to 13.9 points only: 20 trials cannot rule out smaller
                 gains

    set: gates
          UNSURE pass_rate>=0.7 (0.750, 95 % 0.400 to 1.000)
          FAILED cap_hit_rate<=0.1 (0.250, 95 % 0.112 to 0.469)

    run
      run         run
      began       then
      revision    –
      seed        0
      agent-eval  0
         warning set: with 4 cases a drop below 62.6 points would go unseen, if a fifth of them change
                 at all
    ────────────
         Summary 1 set, 4 cases, 20 trials: 15 passed, 5 failed; 64,200 tokens, 0.0 s of agents' time
            FAIL set: cap_hit_rate<=0.1 (0.250, 95 % 0.112 to 0.469) (exit code 100)

    set case-0002 (repeat 4)
            fail expected: the answer is not the expected text
                 - good
                 + bad 5
          answer
                 bad 5

    set case-0003 (repeats 1, 2, 3, 4)
            fail expected: the answer is not the expected text
                 - good
                 + bad 5
          answer
                 bad 5
    ────────────
            FAIL set: cap_hit_rate<=0.1 (0.250, 95 % 0.112 to 0.469) (exit code 100)
    ");
}

#[tokio::test]
async fn the_other_renderings_of_a_loop() {
    let (report, rules) = (looped().await, ExitRules::default());
    assert_eq!(Report::from_json(&report.to_json(&rules)).unwrap(), report);
    insta::assert_snapshot!(report.to_junit(&rules), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="agent-eval" tests="7" skipped="1" failures="4" errors="0">
        <testsuite name="set" tests="6" skipped="1" errors="0" failures="3" time="0.000">
            <testcase name="case-0000" classname="set" time="0.000"/>
            <testcase name="case-0001" classname="set" time="0.000"/>
            <testcase name="case-0002" classname="set" time="0.000">
                <failure message="4/5 trials passed (80.0 %)" type="MIXED">repeat 4:
    fail: expected: the answer is not the expected text
    - good
    + bad 5
    answer: bad 5
    </failure>
            </testcase>
            <testcase name="case-0003" classname="set" time="0.000">
                <failure message="1/5 trials passed (20.0 %)" type="MIXED">repeats 1, 2, 3, 4:
    fail: expected: the answer is not the expected text
    - good
    + bad 5
    answer: bad 5
    </failure>
            </testcase>
            <testcase name="gate: pass_rate&gt;=0.7" classname="set">
                <skipped message="inconclusive: 0.750, 95 % 0.400 to 1.000"/>
            </testcase>
            <testcase name="gate: cap_hit_rate&lt;=0.1" classname="set">
                <failure message="0.250, 95 % 0.112 to 0.469" type="gate"/>
            </testcase>
        </testsuite>
        <testsuite name="agent-eval" tests="1" skipped="0" errors="0" failures="1">
            <testcase name="verdict" classname="agent-eval">
                <failure message="FAIL: set: cap_hit_rate&lt;=0.1 (0.250, 95 % 0.112 to 0.469)" type="verdict"/>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
    insta::assert_snapshot!(report.to_markdown(&rules), @r#"
    ## Evaluation: FAIL

    set: cap\_hit\_rate&lt;=0.1 (0.250, 95 % 0.112 to 0.469) (exit code 100)

    1 set, 4 cases, 20 trials: 15 passed, 5 failed; 64,200 tokens, 0.0 s of agents' time

    | set | cases | passed | rate | 95 % | tokens | gates that hold |
    | :-- | --: | --: | --: | --: | --: | --: |
    | `set` | 4 | 15/20 | 75.0 % | 40.0–100.0 % | 64,200 | 0 of 2 |

    - ⚠️ set: with 4 cases a drop below 62.6 points would go unseen, if a fifth of them change at all

    ### `set`

    | gate | verdict | numbers |
    | :-- | :-- | :-- |
    | `pass_rate>=0.7` | UNSURE | 0.750, 95 % 0.400 to 1.000 |
    | `cap_hit_rate<=0.1` | FAILED | 0.250, 95 % 0.112 to 0.469 |

    - pass rate: 75.0 % (95 %: 40.0–100.0 %)
    - trials: 15 passed, 5 failed, of 4 cases
    - tokens: 64,200 in, 0 out
    - agents' time: 0.0 s
    - pass@k: k=1 75.0 %, k=2 85.0 %, k=3 90.0 %, k=5 100.0 %
    - pass^k: k=1 75.0 %, k=2 65.0 %, k=3 60.0 %, k=5 50.0 %

    - **diagnosis:** feedback does not help: with 5 iterations the loop passes +0.0 points against 5 fresh answers (paired over cases; &lt;= 0)
    - **diagnosis:** the recommended cap is supported to 13.9 points only: 20 trials cannot rule out smaller gains

    <details><summary>Loop</summary>

    | k | at risk | passed | hazard | pass by k | 95 % | at least | resampling | gain | 95 % of gain | tokens | per solve | one more solve | mean length |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |
    | 1 | 20 | 8 | 40.0 % | 40.0 % | 10.0–80.0 % | 40.0 % | 40.0 % | +0.0 | +0.0 to +0.0 | 1,000 | 2,500 | 2,500 | 1.00 |
    | 2 | 12 | 4 | 33.3 % | 60.0 % | 20.0–100.0 % | 60.0 % | 52.5 % | +7.5 | -10.0 to +25.0 | 1,200 | 2,867 | 3,600 | 1.60 |
    | 3 | 8 | 2 | 25.0 % | 70.0 % | 40.0–100.0 % | 70.0 % | 62.5 % | +7.5 | -27.5 to +45.0 | 1,400 | 3,257 | 5,600 | 2.00 |
    | 4 | 6 | 1 | 16.7 % | 75.0 % | 40.0–100.0 % | 75.0 % | 70.0 % | +5.0 | -45.0 to +60.0 | 1,600 | 3,680 | 9,600 | 2.30 |
    | 5 | 5 | 0 | 0.0 % | 75.0 % | 40.0–100.0 % | 75.0 % | 75.0 % | +0.0 | -60.0 to +60.0 | 1,800 | 4,280 | – | 2.55 |

    - trials: 20, cap 5
    - recommended cap: 4: no later iteration gains 1.0 points; where none was seen, 20 trials rule out gains above 13.9
    - cap hits: 5/20 = 25.0 % (95 %: 11.2–46.9 %)
    - stops: 15 completed, 5 iteration\_limit
    - accepted at exit: 15 good, 0 bad
    - not accepted: 0 good, 5 bad
    - wasted iterations: 0
    - stalls: 0.0 % of later iterations
    - oscillations: 0.0 % of trials with 3 or more

    | iterations at exit | trials |
    | --: | --: |
    | 1 | 8 |
    | 2 | 4 |
    | 3 | 2 |
    | 4 | 1 |
    | 5 | 5 |

    </details>

    <details><summary>Cases that did not pass in all trials (2 of 4)</summary>

    | case | verdict | passed | rate | quarantine |
    | :-- | :-- | --: | --: | :-- |
    | `case-0002` | MIXED | 4/5 | 80.0 % |  |
    | `case-0003` | MIXED | 1/5 | 20.0 % |  |

    #### `case-0002`, repeat 4

    fail: `expected`: the answer is not the expected text

    ```diff
    - good
    + bad 5
    ```

    answer:

    ```text
    bad 5
    ```

    #### `case-0003`, repeats 1, 2, 3, 4

    fail: `expected`: the answer is not the expected text

    ```diff
    - good
    + bad 5
    ```

    answer:

    ```text
    bad 5
    ```

    </details>

    <details><summary>Run</summary>

    - run: run
    - began: then
    - revision: –
    - seed: 0
    - agent-eval: 0

    </details>
    "#);
}
