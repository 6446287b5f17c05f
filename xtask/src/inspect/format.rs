//! Numbers, times and texts, as people read them.

use std::time::{Duration, UNIX_EPOCH};

use agent_core::Usage;
use uuid::Uuid;

/// The time in a version 7 UUID, in milliseconds since 1970.
pub(super) fn millis_of(id: Uuid) -> Option<u64> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    seconds.checked_mul(1000)?.checked_add(u64::from(nanos) / 1_000_000)
}

/// A point in time, in UTC.
pub(super) fn instant(millis: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    // Later than the year 9999 is beyond RFC 3339.
    let known = time.filter(|_| millis < 253_402_300_800_000);
    known.map_or_else(|| "a time unknown".to_owned(), |time| humantime::format_rfc3339_seconds(time).to_string())
}

/// A distance from the session's beginning, in milliseconds: `+1.250s`, `+2:03.500`, `+1d 02:03:04`.
pub(super) fn offset(millis: i64) -> String {
    let sign = if millis < 0 { '-' } else { '+' };
    let millis = millis.unsigned_abs();
    let (seconds, rest) = (millis / 1000, millis % 1000);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days > 0 {
        format!("{sign}{days}d {:02}:{:02}:{:02}", hours % 24, minutes % 60, seconds % 60)
    } else if hours > 0 {
        format!("{sign}{hours}:{:02}:{:02}", minutes % 60, seconds % 60)
    } else if minutes > 0 {
        format!("{sign}{minutes}:{:02}.{rest:03}", seconds % 60)
    } else {
        format!("{sign}{seconds}.{rest:03}s")
    }
}

/// How long something took.
pub(super) fn duration(millis: u64) -> String {
    if millis < 1000 { format!("{millis} ms") } else { humantime::format_duration(rounded(millis)).to_string() }
}

/// To what a person cares for: tenths below a minute, else seconds.
fn rounded(millis: u64) -> Duration {
    Duration::from_millis(if millis < 60_000 { millis / 100 * 100 } else { millis / 1000 * 1000 })
}

/// A number with its thousands apart.
pub(super) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
pub(super) fn count(n: usize, thing: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", number(n as u64))
}

pub(super) fn tokens(usage: Usage) -> String {
    let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
    let part = |n: u64, name: &str| if n == 0 { String::new() } else { format!(" ({} {name})", number(n)) };
    format!(
        "{} in{}, {} out{}",
        number(input_tokens),
        part(cached_input_tokens, "cached"),
        number(output_tokens),
        part(reasoning_tokens, "thoughts"),
    )
}

/// A text that moves no cursor, changes no color and does not turn the direction of what follows: such characters are
/// shown as their escapes. Line breaks and tabs stay.
pub(super) fn visible(text: &str) -> String {
    let hides = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || (c.is_control() && c != '\n' && c != '\t')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_get_coarser_with_their_size() {
        let offsets = [0, 1_250, 59_999, 123_500, 3_600_000, 93_784_000, -20].map(offset);
        assert_eq!(offsets, ["+0.000s", "+1.250s", "+59.999s", "+2:03.500", "+1:00:00", "+1d 02:03:04", "-0.020s"]);
    }

    #[test]
    fn durations_are_rounded() {
        let durations = [0, 999, 1_234, 61_900, 3_600_000].map(duration);
        assert_eq!(durations, ["0 ms", "999 ms", "1s 200ms", "1m 1s", "1h"]);
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn times_are_of_this_age() {
        let times = [0, 1_764_532_933_000, u64::MAX].map(instant);
        assert_eq!(times, ["1970-01-01T00:00:00Z", "2025-11-30T20:02:13Z", "a time unknown"]);
    }

    #[test]
    fn controls_are_visible() {
        assert_eq!(visible("a\u{1b}[31m\u{202e}b\r\n\tc"), "a\\u{1b}[31m\\u{202e}b\\u{d}\n\tc");
    }
}
