//! Trials of a run that is there, judged anew.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent_core::{Agent, AgentInfo, Error, ErrorKind, Event, Result, RunContext, Session, StopReason, Update, Updates};
use futures::{StreamExt, stream};

use super::{
    RunLog, RunOptions,
    attempt::{Attempt, Wall},
    identity::{manifest, selected},
    log::LogWriter,
    plan::{PlannedCase, SetRun, plan},
};
use crate::{EvalCase, Report, ReportBuilder, Trial, TrialKey};

/// Judges the trials of a run with the present checks of its cases, and reports. No agent runs, and no model is asked
/// but judges. Trials whose run failed stay as they are; cases that the sets have no more are left out, and the run is
/// partial then. With `log` the result is a run of its own.
///
/// # Errors
/// A log that cannot be read or written, no case that is left, one without a check, and one that says something else
/// now: its trials are no answers to it.
pub async fn score(run: &RunLog, sets: &[SetRun<'_>], options: RunOptions) -> Result<Report> {
    let was: BTreeMap<(&str, &str), &EvalCase> = run
        .sets()
        .iter()
        .flat_map(|set| set.cases.iter().map(move |case| ((set.name.as_str(), case.id.as_str()), case)))
        .collect();
    let recorded: std::collections::BTreeSet<(String, String)> =
        was.keys().map(|(set, case)| ((*set).to_owned(), (*case).to_owned())).collect();
    let filter =
        Arc::new(move |set: &crate::EvalSet, case: &EvalCase| recorded.contains(&(set.name.clone(), case.id.clone())));
    let options = RunOptions { filter: Some(filter), ..options };
    let mut cases = plan(sets, &options)?;
    for case in &mut cases {
        let before = was[&(case.set.name.as_str(), case.case.id.as_str())];
        if (&before.input, &before.state) != (&case.case.input, &case.case.state) {
            let (set, id) = (&case.set.name, &case.case.id);
            let context = format!("score case `{id}` of set `{set}`: it says something else now; run it again");
            return Err(Error::new(ErrorKind::Conflict, context));
        }
        case.repeats = before.repeats.map_or(1, std::num::NonZero::get);
    }
    let new = manifest(sets, &cases, &options);
    let is_partial = run.manifest().partial || cases.len() < was.len();
    let old = run.manifest().clone();
    let new =
        crate::Manifest { run: new.run, began: new.began, sets: new.sets, partial: is_partial, scored: true, ..old };
    let selected = selected(sets, &cases);
    let mut log = options.log.as_ref().map(|dir| LogWriter::create(dir, &new, &selected)).transpose()?;
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

/// An agent that does what another one did: in each run the events of the next turn.
struct Replayed {
    info: AgentInfo,
    turns: Vec<Vec<Event>>,
    next: std::sync::atomic::AtomicUsize,
    /// How each turn ended, if the log says it.
    stops: Vec<StopReason>,
    /// How the last one ended.
    stop: StopReason,
}

impl Replayed {
    fn of(trial: &Trial, stop: StopReason) -> Self {
        let starts = if trial.turns.is_empty() { vec![0] } else { trial.turns.clone() };
        let ends = starts.iter().copied().skip(1).chain([trial.events.len()]).collect::<Vec<_>>();
        let turns = starts.iter().zip(ends).map(|(start, end)| trial.events.get(*start..end).unwrap_or_default());
        let turns = turns.map(<[Event]>::to_vec);
        Self {
            info: AgentInfo::named("replayed"),
            turns: turns.collect(),
            next: 0.into(),
            stops: trial.stops.clone(),
            stop,
        }
    }
}

impl Agent for Replayed {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, session: &'a mut Session, _: &'a RunContext) -> Updates<'a> {
        let turn = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let events = self.turns.get(turn).map(Vec::as_slice).unwrap_or_default();
        // Where the log does not say how an earlier turn ended, the conversation went on after it.
        let earlier = || self.stops.get(turn).copied().unwrap_or(StopReason::Completed);
        let stop = if turn + 1 < self.turns.len() { earlier() } else { self.stop };
        let events = events.iter().map(|event| {
            session.apply(event);
            Ok(Update::Event(event.clone()))
        });
        stream::iter(events.chain([Ok(Update::Done(stop))]).collect::<Vec<_>>()).boxed()
    }
}
