//! Runs all trials of sets.

use std::{
    collections::HashSet,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use agent_core::{Result, Usage};
use futures::{FutureExt, StreamExt, stream};

use super::{
    CassetteMode, Resume, RunOptions,
    attempt::{Attempt, Attempted, Wall},
    faults::{panicked, retry_after, trial_error},
    identity::{Opened, manifest, open, selected},
    plan::{PlannedCase, SetRun, plan, seed_of},
};
use crate::{EvalSet, Report, ReportBuilder, Subject, Trial, TrialError, TrialKey, TrialSpec, Verdict};

/// The longest wait before a retry that a service may ask for. A quota of a day would hold the run up for a day; such a
/// trial is run again when the run goes on ([`Resume::Errors`]).
const LONGEST_WAIT: Duration = Duration::from_mins(10);

impl EvalSet {
    /// Runs every case of the set as often as it is to be, and reports.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use agent_core::{ChatAgent, testing::ScriptedClient};
    /// use agent_eval::{EvalSet, ExitRules, ReportOptions, RunOptions, subject_fn};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let set: EvalSet = serde_json::from_value(json!({
    ///     "schema": "agent-eval/1",
    ///     "name": "sums",
    ///     "cases": [{ "id": "small", "input": { "text": "2 + 2?" }, "expected": ["4"] }],
    /// }))?;
    /// // Called for each trial: its agent shares nothing with another's.
    /// let adder = subject_fn(|_| {
    ///     let model = ScriptedClient::new().says("4");
    ///     Box::pin(async { Ok(Arc::new(ChatAgent::new("adder", model, Default::default())) as _) })
    /// });
    /// let report = ReportOptions { gates: vec!["pass_rate>=0.9".parse()?], ..Default::default() };
    ///
    /// let report = set.run(&adder, RunOptions { repeats: 3.try_into().ok(), report, ..Default::default() }).await?;
    ///
    /// assert_eq!(report.sets[0].total.passed, 3);
    /// assert_eq!(report.exit_code(&ExitRules::default()), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`run_sets`].
    pub async fn run(&self, subject: &dyn Subject, options: RunOptions) -> Result<Report> {
        run_sets(&[SetRun { set: self, subject, dir: None }], options).await
    }
}

/// Runs several sets, each with its own subject, as one run.
///
/// What goes wrong in a trial is in the report, and ends nothing. Needs a tokio runtime with time; trials run as its
/// tasks, and dropping the future ends them.
///
/// # Errors
/// Before anything runs: no cases, two of one id, unknown ids, a case without a check, a log that cannot be written,
/// or, for a run that goes on, one of other sets, options or models. Later: a log that cannot be written.
pub async fn run_sets(sets: &[SetRun<'_>], options: RunOptions) -> Result<Report> {
    let cases = plan(sets, &options)?;
    let manifest = manifest(sets, &cases, &options);
    let selected = selected(sets, &cases);
    let Opened { manifest, mut log, kept } = open(manifest, &selected, &options)?;
    let mut builder = ReportBuilder::new(manifest, selected, options.report.clone());
    let mut done = HashSet::new();
    if let Some(kept) = kept {
        for trial in kept.trials()? {
            let trial = trial?;
            keep(&mut done, &trial, options.resume);
            builder.add(&trial);
        }
    }
    let run = Run {
        seed: builder.manifest().seed,
        options: &options,
        tokens: AtomicU64::new(builder.tokens()),
        stop: AtomicBool::new(false),
    };
    let planned: u64 = cases.iter().map(|case| u64::from(case.repeats)).sum();
    run.tell(|progress| progress.began(planned, done.len() as u64));
    let done = &done;
    let run = &run;
    // Repeat by repeat: a run that ends early has tried all cases alike.
    let most = cases.iter().map(|case| case.repeats).max().unwrap_or(0);
    let todo = (0..most)
        .flat_map(|repeat| cases.iter().filter(move |case| repeat < case.repeats).map(move |case| (case, repeat)));
    let todo = todo.map(|(case, repeat)| (case, key_of(case, repeat))).filter(|(_, key)| !done.contains(key));
    let mut trials =
        stream::iter(todo).map(|(case, key)| run.trial(case, key)).buffer_unordered(options.concurrency.get());
    while let Some(trial) = trials.next().await {
        let Some(trial) = trial else { continue };
        if let Some(log) = &mut log {
            log.append(&trial)?;
        }
        builder.add(&trial);
        run.tell(|progress| progress.trial_ended(&trial));
    }
    Ok(builder.finish())
}

fn key_of(case: &PlannedCase<'_>, repeat: u32) -> TrialKey {
    TrialKey { set: case.set.name.clone(), case: case.case.id.clone(), repeat }
}

/// The trials of a run that are not run again when it goes on; none if it has not begun.
#[cfg(feature = "cli")]
pub(crate) fn kept(dir: &std::path::Path, resume: Resume) -> Result<HashSet<TrialKey>> {
    let mut kept = HashSet::new();
    if super::log::LogWriter::has_begun(dir) {
        for trial in super::RunLog::open(dir)?.trials()? {
            keep(&mut kept, &trial?, Some(resume));
        }
    }
    Ok(kept)
}

/// A later line of a trial counts, not an earlier one.
fn keep(kept: &mut HashSet<TrialKey>, trial: &Trial, resume: Option<Resume>) {
    if is_run_again(trial, resume) {
        kept.remove(&trial.key);
    } else {
        kept.insert(trial.key.clone());
    }
}

fn is_run_again(trial: &Trial, resume: Option<Resume>) -> bool {
    match resume {
        None | Some(Resume::Missing) => false,
        Some(Resume::Errors) => trial.verdict == Verdict::Error,
        Some(Resume::NotPassed) => trial.verdict != Verdict::Pass,
    }
}

/// What the trials of a run share.
struct Run<'a> {
    options: &'a RunOptions,
    seed: u64,
    /// Tokens used so far.
    tokens: AtomicU64,
    /// Whether no further trial begins.
    stop: AtomicBool,
}

impl Run<'_> {
    fn tell(&self, what: impl FnOnce(&dyn crate::Progress)) {
        if let Some(progress) = &self.options.progress {
            what(&**progress);
        }
    }

    /// Runs a trial, and again while the infrastructure fails; none if no further trial is to begin.
    async fn trial(&self, case: &PlannedCase<'_>, key: TrialKey) -> Option<Trial> {
        let is_spent = || self.options.max_tokens.is_some_and(|most| self.tokens.load(Relaxed) >= most);
        if self.stop.load(Relaxed) || is_spent() {
            return None;
        }
        self.tell(|progress| progress.trial_began(&key));
        let hits = Arc::new(AtomicU32::new(0));
        let seed = seed_of(self.seed, &key);
        let mut retries = 0;
        let (mut usage, mut judge_usage) = (Usage::default(), Usage::default());
        let attempted = loop {
            let attempted = self.attempt(case, &key, seed, &hits).await;
            usage += attempted.usage;
            judge_usage += attempted.judge_usage;
            let used = attempted.usage.total().saturating_add(attempted.judge_usage.total());
            let _ = self.tokens.fetch_update(Relaxed, Relaxed, |tokens| Some(tokens.saturating_add(used)));
            let failed = attempted.error.as_ref().is_some_and(|error| error.infrastructure);
            let delay = attempted.retry_after.unwrap_or_default();
            if !failed || retries >= self.options.retries || is_spent() || delay > LONGEST_WAIT {
                break attempted;
            }
            retries += 1;
            tokio::time::sleep(delay).await;
        };
        let verdict = attempted.verdict();
        if self.options.fail_fast && verdict != Verdict::Pass {
            self.stop.store(true, Relaxed);
        }
        let Attempted { events, turns, stops, iterations, outcomes, answer, stop, error, wall, .. } = attempted;
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        let cassette_hits = hits.load(Relaxed);
        Some(Trial {
            key,
            seed,
            verdict,
            outcomes,
            stop,
            error,
            iterations,
            answer,
            usage,
            judge_usage,
            wall_ms,
            retries,
            cassette_hits,
            events,
            turns,
            stops,
        })
    }

    async fn attempt(&self, case: &PlannedCase<'_>, key: &TrialKey, seed: u64, hits: &Arc<AtomicU32>) -> Attempted {
        let options = self.options;
        let spec = TrialSpec { key, case: &case.case, seed, cassettes: options.cassettes, cassette_hits: hits };
        let agent = match AssertUnwindSafe(case.subject.agent(&spec)).catch_unwind().await {
            Ok(Ok(agent)) => agent,
            Ok(Err(error)) => {
                let mut trial_error = trial_error(&error);
                trial_error.infrastructure = !trial_error.setup;
                return Attempted { retry_after: retry_after(&error), ..failed(trial_error) };
            }
            Err(panic) => return failed(panicked(&*panic)),
        };
        let attempt = Attempt {
            agent,
            case: case.case.clone(),
            checks: case.checks.clone(),
            budget: case.budget,
            loop_name: case.subject.loop_name().map(Into::into),
            timeout: options.timeout,
            gold_scorers: options.gold_scorers,
            wall: if options.cassettes == CassetteMode::Replay { Wall::None } else { Wall::Is },
            unknown_stops: 0,
        };
        let mut task = AbortOnDrop(tokio::spawn(attempt.run()));
        (&mut task.0).await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => failed(panicked(&*panic)),
            Err(error) => failed(TrialError { message: error.to_string(), infrastructure: true, setup: false }),
        })
    }
}

fn failed(error: TrialError) -> Attempted {
    Attempted { error: Some(error), ..Attempted::default() }
}

/// A task that ends with its handle.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
