//! Resampling of cases.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::{Interval, passes::finite};

/// What resampling says of a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The standard deviation of the resampled means.
    pub standard_error: f64,
    /// Their percentiles: each end is the smallest mean v with F(v) >= p.
    pub interval: Interval,
}

/// The percentile bootstrap (Efron 1979) of a mean: values, one a case, are drawn with replacement.
///
/// Seeded: the same input gives the same result on every machine. `None` without values or resamples, for values that
/// are not finite, or if the confidence is not between 0 and 1. O(values × resamples).
pub fn bootstrap(values: &[f64], confidence: f64, resamples: usize, seed: u64) -> Option<Bootstrap> {
    if values.is_empty() || resamples == 0 {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = values.len() as u64;
    let mut draw = || values[below(&mut rng, count)];
    let means = (0..resamples).map(|_| {
        let sum: f64 = (0..count).map(|_| draw()).sum();
        (sum / count as f64, 1.0)
    });
    summarize(means.collect(), confidence)
}

/// The percentile bootstrap of any statistics of a sample: each resample is a list of indices below `count`, drawn
/// with replacement, and `statistics` gives its values, always the same number of them. What is drawn is what is
/// independent: cases, or groups of them.
///
/// Seeded as [`bootstrap`]. A value that is not finite in some resamples is left out of them; an interval is `None` if
/// it is never finite. Empty without anything to draw, or if the confidence is not between 0 and 1.
/// O(count × resamples), beside what the statistics cost.
pub fn bootstrap_of(
    count: usize,
    confidence: f64,
    resamples: usize,
    seed: u64,
    mut statistics: impl FnMut(&[usize]) -> Vec<f64>,
) -> Vec<Option<Interval>> {
    if count == 0 || !(confidence > 0.0 && confidence < 1.0) {
        return Vec::new();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = vec![0; count];
    let mut columns: Vec<Vec<(f64, f64)>> = Vec::new();
    for _ in 0..resamples {
        drawn.fill_with(|| below(&mut rng, count as u64));
        let values = statistics(&drawn);
        columns.resize_with(values.len().max(columns.len()), Vec::new);
        for (column, value) in columns.iter_mut().zip(values).filter(|(_, value)| value.is_finite()) {
            column.push((value, 1.0));
        }
    }
    let interval = |column: Vec<(f64, f64)>| {
        if column.is_empty() { None } else { summarize(column, confidence).map(|all| all.interval) }
    };
    columns.into_iter().map(interval).collect()
}

/// As [`bootstrap`], over all n^n resamples: exact. For at most 8 values, else `None`.
pub fn bootstrap_exact(values: &[f64], confidence: f64) -> Option<Bootstrap> {
    const MOST: usize = 8; // 6,435 different resamples
    if values.is_empty() || values.len() > MOST {
        return None;
    }
    let mut sums = Vec::new();
    resamples(values, values.len(), 0.0, 1.0, &mut sums);
    let means = sums.into_iter().map(|(sum, weight)| (sum / values.len() as f64, weight));
    summarize(means.collect(), confidence)
}

/// All ways to draw `left` more values from `values`, each with the number of orders in which it is drawn, up to a
/// common factor: a value that is drawn m times has weight 1/m!.
fn resamples(values: &[f64], left: usize, sum: f64, weight: f64, sums: &mut Vec<(f64, f64)>) {
    let Some((first, rest)) = values.split_first() else {
        if left == 0 {
            sums.push((sum, weight));
        }
        return;
    };
    let mut weight = weight;
    for times in 0..=left {
        if times > 0 {
            weight /= times as f64;
        }
        resamples(rest, left - times, sum + first * times as f64, weight, sums);
    }
}

/// The deviation and the percentiles of weighted means.
fn summarize(mut means: Vec<(f64, f64)>, confidence: f64) -> Option<Bootstrap> {
    if !(confidence > 0.0 && confidence < 1.0) || means.iter().any(|(mean, _)| !mean.is_finite()) {
        return None;
    }
    means.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let total: f64 = means.iter().map(|(_, weight)| weight).sum();
    let center = means.iter().map(|(mean, weight)| mean * weight).sum::<f64>() / total;
    let variance = means.iter().map(|(mean, weight)| (mean - center).powi(2) * weight).sum::<f64>() / total;
    let quantile = |p: f64| {
        let mut below = 0.0;
        let reached = means.iter().find(|(_, weight)| {
            below += weight;
            below >= p * total * (1.0 - 1e-12) // sums of weights are exact to about that
        });
        reached.or(means.last()).map(|(mean, _)| *mean)
    };
    let tail = (1.0 - confidence) / 2.0;
    let interval = Interval { low: quantile(tail)?, high: quantile(1.0 - tail)? };
    Some(Bootstrap { standard_error: finite(variance.sqrt())?, interval })
}

/// A number below `count`, each as likely as the other (Lemire 2019, by rejection).
#[expect(clippy::cast_possible_truncation, reason = "the halves of a product are meant")]
fn below(rng: &mut ChaCha8Rng, count: u64) -> usize {
    let reject = count.wrapping_neg() % count;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(count);
        if wide as u64 >= reject {
            return (wide >> 64) as usize;
        }
    }
}
