//! How far a judge can be trusted.

use std::collections::BTreeMap;

/// Agreement of two raters beyond chance (Cohen 1960): (po - pe) / (1 - pe).
///
/// The arguments count what both passed, only one did, or neither. `None` without counts, or if chance alone would
/// agree always.
pub fn cohen_kappa(both_pass: u64, first_only: u64, second_only: u64, both_fail: u64) -> Option<f64> {
    let [both, first, second, neither] = [both_pass, first_only, second_only, both_fail].map(|count| count as f64);
    let all = both + first + second + neither;
    if all == 0.0 {
        return None;
    }
    let observed = (both + neither) / all;
    let chance = ((both + first) * (both + second) + (second + neither) * (first + neither)) / (all * all);
    (chance < 1.0).then(|| (observed - chance) / (1.0 - chance))
}

/// Agreement of any number of raters on categories (Krippendorff's alpha, nominal): 1 - observed / expected
/// disagreement.
///
/// Each unit lists the categories that its raters chose; units with fewer than two say nothing. `None` if nothing is
/// left, or if all chose one category.
pub fn krippendorff_nominal(units: &[Vec<u32>]) -> Option<f64> {
    let mut totals: BTreeMap<u32, f64> = BTreeMap::new();
    let mut disagreement = 0.0;
    for unit in units.iter().filter(|unit| unit.len() >= 2) {
        let size = unit.len() as f64;
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        for value in unit {
            *counts.entry(*value).or_default() += 1.0;
            *totals.entry(*value).or_default() += 1.0;
        }
        let alike: f64 = counts.values().map(|count| count * (count - 1.0)).sum();
        disagreement += (size * (size - 1.0) - alike) / (size - 1.0);
    }
    let n: f64 = totals.values().sum();
    let expected = n * n - totals.values().map(|count| count * count).sum::<f64>();
    (expected > 0.0).then(|| 1.0 - (n - 1.0) * disagreement / expected)
}

/// A rate that a faulty judge reports, corrected for its faults (Rogan and Gladen 1978):
/// (observed + specificity - 1) / (sensitivity + specificity - 1), within 0 and 1.
///
/// `None` for rates outside of 0 to 1, and for a judge that is no better than chance.
pub fn rogan_gladen(observed: f64, sensitivity: f64, specificity: f64) -> Option<f64> {
    if ![observed, sensitivity, specificity].iter().all(|rate| (0.0..=1.0).contains(rate)) {
        return None;
    }
    let better = sensitivity + specificity - 1.0;
    (better > 0.0).then(|| ((observed + specificity - 1.0) / better).clamp(0.0, 1.0))
}

/// The probability that more than half of so many independent calls are right, each with probability `right`.
///
/// Repeats remove noise, no bias. `None` without calls, or for a probability outside of 0 to 1.
pub fn majority(calls: u32, right: f64) -> Option<f64> {
    if calls == 0 || !(0.0..=1.0).contains(&right) {
        return None;
    }
    if right == 0.0 || right == 1.0 {
        return Some(right);
    }
    // From the sum's largest term outwards would be more exact for thousands of calls; judges are asked a few times.
    let n = f64::from(calls);
    let odds = right.ln() - (1.0 - right).ln();
    let mut log_term = n * (1.0 - right).ln();
    let mut sum = 0.0;
    for k in 1..=calls {
        let k = f64::from(k);
        log_term += ((n - k + 1.0) / k).ln() + odds;
        if k > n / 2.0 {
            sum += log_term.exp();
        }
    }
    Some(sum.min(1.0))
}
