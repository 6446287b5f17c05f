//! The sets that replay: their cassettes hold all that a run asks for, and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use agent_eval::{
    Baseline, CaseBaseline, CassetteMode, EvalSet, Gate, ModelSource, Progress, Project, Report, RunOptions,
    TextOptions, Trial,
};
use serde_json::Value;

use super::{Evals, models::CASSETTE};

/// The folder of a set.
pub(super) fn folder(set: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../evals").join(set)
}

/// A set, as it is committed.
pub(super) fn load(set: &str) -> EvalSet {
    EvalSet::load(folder(set)).unwrap()
}

/// What these cases of the set come to offline, or all if none is named, and their trials.
async fn replay(name: &str, cases: &[&str]) -> (Report, Vec<Trial>) {
    #[derive(Default)]
    struct Trials(Mutex<Vec<Trial>>);

    impl Progress for Trials {
        fn trial_ended(&self, trial: &Trial) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(trial.clone());
        }
    }

    let set = load(name);
    let source = ModelSource { cassettes: CassetteMode::Replay, dir: folder(name), ..ModelSource::default() };
    let subject = Evals.subject(name, &set, &source).unwrap().unwrap();
    let trials = std::sync::Arc::new(Trials::default());
    let options = RunOptions {
        cassettes: CassetteMode::Replay,
        cases: cases.iter().map(|case| (*case).to_owned()).collect(),
        progress: Some(trials.clone()),
        ..RunOptions::default()
    };
    let report = set.run(subject.as_ref(), options).await.unwrap();
    let trials = std::mem::take(&mut *trials.0.lock().unwrap());
    (report, trials)
}

/// How many calls are recorded for each trial.
fn recorded(set: &str) -> BTreeMap<(String, u64), u32> {
    // A set that asks no model has no cassette; one that has lost it has failed before.
    let text = std::fs::read_to_string(folder(set).join(CASSETTE)).unwrap_or_default();
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let key = (entry["case"].as_str().unwrap().to_owned(), entry["repeat"].as_u64().unwrap());
        *calls.entry(key).or_default() += 1;
    }
    calls
}

/// The set replays whole, or these cases of it, and as its baseline has it.
async fn assert_replays(set: &str, cases: &[&str]) {
    let (report, trials) = replay(set, cases).await;
    let report = report.sets.into_iter().next().unwrap();
    let first_error = trials.iter().find_map(|trial| Some((&trial.key, &trial.error.as_ref()?.message)));
    assert_eq!(first_error, None);
    assert_eq!((report.total.errors, report.total.unscored), (0, 0));
    let asked: BTreeMap<(String, u64), u32> = trials
        .iter()
        .filter(|trial| trial.cassette_hits > 0)
        .map(|trial| ((trial.key.case.clone(), u64::from(trial.key.repeat)), trial.cassette_hits))
        .collect();
    let is_meant = |case: &str| cases.is_empty() || cases.contains(&case);
    let mut recorded = recorded(set);
    recorded.retain(|(case, _), _| is_meant(case));
    assert_eq!(asked, recorded);

    let baseline = Baseline::read(&folder("baselines").join(format!("{set}.json"))).unwrap();
    let passed = |case: &agent_eval::CaseReport| (case.id.clone(), (case.tally.passed, case.tally.failed));
    let found: BTreeMap<String, (u64, u64)> = report.cases.iter().map(passed).collect();
    let blessed = baseline
        .cases
        .into_iter()
        .filter(|(id, _)| is_meant(id))
        .map(|(id, case)| (id, (case.passed, case.trials - case.passed)));
    assert_eq!(found, blessed.collect());
}

#[tokio::test]
async fn the_set_sql_replays() {
    assert_replays("sql", &[]).await;
}

#[tokio::test]
async fn the_front_page_shows_the_loop_of_sql() {
    let text = replay("sql", &[]).await.0.to_text(&TextOptions::default());
    let start = text.find("sql: loop").unwrap();
    let end = start + text[start..].find("\n\n  iterations at exit").unwrap();
    let shown = &text[start..end];
    assert!(include_str!("../../../README.md").contains(shown), "README.md does not show:\n{shown}");
}

#[tokio::test]
async fn the_set_calls_replays() {
    assert_replays("calls", &[]).await;
}

#[tokio::test]
async fn the_set_rust_replays() {
    // Some of it: each draft is compiled.
    assert_replays("rust", &["acronym", "best_streak", "clamp_all", "count_leap_years"]).await;
}

#[tokio::test]
async fn the_set_sim_comes_to_the_same_everywhere() {
    assert_replays("sim", &[]).await;
}

#[test]
fn the_sets_have_the_cases_that_their_pages_promise() {
    let sizes = |set: &str, kinds: &[&str]| {
        let set = load(set);
        let count = |kind: &&str| set.cases.iter().filter(|case| case.tags.contains(*kind)).count();
        (set.cases.len(), kinds.iter().map(count).collect::<Vec<_>>())
    };
    assert_eq!(sizes("sql", &["easy", "medium", "hard"]), (50, vec![20, 18, 12]));
    assert_eq!(sizes("rust", &["easy", "medium", "hard"]), (30, vec![8, 15, 7]));
    assert_eq!(sizes("calls", &["simple", "multiple", "parallel", "irrelevance"]), (60, vec![20, 14, 14, 12]));
}

/// The gates of CI fail as soon as one trial fails that passed when the baselines were blessed.
#[test]
fn the_gates_of_ci_are_at_the_blessed_pass_rates() {
    let profiles = include_str!("../../../.config/agent-eval.toml");
    for set in Evals.subjects() {
        let gate = format!("\"{set}: ");
        let gate = profiles.lines().find_map(|line| line.trim().strip_prefix(&gate)?.strip_suffix("\","));
        let gate: Gate = gate.unwrap_or_else(|| panic!("no gate of {set}")).parse().unwrap();
        let Gate::PassRate(least) = gate else { panic!("{set}: {gate}") };
        let cases = Baseline::read(&folder("baselines").join(format!("{set}.json"))).unwrap().cases;
        let sum =
            |count: fn(&CaseBaseline) -> u64| f64::from(u32::try_from(cases.values().map(count).sum::<u64>()).unwrap());
        let (passed, trials) = (sum(|case| case.passed), sum(|case| case.trials));
        assert!((passed - 1.0) / trials < least && least <= passed / trials, "{set}: {passed} of {trials}, {least}");
    }
}

#[test]
fn nothing_of_a_set_names_a_local_path() {
    let mut folders = vec![folder("")];
    let (mut files, mut local) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let found = ["/root", "/work", "/home/", "/Users/", "/tmp/"].into_iter().find(|place| text.contains(place));
            local.extend(found.map(|place| (path, place)));
        }
    }
    assert!(files > 40, "{files}");
    assert_eq!(local, []);
}

#[test]
fn no_two_cases_ask_the_same() {
    for set in ["sql", "calls", "rust"] {
        let set = load(set);
        let asked: BTreeSet<String> = set.cases.iter().map(|case| format!("{:?}", case.input)).collect();
        assert_eq!(asked.len(), set.cases.len());
    }
}
