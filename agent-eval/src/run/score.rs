//! Trials of a run that is there, judged anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZero,
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};

use super::{
    RunLog, RunOptions,
    attempt::{Attempt, Wall},
    identity::{manifest, selected},
    log::LogWriter,
    plan::{PlannedCase, SetRun, plan},
    replayed::Replayed,
};
use crate::{EvalCase, EvalSet, Manifest, Report, ReportBuilder, Trial, TrialKey};

/// Judges the trials of a run with the present checks of its cases, and reports. No agent runs, and no model is asked
/// but judges. Trials whose run failed stay as they are; cases that the sets have no more are left out, and the run is
/// partial then. With `log` the result is a run of its own.
///
/// # Errors
/// A log that cannot be read or written, no case that is left, one without a check, and one that says something else
/// now: its trials are no answers to it.
pub async fn score(run: &RunLog, sets: &[SetRun<'_>], options: RunOptions) -> Result<Report> {
    let was = cases_of(run);
    let cases = plan_again(&was, sets, &options)?;
    let new = manifest(sets, &cases, &options);
    let partial = run.manifest().partial || cases.len() < was.len();
    let Manifest { run: id, began, sets: trials, .. } = new;
    let new = Manifest { run: id, began, sets: trials, partial, scored: true, ..run.manifest().clone() };
    let selected = selected(sets, &cases);
    let mut log = options.log.as_ref().map(|dir| LogWriter::create(dir, &new, &selected, |_| Ok(()))).transpose()?;
    let mut builder = ReportBuilder::new(new, selected, options.report.clone());
    let by_key: BTreeMap<(&str, &str), &PlannedCase<'_>> =
        cases.iter().map(|case| ((case.set.name.as_str(), case.case.id.as_str()), case)).collect();
    // A trial that was run again has several lines, of which the last one counts.
    let mut last: BTreeMap<TrialKey, usize> = BTreeMap::new();
    for (line, trial) in run.trials()?.enumerate() {
        last.insert(trial?.key, line);
    }
    let judged = run.trials()?.enumerate().filter_map(|(line, trial)| match trial {
        Ok(trial) if last.get(&trial.key) != Some(&line) => None,
        Ok(trial) => {
            let case = *by_key.get(&(trial.key.set.as_str(), trial.key.case.as_str()))?;
            Some(Ok((trial, case)))
        }
        Err(error) => Some(Err(error)),
    });
    let mut judged = stream::iter(judged)
        .map(|found| async { Ok::<_, Error>(judge_again(found?, &options).await) })
        .buffered(options.concurrency.get());
    while let Some(trial) = judged.next().await {
        let trial = trial?;
        if let Some(log) = &mut log {
            log.append(&trial)?;
        }
        builder.add(&trial);
        if let Some(progress) = &options.progress {
            progress.trial_ended(&trial);
        }
    }
    Ok(builder.finish())
}

/// The cases of a run, by set and id.
fn cases_of(run: &RunLog) -> CasesBefore<'_> {
    let all = run.sets().iter().flat_map(|set| set.cases.iter().map(move |case| (set, case)));
    all.map(|(set, case)| (key(set, case), case)).collect()
}

fn key(set: &EvalSet, case: &EvalCase) -> (String, String) {
    (set.name.clone(), case.id.clone())
}

type CasesBefore<'a> = BTreeMap<(String, String), &'a EvalCase>;

/// Those of the cases that the sets still have, as often as they were run.
fn plan_again<'a>(was: &CasesBefore<'_>, sets: &[SetRun<'a>], options: &RunOptions) -> Result<Vec<PlannedCase<'a>>> {
    let recorded: BTreeSet<(String, String)> = was.keys().cloned().collect();
    let filter = Arc::new(move |set: &EvalSet, case: &EvalCase| recorded.contains(&key(set, case)));
    let mut cases = plan(sets, &RunOptions { filter: Some(filter), ..options.clone() })?;
    for case in &mut cases {
        let before = was[&key(case.set, &case.case)];
        if (&before.input, &before.state) != (&case.case.input, &case.case.state) {
            let (set, id) = (&case.set.name, &case.case.id);
            let context = format!("score case `{id}` of set `{set}`: it says something else now; run it again");
            return Err(Error::new(ErrorKind::Conflict, context));
        }
        case.repeats = before.repeats.map_or(1, NonZero::get);
    }
    Ok(cases)
}

async fn judge_again((trial, case): (Trial, &PlannedCase<'_>), options: &RunOptions) -> Trial {
    let (Some(stop), None) = (trial.stop, &trial.error) else { return trial };
    // In a replay time meant nothing.
    let wall = if trial.cassette_hits > 0 { Wall::None } else { Wall::Was(Duration::from_millis(trial.wall_ms)) };
    let attempt = Attempt {
        agent: Arc::new(Replayed::of(&trial, stop)),
        case: case.case.clone(),
        checks: case.checks.clone(),
        budget: None,
        loop_name: case.subject.loop_name().map(Into::into),
        timeout: options.timeout,
        gold_scorers: options.gold_scorers,
        wall,
        unknown_stops: if trial.stops.is_empty() { trial.turns.len().saturating_sub(1) } else { 0 },
    };
    let attempted = attempt.run().await;
    let verdict = attempted.verdict();
    let judge_usage = attempted.judge_usage;
    Trial { verdict, outcomes: attempted.outcomes, iterations: attempted.iterations, judge_usage, ..trial }
}
