//! A set against its baseline, paired by case.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Baseline, tally::CONFIDENCE};
use crate::{
    CaseReport, Comparison, Manifest,
    run::differences,
    stats::{mcnemar, minimum_detectable_drop, paired_t, sign_flip, supported_gain},
};

/// Up to so many pairs the sign-flip test is exact, and used.
const EXACT: usize = 16;

/// Compares. Cases in quarantine, and cases without a trial in this run, are neither better nor worse.
pub(super) fn compare(baseline: &Baseline, cases: &[CaseReport], manifest: &Manifest, seed: u64) -> Comparison {
    let run: BTreeMap<&str, &CaseReport> =
        cases.iter().filter(|case| case.tally.trials() > 0).map(|case| (case.id.as_str(), case)).collect();
    let pairs: Vec<Pair<'_>> = run
        .values()
        .filter(|case| case.quarantine.is_none())
        .filter_map(|case| {
            let old = baseline.cases.get(&case.id).filter(|old| old.trials > 0)?;
            let is_single = old.trials == 1 && case.tally.trials() == 1;
            let new = case.tally.passed as f64 / case.tally.trials() as f64;
            Some(Pair { case, old: old.rate(), new, is_single })
        })
        .collect();
    let changed = |is: fn(f64, f64) -> bool| {
        let pairs = pairs.iter().filter(|pair| is(pair.old, pair.new));
        pairs.map(|pair| (pair.case.id.clone(), pair.old, pair.new)).collect()
    };
    let new = manifest.fingerprint.get(&baseline.set).unwrap_or(&Value::Null);
    let Tested { test, difference, interval, p, p_harm, detectable_drop } = test(&pairs, seed);
    Comparison {
        baseline: baseline.run.clone(),
        paired: pairs.len() as u64,
        missing: baseline.cases.keys().filter(|id| !run.contains_key(id.as_str())).cloned().collect(),
        new: run.keys().filter(|id| !baseline.cases.contains_key(**id)).map(|id| (*id).to_owned()).collect(),
        worse: changed(|old, new| new < old),
        better: changed(|old, new| new > old),
        difference,
        interval,
        test: test.to_owned(),
        p,
        p_harm,
        detectable_drop,
        fingerprint_changes: differences(&baseline.fingerprint, new),
    }
}

struct Pair<'a> {
    case: &'a CaseReport,
    old: f64,
    new: f64,
    /// Whether it is one trial against one.
    is_single: bool,
}

struct Tested {
    test: &'static str,
    difference: f64,
    interval: Option<crate::stats::Interval>,
    p: Option<f64>,
    p_harm: Option<f64>,
    detectable_drop: Option<f64>,
}

/// One trial a case: `McNemar`. Repeats: sign flips for few cases, else t. Cases of one source count as one.
fn test(pairs: &[Pair<'_>], seed: u64) -> Tested {
    let units = units(pairs);
    let (old, new): (Vec<f64>, Vec<f64>) = units.iter().copied().unzip();
    let differences: Vec<f64> = units.iter().map(|(old, new)| new - old).collect();
    let difference = if units.is_empty() { 0.0 } else { differences.iter().sum::<f64>() / units.len() as f64 };
    let t = paired_t(&old, &new, CONFIDENCE);
    let broken = differences.iter().filter(|d| **d < 0.0).count() as u64;
    let fixed = differences.iter().filter(|d| **d > 0.0).count() as u64;
    let is_single = units.len() == pairs.len() && pairs.iter().all(|pair| pair.is_single);
    // Both tests are symmetric, so half of the two-sided value is that of the direction seen.
    let harm = |p: f64| if difference < 0.0 { p / 2.0 } else { 1.0 - p / 2.0 };
    let (test, p, p_harm) = if is_single {
        let p = mcnemar(broken, fixed);
        ("mcnemar", Some(p.two_sided), Some(p.one_sided))
    } else if let Some(t) = t.filter(|_| units.len() > EXACT) {
        ("paired t", Some(t.p), Some(harm(t.p)))
    } else {
        let p = sign_flip(&differences, seed);
        ("sign flip", p, p.map(harm))
    };
    let count = units.len() as u64;
    // Of single trials this is the share that changed. Where nothing changed, changes may still be as frequent as so many
    // cases cannot rule out.
    let changed = if broken + fixed > 0 {
        Some(differences.iter().map(|d| d * d).sum::<f64>() / count as f64)
    } else {
        supported_gain(count, CONFIDENCE)
    };
    Tested {
        test,
        difference,
        interval: t.map(|t| t.interval),
        p,
        p_harm,
        detectable_drop: changed.and_then(|changed| minimum_detectable_drop(count, changed)).map(|drop| drop.min(1.0)),
    }
}

/// Old and new rate of what is independent: cases, and means over the cases of a group.
fn units(pairs: &[Pair<'_>]) -> Vec<(f64, f64)> {
    let mut units: BTreeMap<(bool, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for pair in pairs {
        let key = pair.case.group.as_deref().map_or((false, pair.case.id.as_str()), |group| (true, group));
        units.entry(key).or_default().push((pair.old, pair.new));
    }
    let mean = |members: Vec<(f64, f64)>| {
        let count = members.len() as f64;
        let sum = members.iter().fold((0.0, 0.0), |sum, (old, new)| (sum.0 + old, sum.1 + new));
        (sum.0 / count, sum.1 / count)
    };
    units.into_values().map(mean).collect()
}
