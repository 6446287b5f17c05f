//! Rates of passing, and how sure they are.

use super::special::normal_quantile;

/// pass@k, unbiased: the probability that at least one of k trials passes, from n trials of a case of which c passed.
///
/// 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374). The plug-in 1 - (1 - c/n)^k is biased low. `None`
/// if n < k or c > n.
///
/// ```
/// assert!((agent_eval::stats::pass_at_k(5, 2, 3).unwrap() - 0.9).abs() < 1e-12);
/// ```
pub fn pass_at_k(n: u64, c: u64, k: u64) -> Option<f64> {
    if n < k || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    let all_fail: f64 = (n - c + 1..=n).map(|j| 1.0 - k as f64 / j as f64).product();
    Some(1.0 - all_fail)
}

/// pass^k, unbiased: the probability that all of k trials pass, from n trials of a case of which c passed.
///
/// C(c, k) / C(n, k) (Yao et al. 2024, arXiv:2406.12045). (c/n)^k is biased high. `None` if n < k or c > n.
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> Option<f64> {
    if n < k || c > n {
        return None;
    }
    if c < k {
        return Some(0.0);
    }
    Some((0..k).map(|i| (c - i) as f64 / (n - i) as f64).product())
}

/// What simply asking again would do: the mean pass@k of cases, each with n independent first drafts of which c pass.
///
/// `None` without cases, or if a case has fewer than k drafts.
pub fn resampling_baseline(cases: &[(u64, u64)], k: u64) -> Option<f64> {
    let each: Option<Vec<f64>> = cases.iter().map(|(n, c)| pass_at_k(*n, *c, k)).collect();
    mean(&each?)
}

/// A range in which a value lies with a stated confidence.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The score interval of a rate (Wilson 1927; recommended for small n by Brown, Cai and `DasGupta` 2001).
///
/// With z the normal quantile and p = successes / n: center (p + z²/2n) / (1 + z²/n), half width
/// z sqrt(p(1-p)/n + z²/4n²) / (1 + z²/n), within 0 and 1. For independent trials: trials of one case, or one trial
/// of each case. `None` if n is 0, successes > n, or the confidence is not between 0 and 1.
pub fn wilson(successes: u64, n: u64, confidence: f64) -> Option<Interval> {
    if n == 0 || successes > n || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let z = normal_quantile(f64::midpoint(1.0, confidence))?;
    let (p, size) = (successes as f64 / n as f64, n as f64);
    let scale = 1.0 + z * z / size;
    let center = (p + z * z / (2.0 * size)) / scale;
    let half = z * (p * (1.0 - p) / size + z * z / (4.0 * size * size)).sqrt() / scale;
    // At the ends the formula is exact, and rounding must not move it.
    let low = if successes == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if successes == n { 1.0 } else { (center + half).min(1.0) };
    Some(Interval { low, high })
}

/// The standard error of the mean of all values, whose clusters (cases with their repeats, or cases of one source)
/// are independent of each other.
///
/// sqrt(C/(C-1) · Σ over clusters of (Σ (s - mean))²) / N (Miller 2024, arXiv:2411.00640, appendix A, with the
/// finite-cluster factor). To be used with t of C - 1 degrees of freedom. Clusters without values do not count.
/// `None` for fewer than 2 clusters.
pub fn clustered_standard_error(clusters: &[Vec<f64>]) -> Option<f64> {
    let clusters: Vec<&Vec<f64>> = clusters.iter().filter(|cluster| !cluster.is_empty()).collect();
    let values: Vec<f64> = clusters.iter().flat_map(|cluster| cluster.iter().copied()).collect();
    if clusters.len() < 2 {
        return None;
    }
    let mean = mean(&values)?;
    let squares: f64 =
        clusters.iter().map(|cluster| cluster.iter().map(|value| value - mean).sum::<f64>().powi(2)).sum();
    let count = clusters.len() as f64;
    finite((count / (count - 1.0) * squares).sqrt() / values.len() as f64)
}

/// The mean; `None` for no values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { finite(values.iter().sum::<f64>() / values.len() as f64) }
}

pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
