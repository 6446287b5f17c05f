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
    "run".clone_into(&mut report.manifest.run);
    "then".clone_into(&mut report.manifest.began);
    "0".clone_into(&mut report.manifest.version);
    for set in &mut report.sets {
        set.total.wall_ms = 0;
        set.cases.iter_mut().for_each(|case| case.tally.wall_ms = 0);
    }
    report
}

#[tokio::test]
async fn the_text_of_a_loop() {
    insta::assert_snapshot!(looped().await.to_text(&TextOptions::default()));
}

#[tokio::test]
async fn the_other_renderings_of_a_loop() {
    let (report, rules) = (looped().await, ExitRules::default());
    assert_eq!(Report::from_json(&report.to_json(&rules)).unwrap(), report);
    insta::assert_snapshot!("the_junit_of_a_loop", report.to_junit(&rules));
    insta::assert_snapshot!("the_markdown_of_a_loop", report.to_markdown(&rules));
}
