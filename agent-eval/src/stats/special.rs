//! Distribution functions, to the last few digits.

use std::f64::consts::{PI, SQRT_2};

use statrs::function::{beta::checked_beta_reg, erf::erfc_inv, gamma::checked_gamma_ur};

/// The quantile of Student's t distribution: the value that is not exceeded with probability `p`.
///
/// `degrees` of freedom need not be whole. `None` unless 0 < p < 1 and `degrees` > 0.
///
/// ```
/// assert!((agent_eval::stats::student_quantile(0.975, 9.0).unwrap() - 2.262157162798205).abs() < 1e-12);
/// ```
pub fn student_quantile(p: f64, degrees: f64) -> Option<f64> {
    if !(degrees > 0.0 && degrees.is_finite()) {
        return None;
    }
    quantile(p, |t| student_tail(t, degrees))
}

/// The quantile of the standard normal distribution. `None` unless 0 < p < 1.
pub(super) fn normal_quantile(p: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let wanted = p.min(1.0 - p);
    // The library's own error function is exact to nine digits only; a step of Newton's method doubles them, and takes a
    // hundredth of the time of a search.
    let near = SQRT_2 * erfc_inv(2.0 * wanted);
    // P(Z > z) = Q(1/2, z²/2) / 2 (DLMF 7.11.2).
    let tail = 0.5 * checked_gamma_ur(0.5, near * near / 2.0).unwrap_or(1.0); // undefined for 0 alone
    let density = (-near * near / 2.0).exp() / (2.0 * PI).sqrt();
    let z = near + (tail - wanted) / density;
    Some(if p < 0.5 { -z } else { z })
}

/// The quantile of a symmetric distribution, by its upper tail from 0 on: bisection down to the last digit.
fn quantile(p: f64, tail: impl Fn(f64) -> f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let wanted = p.min(1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while tail(high) > wanted {
        (low, high) = (high, 2.0 * high);
        if !high.is_finite() {
            return None;
        }
    }
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return Some(if p < 0.5 { -middle } else { middle });
        }
        if tail(middle) > wanted { low = middle } else { high = middle }
    }
}

/// P(T > t) of Student's t distribution, for t >= 0.
pub(super) fn student_tail(t: f64, degrees: f64) -> f64 {
    0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// P(X <= k) for X binomial with n trials of probability 1/2.
pub(super) fn fair_coin_at_most(k: u64, n: u64) -> f64 {
    const EXACT: u64 = 1000; // 2^-1000 is still a normal number
    if k >= n {
        return 1.0;
    }
    if n > EXACT {
        return incomplete_beta((n - k) as f64, (k + 1) as f64, 0.5);
    }
    let mut term = (0..n).fold(1.0, |power, _| power / 2.0);
    let mut sum = term;
    for i in 1..=k {
        term *= (n - i + 1) as f64 / i as f64;
        sum += term;
    }
    sum
}

/// The regularized incomplete beta function I(x; a, b) for positive a and b (DLMF 8.17).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    checked_beta_reg(a, b, x.clamp(0.0, 1.0)).expect("a and b are positive, x is between 0 and 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_exact_to_the_last_digits() {
        // Computed with 50 digits.
        let known = [
            (0.975, 1.959_963_984_540_054_2),
            (0.8, 0.841_621_233_572_914_2),
            (0.5, 0.0),
            (0.4, -0.253_347_103_135_799_8),
            (0.995, 2.575_829_303_548_901),
            (1e-9, -5.997_807_015_007_687),
            (1e-200, -30.205_594_179_579_644),
        ];
        for (p, expected) in known {
            let z = normal_quantile(p).unwrap();
            assert!((z - expected).abs() <= 4e-16 * expected.abs(), "{p}: {z}, not {expected}");
        }
        assert_eq!([0.0, 1.0, f64::NAN].map(normal_quantile), [None; 3]);
    }
}
