//! How gates are written.

use std::{fmt, str::FromStr};

use agent_core::{Error, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What must hold of a set. Cases in quarantine are in no gate. What is undefined holds for no gate.
///
/// ```
/// use agent_eval::Gate;
///
/// let gate: Gate = "pass_rate>=0.9".parse()?;
/// assert_eq!(gate, Gate::PassRate(0.9));
/// assert_eq!("hard(safety)".parse::<Gate>()?.to_string(), "hard(safety)");
/// # Ok::<_, agent_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// `pass_rate>=X`: of all trials.
    PassRate(f64),
    /// `pass_at_K>=X`: at least one of K trials passes, as a mean over cases.
    PassAt(u64, f64),
    /// `pass_hat_K>=X`: all of K trials pass, as a mean over cases.
    PassHat(u64, f64),
    /// `case_rate>=X`: the pass rate of every case.
    CaseRate(f64),
    /// `error_rate<=X`: trials whose run or check went wrong.
    ErrorRate(f64),
    /// `cap_hit_rate<=X`: trials whose loop ended at its cap.
    CapHitRate(f64),
    /// `tokens_per_solved<=X`: all tokens of the agents for each trial that passed; those of judging are not the
    /// agents'.
    TokensPerSolved(f64),
    /// `hard(TAG)`: every trial of the cases with this tag passes.
    Hard(String),
    /// `regression<=X`: the pass rate fell by at most X against the baseline. Fails for a larger drop that is
    /// evident, too (one-sided 5 %, adjusted after Holm if several sets of a run have this gate).
    Regression(f64),
    /// `coverage`: every case of the baseline was run.
    Coverage,
}

impl FromStr for Gate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.trim()).ok_or_else(|| {
            let known = "pass_rate>=X, pass_at_K>=X, pass_hat_K>=X, case_rate>=X, error_rate<=X, cap_hit_rate<=X, \
                         tokens_per_solved<=X, regression<=X, hard(TAG), coverage";
            Error::new(
                ErrorKind::Invalid,
                format!("read gate `{text}`: use one of {known}; X is a share from 0 to 1, and a number of tokens"),
            )
        })
    }
}

fn parse(text: &str) -> Option<Gate> {
    if text == "coverage" {
        return Some(Gate::Coverage);
    }
    if let Some(tag) = text.strip_prefix("hard(").and_then(|rest| rest.strip_suffix(')')) {
        return (!tag.is_empty()).then(|| Gate::Hard(tag.to_owned()));
    }
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let share = |text: &str| number(text).filter(|share| *share <= 1.0);
    let count = |text: &str| text.parse::<u64>().ok().filter(|count| *count > 0);
    if let Some((metric, bound)) = text.split_once(">=") {
        let (metric, bound) = (metric.trim(), share(bound)?);
        return match metric {
            "pass_rate" => Some(Gate::PassRate(bound)),
            "case_rate" => Some(Gate::CaseRate(bound)),
            _ => match (metric.strip_prefix("pass_at_"), metric.strip_prefix("pass_hat_")) {
                (Some(k), _) => Some(Gate::PassAt(count(k)?, bound)),
                (_, Some(k)) => Some(Gate::PassHat(count(k)?, bound)),
                (None, None) => None,
            },
        };
    }
    let (metric, bound) = text.split_once("<=")?;
    match metric.trim() {
        "error_rate" => share(bound).map(Gate::ErrorRate),
        "cap_hit_rate" => share(bound).map(Gate::CapHitRate),
        "regression" => share(bound).map(Gate::Regression),
        "tokens_per_solved" => number(bound).map(Gate::TokensPerSolved),
        _ => None,
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PassRate(bound) => write!(f, "pass_rate>={bound}"),
            Self::PassAt(k, bound) => write!(f, "pass_at_{k}>={bound}"),
            Self::PassHat(k, bound) => write!(f, "pass_hat_{k}>={bound}"),
            Self::CaseRate(bound) => write!(f, "case_rate>={bound}"),
            Self::ErrorRate(bound) => write!(f, "error_rate<={bound}"),
            Self::CapHitRate(bound) => write!(f, "cap_hit_rate<={bound}"),
            Self::TokensPerSolved(bound) => write!(f, "tokens_per_solved<={bound}"),
            Self::Hard(tag) => write!(f, "hard({tag})"),
            Self::Regression(bound) => write!(f, "regression<={bound}"),
            Self::Coverage => f.write_str("coverage"),
        }
    }
}

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
