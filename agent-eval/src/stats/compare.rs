//! A run against a baseline: always paired by case.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::{
    Interval,
    passes::{finite, mean},
    special::{fair_coin_at_most, normal_quantile, student_quantile, student_tail},
};

/// The exact test of two paired yes-or-no results (`McNemar` 1947).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct McNemar {
    /// The probability of a difference at least as large, in either direction.
    pub two_sided: f64,
    /// The probability of at least as many broken cases: evidence of harm.
    pub one_sided: f64,
}

/// Compares runs of one trial a case: `broken` cases passed and now fail, `fixed` ones the other way round. What did
/// not change says nothing.
///
/// With X ~ Bin(broken + fixed, 1/2): two-sided min(1, 2 P(X <= min(broken, fixed))), one-sided P(X >= broken).
/// (5, 0) is the smallest count all in one direction that is evidence at one-sided 5 %.
pub fn mcnemar(broken: u64, fixed: u64) -> McNemar {
    let n = broken.saturating_add(fixed);
    let two_sided = (2.0 * fair_coin_at_most(broken.min(fixed), n)).min(1.0);
    // P(X >= broken) = P(X <= fixed), since X and n - X are distributed alike.
    let one_sided = fair_coin_at_most(fixed, n);
    McNemar { two_sided, one_sided }
}

/// The paired t test (Student 1908).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedT {
    /// The mean difference, new minus old.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Their ratio.
    pub t: f64,
    /// Two-sided.
    pub p: f64,
    /// Of the mean difference.
    pub interval: Interval,
}

/// Compares the means of the same cases in two runs: repeats or graded scores.
///
/// d = new - old for each case, SE = sd(d) / sqrt(m), t with m - 1 degrees of freedom. `None` unless both have the
/// same length of at least 2, and if all differences are equal and not 0: t is undefined then.
pub fn paired_t(old: &[f64], new: &[f64], confidence: f64) -> Option<PairedT> {
    if old.len() != new.len() || old.len() < 2 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let differences: Vec<f64> = old.iter().zip(new).map(|(old, new)| new - old).collect();
    let count = differences.len() as f64;
    let mean = mean(&differences)?;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let standard_error = finite((variance / count).sqrt())?;
    if differences.iter().all(|d| *d == 0.0) {
        let interval = Interval { low: 0.0, high: 0.0 };
        return Some(PairedT { mean: 0.0, standard_error: 0.0, t: 0.0, p: 1.0, interval });
    }
    if differences.iter().all(|d| *d == differences[0]) {
        return None;
    }
    let t = finite(mean / standard_error)?;
    let p = (2.0 * student_tail(t.abs(), count - 1.0)).min(1.0);
    let half = student_quantile(f64::midpoint(1.0, confidence), count - 1.0)? * standard_error;
    Some(PairedT { mean, standard_error, t, p, interval: Interval { low: mean - half, high: mean + half } })
}

/// The two-sided sign-flip permutation test of paired differences: how often a sum as large in size comes about when
/// each difference has either sign with equal chance (Fisher 1935).
///
/// Exact over all 2^m for m <= 16; else over 10,000 seeded draws, the observed one included. `None` without
/// differences, or if one is not finite.
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<f64> {
    const EXACT: usize = 16;
    const DRAWS: u64 = 10_000;
    if differences.is_empty() {
        return None;
    }
    let observed = finite(differences.iter().sum::<f64>().abs())?;
    let scale: f64 = differences.iter().map(|d| d.abs()).sum();
    let as_large = |signs: &dyn Fn(usize) -> bool| {
        let sum: f64 = differences.iter().enumerate().map(|(i, d)| if signs(i) { *d } else { -d }).sum();
        sum.abs() >= observed - 1e-12 * scale // sums in another order differ in the last digits
    };
    if differences.len() <= EXACT {
        let all = 1_u32 << differences.len();
        let count = (0..all).filter(|bits| as_large(&|i| bits >> i & 1 == 1)).count();
        return Some(count as f64 / f64::from(all));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut words = vec![0_u64; differences.len().div_ceil(64)];
    let count = (0..DRAWS)
        .filter(|_| {
            for word in &mut words {
                *word = rng.next_u64();
            }
            as_large(&|i| words[i / 64] >> (i % 64) & 1 == 1)
        })
        .count();
    Some((count as f64 + 1.0) / (DRAWS as f64 + 1.0))
}

/// P values adjusted for several tests at once (Holm 1979), in the order given: sorted upwards, the i-th of m is
/// multiplied by m - i (i from 0), and none is smaller than the one before it.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max((p_values[at] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[at] = largest;
    }
    adjusted
}

/// The smallest drop of the pass rate that a comparison of so many cases would find with power 0.8 at two-sided 5 %,
/// if the share `discordant_rate` of the cases changes at all: (z(0.975) + z(0.8)) sqrt(rate / cases).
///
/// `None` without cases, or for a rate outside of 0 to 1.
pub fn minimum_detectable_drop(cases: u64, discordant_rate: f64) -> Option<f64> {
    if cases == 0 || !(0.0..=1.0).contains(&discordant_rate) {
        return None;
    }
    Some((normal_quantile(0.975)? + normal_quantile(0.8)?) * (discordant_rate / cases as f64).sqrt())
}
