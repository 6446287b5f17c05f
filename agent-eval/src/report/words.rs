//! Numbers and words as all renderings write them.

use std::fmt::Write as _;

use crate::{CaseReport, Failure, Tally, Verdict, stats::Interval};

/// What stands for a value that is not there.
pub(super) const NONE: &str = "–";

/// The sum of a case's trials, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaseVerdict {
    /// All trials passed.
    Pass,
    /// Some passed.
    Mixed,
    /// None passed.
    Fail,
    /// None passed, and some went wrong.
    Error,
    /// Nothing was judged.
    Unscored,
    /// No trial is there.
    NotRun,
}

impl CaseVerdict {
    pub(super) fn of(case: &CaseReport) -> Self {
        let Tally { passed, failed, errors, .. } = case.tally;
        match case.tally.trials() {
            0 => Self::NotRun,
            all if passed == all => Self::Pass,
            _ if passed > 0 => Self::Mixed,
            _ if errors > 0 => Self::Error,
            _ if failed > 0 => Self::Fail,
            _ => Self::Unscored,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Mixed => "MIXED",
            Self::Fail => "FAIL",
            Self::Error => "ERROR",
            Self::Unscored => "UNSCORED",
            Self::NotRun => "NOT RUN",
        }
    }
}

pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Unscored => "unscored",
        Verdict::Error => "error",
    }
}

/// Repeats that failed in the same way.
pub(super) struct SameFailure<'a> {
    repeats: Vec<u32>,
    pub(super) failure: &'a Failure,
}

impl<'a> SameFailure<'a> {
    /// The failures of a case, equal ones once.
    pub(super) fn all(case: &'a CaseReport) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for failure in &case.failures {
            let what = |failure: &'a Failure| (&failure.error, &failure.checks, &failure.answer);
            match found.iter_mut().find(|same| what(same.failure) == what(failure)) {
                Some(same) => same.repeats.push(failure.repeat),
                None => found.push(Self { repeats: vec![failure.repeat], failure }),
            }
        }
        found
    }

    /// Which repeats, counted from 0 as in the log: `repeats 0, 2`.
    pub(super) fn repeats(&self) -> String {
        let repeats: Vec<String> = self.repeats.iter().map(u32::to_string).collect();
        format!("repeat{} {}", if repeats.len() == 1 { "" } else { "s" }, repeats.join(", "))
    }
}

pub(super) fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| NONE.to_owned())
}

/// `66.7 %`.
pub(super) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { NONE.to_owned() }
}

pub(crate) fn percent_of(share: Option<f64>) -> String {
    or_none(share.map(percent))
}

/// `+1.5`, in points.
pub(super) fn points(difference: f64) -> String {
    if difference.is_finite() { format!("{:+.1}", difference * 100.0) } else { NONE.to_owned() }
}

/// `39.1–86.2 %`; signed for differences: `-1.2 to +3.4`.
pub(super) fn range(interval: Option<Interval>) -> String {
    or_none(interval.map(|Interval { low, high }| format!("{:.1}–{:.1} %", low * 100.0, high * 100.0)))
}

pub(super) fn point_range(interval: Option<Interval>) -> String {
    or_none(interval.map(|Interval { low, high }| format!("{} to {}", points(low), points(high))))
}

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A mean of counts, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of tokens, rounded; it saturates")]
pub(super) fn rounded(number: f64) -> String {
    if number.is_finite() { count(number.round() as u64) } else { NONE.to_owned() }
}

/// `1 case`, `2 cases`.
pub(crate) fn of_these(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `0.4 s`, `3 min 20 s`.
pub(crate) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `2/3`.
pub(crate) fn passed(tally: &Tally) -> String {
    format!("{}/{}", tally.passed, tally.trials())
}

/// `30 passed, 9 failed`; what is 0 is left out.
pub(crate) fn verdicts(tally: &Tally) -> String {
    let Tally { passed, failed, unscored, errors, .. } = *tally;
    let parts = [(passed, "passed"), (failed, "failed"), (unscored, "unscored"), (errors, "with errors")];
    let there = parts.iter().filter(|(number, _)| *number > 0);
    let texts: Vec<String> = there.map(|(number, word)| format!("{} {word}", count(*number))).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// The text without what would command a terminal, reorder what is read, or is forbidden in XML: such characters are
/// written as escapes. Line feeds (`\r\n` is one) and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        let reorders = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let is_forbidden = matches!(character, '\u{fffe}' | '\u{ffff}');
        if reorders || is_forbidden || character.is_control() && !matches!(character, '\n' | '\t') {
            let _ = write!(clean, "{}", character.escape_unicode());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text as text of an element or a quoted attribute of HTML.
pub(super) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 8);
    for character in printable(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.4, 1e4, f64::NAN, f64::INFINITY].map(rounded), ["0", "10,000", "–", "–"]);
        assert_eq!([0.0, 2.0 / 3.0, f64::NAN].map(percent), ["0.0 %", "66.7 %", "–"]);
        assert_eq!([0.015, -1.0, f64::NEG_INFINITY].map(points), ["+1.5", "-100.0", "–"]);
        assert_eq!([0, 59_960, 60_000, 7_265_000].map(duration), ["0.0 s", "59.9 s", "1 min 0 s", "2 h 1 min"]);
        assert_eq!([0, 1, 2].map(|number| of_these(number, "case")), ["0 cases", "1 case", "2 cases"]);
    }

    #[test]
    fn what_commands_or_reorders_is_escaped_and_line_feeds_stay() {
        assert_eq!(printable("a\u{1b}[1m\t\u{202e}é\n\u{9b}"), "a\\u{1b}[1m\t\\u{202e}é\n\\u{9b}");
        assert_eq!(one_line(" a\n  b\r\n"), "a b");
    }
}
