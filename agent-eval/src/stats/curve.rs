//! Loops as survival: how many iterations it takes to pass.

use super::passes::finite;

/// When a trial first passed the gold check, whatever the loop's own evaluators thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FirstPass {
    /// In this iteration, from 1.
    At(u32),
    /// It failed in all of so many iterations, and nothing is known of later ones.
    NeverWithin(u32),
    /// It failed before this iteration's verdict: an error or a time-out in it.
    Censored(u32),
}

/// The curve of passes by iteration; index 0 is iteration 1.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopCurve {
    /// Trials that were still failing when the iteration began, without those censored in it.
    pub at_risk: Vec<u64>,
    /// Those of them that passed in it.
    pub passed: Vec<u64>,
    /// Their share: the probability to pass now after failing before. None where nobody was left.
    pub hazard: Vec<Option<f64>>,
    /// The probability to have passed by the end of the iteration (Kaplan and Meier 1958).
    pub pass_by: Vec<f64>,
    /// Its standard error for one trial a case (Greenwood 1926).
    pub standard_error: Vec<f64>,
    /// The mean number of iterations of a loop with this cap.
    pub expected_iterations: Vec<f64>,
}

/// The curve of these trials up to a cap (Kaplan and Meier 1958, with the variance of Greenwood 1926).
///
/// With n(k) at risk and d(k) passing: hazard h = d/n, S(k) = Π (1 - h), pass-by-k 1 - S(k), variance
/// S² Σ d / (n (n - d)), expected iterations at cap k = Σ S(j) for j < k. `None` without trials or iterations.
pub fn loop_curve(trials: &[FirstPass], cap: u32) -> Option<LoopCurve> {
    if trials.is_empty() || cap == 0 {
        return None;
    }
    let iterations = cap as usize;
    let mut curve = LoopCurve {
        at_risk: Vec::with_capacity(iterations),
        passed: Vec::with_capacity(iterations),
        hazard: Vec::with_capacity(iterations),
        pass_by: Vec::with_capacity(iterations),
        standard_error: Vec::with_capacity(iterations),
        expected_iterations: Vec::with_capacity(iterations),
    };
    let (mut survival, mut variance, mut expected) = (1.0_f64, 0.0, 0.0);
    for k in 1..=cap {
        let at_risk = trials.iter().filter(|trial| trial.is_at_risk(k)).count() as u64;
        let passed = trials.iter().filter(|trial| **trial == FirstPass::At(k)).count() as u64;
        expected += survival;
        let (n, d) = (at_risk as f64, passed as f64);
        if at_risk > 0 {
            survival *= 1.0 - d / n;
            variance += if passed < at_risk { d / (n * (n - d)) } else { 0.0 };
        }
        curve.at_risk.push(at_risk);
        curve.passed.push(passed);
        curve.hazard.push((at_risk > 0).then(|| d / n));
        curve.pass_by.push(1.0 - survival);
        curve.standard_error.push(survival * f64::sqrt(variance));
        curve.expected_iterations.push(expected);
    }
    Some(curve)
}

impl FirstPass {
    fn is_at_risk(self, iteration: u32) -> bool {
        match self {
            Self::At(last) | Self::NeverWithin(last) => iteration <= last,
            Self::Censored(broken) => iteration < broken,
        }
    }
}

/// The smallest cap after which no measured iteration gains as much as `min_gain`; 0.01 is usual. `None` without a
/// curve.
pub fn choose_cap(pass_by: &[f64], min_gain: f64) -> Option<u32> {
    let gains = |k: usize| pass_by[k] - if k == 0 { 0.0 } else { pass_by[k - 1] };
    let last = (0..pass_by.len()).rev().find(|k| *k == 0 || gains(*k) >= min_gain)?;
    u32::try_from(last + 1).ok()
}

/// The largest gain that an iteration may have although it gained nothing in so many trials:
/// 1 - (1 - confidence)^(1 / trials). So "under one point" needs 299 trials at 95 %.
///
/// `None` without trials, or if the confidence is not between 0 and 1.
pub fn supported_gain(trials: u64, confidence: f64) -> Option<f64> {
    if trials == 0 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    finite(-((1.0 - confidence).ln() / trials as f64).exp_m1())
}
