//! From trials to a report.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use agent_core::Result;

use super::{
    Baseline, Gate,
    compare::compare,
    gates::judge_gates,
    judges::judge_report,
    labels::{Label, Labels, of_case},
    loops::loop_report,
    row::Row,
    tally::{Resampling, count, total},
};
use crate::{
    CaseReport, EvalCase, EvalSet, Failure, Manifest, PassAt, REPORT_SCHEMA, Report, RunLog, SetReport, Trial,
    run::date,
    stats::{minimum_detectable_drop, pass_at_k, pass_hat_k},
};

/// How a report is built.
#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// What must hold, for each set.
    pub gates: Vec<Gate>,
    /// What must hold for the sets of these names, beside it.
    pub set_gates: BTreeMap<String, Vec<Gate>>,
    /// What the sets are compared with, each with the baseline of its name.
    pub baselines: Vec<Baseline>,
    /// The gain in passes for which one more iteration is worth it; 0.01 by default.
    pub min_gain: f64,
    /// How often cases are resampled for an interval; 2,000 by default.
    pub resamples: usize,
    /// What people said of answers; judges are measured by it.
    pub labels: Vec<Label>,
    /// The day that quarantines are judged by; the day on which the run began if absent.
    pub today: Option<SystemTime>,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            gates: Vec::new(),
            set_gates: BTreeMap::new(),
            baselines: Vec::new(),
            min_gain: 0.01,
            resamples: 2_000,
            labels: Vec::new(),
            today: None,
        }
    }
}

impl ReportOptions {
    /// What must hold for this set.
    pub(super) fn gates_of<'a>(&'a self, set: &str) -> impl Iterator<Item = &'a Gate> {
        self.gates.iter().chain(self.set_gates.get(set).into_iter().flatten())
    }
}

impl Report {
    /// The report of a logged run. The trials are read one after the other; of each only what is reported is kept.
    ///
    /// # Errors
    /// What keeps the log from being read.
    pub fn of(run: &RunLog, options: ReportOptions) -> Result<Self> {
        let mut builder = ReportBuilder::new(run.manifest().clone(), run.sets().to_vec(), options);
        for trial in run.trials()? {
            builder.add(&trial?);
        }
        Ok(builder.finish())
    }
}

/// A report in the making: it is told of each trial, in any order. Of one that passed it keeps a few hundred bytes, as
/// intervals are over cases and a trial may be replaced; of one that did not pass what the report says of it, too. So
/// 10,000 trials take a few megabytes, whatever was said in them.
#[derive(Debug)]
pub struct ReportBuilder {
    manifest: Manifest,
    sets: Vec<EvalSet>,
    options: ReportOptions,
    labels: Labels,
    /// By set, case and repeat.
    rows: BTreeMap<String, BTreeMap<String, BTreeMap<u32, Row>>>,
    tokens: u64,
}

impl ReportBuilder {
    /// A report without trials yet.
    pub fn new(manifest: Manifest, sets: Vec<EvalSet>, options: ReportOptions) -> Self {
        let labels = Labels::new(&options.labels);
        Self { manifest, sets, options, labels, rows: BTreeMap::new(), tokens: 0 }
    }

    /// One more trial; one that is there already is replaced.
    pub fn add(&mut self, trial: &Trial) {
        self.tokens = self.tokens.saturating_add(trial.usage.total()).saturating_add(trial.judge_usage.total());
        let cases = self.rows.entry(trial.key.set.clone()).or_default();
        cases.entry(trial.key.case.clone()).or_default().insert(trial.key.repeat, Row::of(trial, &self.labels));
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All tokens used, those of judges and of replaced trials included.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// What did not pass, by set: the largest part of what is kept, and moved to the report rather than copied.
    fn take_failures(&mut self) -> BTreeMap<String, Failures> {
        let of_case = |rows: &mut BTreeMap<u32, Row>| {
            rows.values_mut().filter_map(|row| row.failure.take()).map(|failure| *failure).collect::<Vec<Failure>>()
        };
        let of_set = |cases: &mut BTreeMap<String, BTreeMap<u32, Row>>| {
            cases.iter_mut().map(|(case, rows)| (case.clone(), of_case(rows))).collect()
        };
        self.rows.iter_mut().map(|(set, cases)| (set.clone(), of_set(cases))).collect()
    }

    /// The report.
    pub fn finish(mut self) -> Report {
        let mut failures = self.take_failures();
        let today = self.options.today.map_or_else(|| self.manifest.began.chars().take(10).collect(), date);
        let mut warnings = Vec::new();
        let mut sets: Vec<&EvalSet> = self.sets.iter().collect();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        let none = BTreeMap::new();
        let mut reports: Vec<SetReport> = sets
            .iter()
            .map(|set| {
                let rows = self.rows.get(&set.name).unwrap_or(&none);
                SetBuilder { manifest: &self.manifest, options: &self.options, set, rows, today: &today }
                    .build(failures.remove(&set.name).unwrap_or_default(), &mut warnings)
            })
            .collect();
        judge_gates(&mut reports, &self.options, &self.manifest);
        let planned: u64 = self.manifest.sets.values().sum();
        let counted = reports.iter().map(|set| set.total.trials()).sum();
        let missing = planned.saturating_sub(counted);
        if missing > 0 {
            let remedy = self.manifest.completed_by();
            warnings.push(format!("{missing} of {planned} trials are missing: the run is incomplete; {remedy}"));
        }
        let rows = || self.rows.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        let infrastructure_errors = rows().filter(|row| row.infrastructure).count() as u64;
        let setup_errors = rows().filter(|row| row.setup).count() as u64;
        if infrastructure_errors > 0 {
            let text = "failed because of the infrastructure; they count as not passed";
            warnings.push(format!("{infrastructure_errors} of {counted} trials {text}"));
        }
        let schema = REPORT_SCHEMA.to_owned();
        Report {
            schema,
            manifest: self.manifest,
            sets: reports,
            warnings,
            missing,
            infrastructure_errors,
            setup_errors,
        }
    }
}

/// By case, in the order of the repeats.
type Failures = BTreeMap<String, Vec<Failure>>;

/// One set's part of a report in the making.
struct SetBuilder<'a> {
    manifest: &'a Manifest,
    options: &'a ReportOptions,
    set: &'a EvalSet,
    rows: &'a BTreeMap<String, BTreeMap<u32, Row>>,
    today: &'a str,
}

impl SetBuilder<'_> {
    fn build(&self, mut failures: Failures, warnings: &mut Vec<String>) -> SetReport {
        let resampling = Resampling { resamples: self.options.resamples, seed: self.manifest.seed };
        let name = &self.set.name;
        let mut warn = |text: String| warnings.push(format!("{name}: {text}"));
        let mut failures_of = |case: &EvalCase| failures.remove(&case.id).unwrap_or_default();
        let cases = self.set.cases.iter().map(|case| self.case(case, failures_of(case), &mut warn));
        let mut cases: Vec<CaseReport> = cases.collect();
        cases.sort_by(|a, b| a.id.cmp(&b.id));
        let all: Vec<&CaseReport> = cases.iter().collect();
        let in_gates: Vec<&CaseReport> = cases.iter().filter(|case| case.quarantine.is_none()).collect();

        let tags: BTreeSet<&String> = cases.iter().flat_map(|case| &case.tags).collect();
        let of_tag = |tag: &String| {
            let tagged: Vec<&CaseReport> = cases.iter().filter(|case| case.tags.contains(tag)).collect();
            (tag.clone(), total(&tagged, resampling))
        };
        let loop_cases: Vec<(&CaseReport, Vec<&Row>)> =
            in_gates.iter().filter_map(|case| Some((*case, self.rows.get(&case.id)?.values().collect()))).collect();
        let loops = loop_report(&loop_cases, self.options.min_gain, resampling);
        let baseline = self.options.baselines.iter().find(|baseline| baseline.set == *name);
        let comparison = baseline.map(|baseline| compare(baseline, &cases, self.manifest, resampling.seed));
        match &comparison {
            Some(comparison) => {
                for change in &comparison.fingerprint_changes {
                    warn(format!("changed: {change}"));
                }
            }
            None => warn(detectable(cases.len() as u64)),
        }
        let judged = self.set.cases.iter().flat_map(|case| {
            let label = of_case(case);
            let rows = self.rows.get(&case.id).into_iter().flat_map(BTreeMap::values);
            rows.flat_map(|row| &row.judged).map(move |judged| (judged, label))
        });
        let total = total(&all, resampling);
        let judge_usage = total.judge_usage;
        SetReport {
            name: name.clone(),
            total,
            tags: tags.into_iter().map(of_tag).collect(),
            pass_at: pass_at(&all),
            loops,
            judges: judge_report(judged, judge_usage),
            comparison,
            gates: Vec::new(), // when all sets are known
            cases,
        }
    }

    fn case(&self, case: &EvalCase, failures: Vec<Failure>, warn: &mut impl FnMut(String)) -> CaseReport {
        let quarantine = case.quarantine.as_ref().and_then(|quarantine| {
            let lasts = self.today <= quarantine.until.as_str();
            if !lasts {
                warn(format!("the quarantine of case `{}` ended on {}: it is in the gates", case.id, quarantine.until));
            }
            lasts.then(|| format!("{} (until {})", quarantine.reason, quarantine.until))
        });
        let rows = || self.rows.get(&case.id).into_iter().flat_map(BTreeMap::values);
        CaseReport {
            id: case.id.clone(),
            tags: case.tags.union(&self.set.defaults.tags).cloned().collect(),
            group: case.group.clone(),
            tally: count(rows()),
            verdicts: rows().map(|row| row.verdict).collect(),
            quarantine,
            failures,
        }
    }
}

/// Means over cases, for every k that all of them have trials for.
pub(super) fn pass_at(cases: &[&CaseReport]) -> Vec<PassAt> {
    let least = cases.iter().map(|case| case.tally.trials()).min().unwrap_or(0);
    let mean = |of: fn(u64, u64, u64) -> Option<f64>, k| {
        let values: Option<Vec<f64>> = cases.iter().map(|case| of(case.tally.trials(), case.tally.passed, k)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    (1..=least).map(|k| PassAt { k, any: mean(pass_at_k, k), all: mean(pass_hat_k, k) }).collect()
}

/// What so few cases cannot show.
fn detectable(cases: u64) -> String {
    const CHANGED: f64 = 0.2;
    let drop = minimum_detectable_drop(cases, CHANGED).unwrap_or(1.0).min(1.0) * 100.0;
    format!("with {cases} cases a drop below {drop:.1} points would go unseen, if a fifth of them change at all")
}
