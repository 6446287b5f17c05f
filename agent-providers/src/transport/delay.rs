//! How long a service asks to wait.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// The delay in a response's headers: `retry-after-ms`, else `Retry-After` in seconds or as a date (RFC 9110, section
/// 10.2.3), counted from the response's own `Date` if it has one.
pub(super) fn in_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let now = text("date").and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now);
    let then = httpdate::parse_http_date(after).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

/// The delay in an error's details: Google's `RetryInfo` (google.rpc, `error_details.proto`), such as `"3.5s"`.
pub(super) fn in_details(error: &Value) -> Option<Duration> {
    let delay = error["details"].as_array()?.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}
