//! What text, Markdown and HTML show alike: tables, and facts with names.

use super::tally::CONFIDENCE;
use super::words::{
    NONE, count, duration, of_these, or_none, passed, percent, percent_of, point_range, points, range, rounded,
    verdicts,
};
use crate::{
    Comparison, Confusion, GateVerdict, JudgeReport, LoopReport, Manifest, Report, SetReport, Tally, stats::wilson,
};

/// A table whose first column names its rows.
pub(super) struct Table {
    pub(super) headers: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// What is named, and what it is.
pub(super) type Fact = (&'static str, String);

impl Report {
    /// All trials of all sets. No interval: sets are no sample of anything.
    pub(super) fn all_trials(&self) -> Tally {
        let mut all = Tally::sum(self.sets.iter().map(|set| &set.total));
        let trials = all.trials();
        all.rate = (trials > 0).then(|| all.passed as f64 / trials as f64);
        all
    }

    /// The run in one sentence.
    pub(super) fn totals(&self) -> String {
        let all = self.all_trials();
        let cases = self.sets.iter().map(|set| set.cases.len() as u64).sum();
        let sets = of_these(self.sets.len() as u64, "set");
        let (cases, trials) = (of_these(cases, "case"), of_these(all.trials(), "trial"));
        let (tokens, wall) = (count(all.usage.total()), duration(all.wall_ms));
        let judges = match all.judge_usage.total() {
            0 => String::new(),
            judges => format!(" and {} of judges", count(judges)),
        };
        format!("{sets}, {cases}, {trials}: {}; {tokens} tokens{judges}, {wall} of agents' time", verdicts(&all))
    }
}

/// A set in one sentence: how many trials passed and, of a loop, how many by each iteration, beside asking afresh.
pub(super) fn outcome(set: &SetReport) -> String {
    let mut text = format!("{} passed, {}", passed(&set.total), percent_of(set.total.rate));
    if let Some(LoopReport { pass_by, resampling, .. }) = &set.loops {
        let afresh: Vec<f64> = resampling.iter().map_while(|share| *share).collect();
        for (how, shares) in [("iteration", pass_by), ("asking afresh", &afresh)] {
            let shares: Vec<String> = shares.iter().map(|share| format!("{:.1}", share * 100.0)).collect();
            if !shares.is_empty() {
                text = format!("{text}; by {how} {} %", shares.join(", "));
            }
        }
    }
    text
}

pub(super) fn manifest_facts(manifest: &Manifest) -> Vec<Fact> {
    let dirty = if manifest.dirty { " with changes" } else { "" };
    let revision = manifest.revision.as_ref().map(|revision| format!("{revision}{dirty}"));
    vec![
        ("run", manifest.run.clone()),
        ("began", manifest.began.clone()),
        ("revision", or_none(revision)),
        ("seed", manifest.seed.to_string()),
        ("agent-eval", manifest.version.clone()),
    ]
}

pub(super) fn set_facts(set: &SetReport) -> Vec<Fact> {
    let Tally { rate, interval, usage, wall_ms, .. } = &set.total;
    let mut facts = vec![
        ("pass rate", format!("{} (95 %: {})", percent_of(*rate), range(*interval))),
        ("trials", format!("{}, of {}", verdicts(&set.total), of_these(set.cases.len() as u64, "case"))),
        ("tokens", format!("{} in, {} out", count(usage.input_tokens), count(usage.output_tokens))),
        ("agents' time", duration(*wall_ms)),
    ];
    if set.pass_at.len() > 1 {
        let last = set.pass_at.len() as u64;
        let shown = || set.pass_at.iter().filter(|at| matches!(at.k, 1..=3 | 5 | 10 | 20) || at.k == last);
        let by_k = |of: fn(&crate::PassAt) -> Option<f64>| {
            shown().map(|at| format!("k={} {}", at.k, percent_of(of(at)))).collect::<Vec<_>>().join(", ")
        };
        facts.push(("pass@k", by_k(|at| at.any)));
        facts.push(("pass^k", by_k(|at| at.all)));
    }
    facts
}

pub(super) fn tags(set: &SetReport) -> Table {
    let row = |(tag, tally): (&String, &Tally)| {
        vec![tag.clone(), passed(tally), percent_of(tally.rate), range(tally.interval), count(tally.usage.total())]
    };
    Table { headers: vec!["tag", "passed", "rate", "95 %", "tokens"], rows: set.tags.iter().map(row).collect() }
}

/// How many iterations the lists of a loop tell of.
pub(super) fn iterations(report: &LoopReport) -> usize {
    [report.pass_by.len(), report.exits.len(), report.tokens.len(), report.at_risk.len()].into_iter().max().unwrap_or(0)
}

pub(super) fn loop_table(report: &LoopReport) -> Table {
    let number = |list: &[u64], at: usize| or_none(list.get(at).map(|number| count(*number)));
    let share = |list: &[Option<f64>], at: usize| percent_of(list.get(at).copied().flatten());
    let plain = |list: &[f64], at: usize| percent_of(list.get(at).copied());
    let tokens = |list: &[Option<f64>], at: usize| or_none(list.get(at).copied().flatten().map(rounded));
    let row = |at: usize| {
        vec![
            (at + 1).to_string(),
            number(&report.at_risk, at),
            number(&report.passed, at),
            share(&report.hazard, at),
            plain(&report.pass_by, at),
            range(report.pass_by_interval.get(at).copied().flatten()),
            plain(&report.pass_by_errors_fail, at),
            share(&report.resampling, at),
            or_none(report.advantage.get(at).copied().flatten().map(points)),
            point_range(report.advantage_interval.get(at).copied().flatten()),
            or_none(report.tokens.get(at).copied().map(rounded)),
            tokens(&report.cost_per_solved, at),
            tokens(&report.marginal_cost, at),
            or_none(report.expected_iterations.get(at).map(|mean| format!("{mean:.2}"))),
        ]
    };
    Table {
        headers: vec![
            "k",
            "at risk",
            "passed",
            "hazard",
            "pass by k",
            "95 %",
            "at least",
            "resampling",
            "gain",
            "95 % of gain",
            "tokens",
            "per solve",
            "one more solve",
            "mean length",
        ],
        rows: (0..iterations(report)).map(row).collect(),
    }
}

pub(super) fn loop_facts(report: &LoopReport) -> Vec<Fact> {
    let hits = &report.cap_hits;
    let Confusion { accepted_good, accepted_bad, rejected_good, rejected_bad } = report.confusion;
    let stops: Vec<String> = report.stops.iter().map(|(stop, number)| format!("{} {stop}", count(*number))).collect();
    let looked_for = format!("no later iteration gains {:.1} points", report.min_gain * 100.0);
    let support = report.supported_gain.map_or_else(String::new, |gain| {
        format!("; where none was seen, {} rule out gains above {:.1}", of_these(report.trials, "trial"), gain * 100.0)
    });
    vec![
        ("trials", format!("{}, cap {}", count(report.trials), report.cap)),
        (
            "recommended cap",
            report.recommended_cap.map_or(NONE.to_owned(), |cap| format!("{cap}: {looked_for}{support}")),
        ),
        ("cap hits", format!("{} = {} (95 %: {})", passed(hits), percent_of(hits.rate), range(hits.interval))),
        ("stops", if stops.is_empty() { NONE.to_owned() } else { stops.join(", ") }),
        (
            "accepted at exit",
            format!(
                "{accepted_good} good, {accepted_bad} bad (precision {})",
                percent_of(report.confusion.precision())
            ),
        ),
        (
            "not accepted",
            format!("{rejected_good} good, {rejected_bad} bad (recall {})", percent_of(report.confusion.recall())),
        ),
        ("wasted iterations", count(report.wasted_iterations)),
        ("stalls", format!("{} of later iterations", percent_of(report.stall_rate))),
        ("oscillations", format!("{} of trials with 3 or more", percent_of(report.oscillation_rate))),
    ]
}

pub(super) fn judge_facts(judges: &JudgeReport) -> Vec<Fact> {
    let agreement = |value: Option<f64>| or_none(value.map(|value| format!("{value:.2}")));
    let Confusion { accepted_good, accepted_bad, rejected_good, rejected_bad } = judges.labels;
    let labels = match judges.labels.all() {
        0 => "none: how often the judge is right is not known".to_owned(),
        all => format!(
            "{}: of {} the judge accepts {accepted_good}, of {} {accepted_bad}",
            count(all),
            of_these(accepted_good + rejected_good, "good answer"),
            of_these(accepted_bad + rejected_bad, "bad one"),
        ),
    };
    let measured = |share: Option<f64>, part: u64, all: u64| {
        let interval = share.and_then(|_| wilson(part, all, CONFIDENCE));
        format!("{} (95 %: {})", percent_of(share), range(interval))
    };
    vec![
        (
            "judged outcomes",
            format!("{}, each asked {}", count(judges.outcomes), of_these(judges.repeats.into(), "time")),
        ),
        (
            "tokens of judging",
            format!("{} in, {} out", count(judges.usage.input_tokens), count(judges.usage.output_tokens)),
        ),
        ("agreement of repeats", format!("{} (Krippendorff's alpha)", agreement(judges.alpha))),
        ("labels by people", labels),
        ("agreement with labels", format!("{} (Cohen's kappa)", agreement(judges.kappa))),
        ("sensitivity", measured(judges.sensitivity, accepted_good, accepted_good + rejected_good)),
        ("specificity", measured(judges.specificity, rejected_bad, rejected_bad + accepted_bad)),
        ("judged pass rate", percent_of(judges.observed_rate)),
        ("corrected pass rate", format!("{} (Rogan and Gladen)", percent_of(judges.corrected_rate))),
    ]
}

pub(super) fn comparison_facts(comparison: &Comparison) -> Vec<Fact> {
    let p = |value: Option<f64>| or_none(value.map(|p| format!("{p:.3}")));
    let Comparison { baseline, paired, difference, interval, test, .. } = comparison;
    let (better, worse) = (comparison.better.len() as u64, comparison.worse.len() as u64);
    let mut facts = vec![
        ("baseline", format!("{baseline}, {} in both", of_these(*paired, "case"))),
        ("difference", format!("{} points (95 %: {})", points(*difference), point_range(*interval))),
        ("evidence", format!("p {}, of harm {} ({test})", p(comparison.p), p(comparison.p_harm))),
        ("cases", format!("{} better, {} worse", count(better), count(worse))),
        ("detectable drop", or_none(comparison.detectable_drop.map(|drop| format!("{:.1} points", drop * 100.0)))),
    ];
    let lists = [
        ("not in this run", &comparison.missing),
        ("not in the baseline", &comparison.new),
        ("changed", &comparison.fingerprint_changes),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        facts.push((name, first_of(list, 10)));
    }
    facts
}

/// The cases that changed, the largest change first.
pub(super) fn changes(comparison: &Comparison) -> Vec<&(String, f64, f64)> {
    let mut changes: Vec<&(String, f64, f64)> = comparison.worse.iter().chain(&comparison.better).collect();
    changes.sort_by(|a, b| (b.1 - b.2).abs().total_cmp(&(a.1 - a.2).abs()));
    changes
}

pub(super) fn change_table(comparison: &Comparison, most: usize) -> Table {
    let row = |(id, old, new): &(String, f64, f64)| vec![id.clone(), percent(*old), percent(*new), points(new - old)];
    Table {
        headers: vec!["case", "before", "now", "points"],
        rows: changes(comparison).into_iter().take(most).map(row).collect(),
    }
}

pub(super) fn gate_word(verdict: GateVerdict) -> &'static str {
    match verdict {
        GateVerdict::Passed => "HOLDS",
        GateVerdict::Failed => "FAILED",
        GateVerdict::Inconclusive => "UNSURE",
    }
}

fn first_of(list: &[String], most: usize) -> String {
    let rest = list.len().saturating_sub(most);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    format!("{}{more}", list[..list.len() - rest].join(", "))
}
