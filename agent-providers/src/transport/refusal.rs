//! Errors that services report: by a status and a body, or inside a stream.

use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;

use super::delay;
use crate::{ProviderError, ProviderErrorKind};

/// The error that a response with this status, these headers and this body means.
pub(super) fn of_response(status: u16, headers: &HeaderMap, body: &str) -> ProviderError {
    let mut error = match serde_json::from_str::<Value>(body) {
        Ok(body) => of_document(Some(status), &body),
        Err(_) => of_words(Some(status), None, page_text(body)),
    };
    // Nobody follows it, for the key would go there, too.
    if let (300..=399, Some(place)) = (status, headers.get(LOCATION)) {
        error.message = format!("it redirects to {}", excerpt(&String::from_utf8_lossy(place.as_bytes())));
    }
    error.status = Some(status);
    error.retry_after = delay::in_headers(headers).or(error.retry_after);
    error.request_id = request_id(headers);
    error
}

/// The error that a JSON document means, in whichever of the shapes that services use.
pub(crate) fn of_document(status: Option<u16>, body: &Value) -> ProviderError {
    let body = if let Value::Array(items) = body { items.first().unwrap_or(&Value::Null) } else { body };
    let error = if body["error"].is_null() { body } else { &body["error"] };
    let words = |key: &str| error[key].as_str().filter(|text| !text.is_empty());
    let code = words("code").or_else(|| words("status")).or_else(|| words("type"));
    let status = status.or_else(|| u16::try_from(error["code"].as_u64()?).ok());
    let message = error.as_str().or_else(|| words("message")).or_else(|| words("detail"));
    let message = excerpt(&message.map_or_else(|| body.to_string(), str::to_owned));
    let all = format!("{} {message}", error["type"].as_str().unwrap_or_default());
    let kind = in_details(error).unwrap_or_else(|| classify(status, code, &all));
    let mut error = ProviderError { retry_after: delay::in_details(error), ..ProviderError::new(kind, message) };
    error.code = code.map(str::to_owned);
    error
}

/// What Google's details say an error is about (google.rpc, `error_details.proto`): its words and codes are the same for
/// a full minute and a full day, and for a wrong key and a wrong request.
fn in_details(error: &Value) -> Option<ProviderErrorKind> {
    let details = error["details"].as_array()?;
    if details.iter().any(|detail| detail["reason"] == "API_KEY_INVALID") {
        return Some(ProviderErrorKind::Auth);
    }
    let violations = details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
    let quotas = violations.filter_map(|violation| violation["quotaId"].as_str()).collect::<Vec<_>>();
    match quotas.iter().any(|quota| quota.contains("PerDay")) {
        _ if quotas.is_empty() => None,
        true => Some(ProviderErrorKind::Quota),
        false => Some(ProviderErrorKind::RateLimited),
    }
}

fn of_words(status: Option<u16>, code: Option<&str>, message: String) -> ProviderError {
    ProviderError::new(classify(status, code, &message), message)
}

/// The service's id of the request.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["x-request-id", "request-id", "x-goog-request-id", "cf-ray"];
    names.iter().find_map(|name| Some(headers.get(*name)?.to_str().ok()?.to_owned()))
}

/// What an error is about. A service's code says more than its status; only the length of a conversation and a used-up
/// account are sometimes to be read in the words alone.
fn classify(status: Option<u16>, code: Option<&str>, words: &str) -> ProviderErrorKind {
    use ProviderErrorKind as Kind;
    let code = code.unwrap_or_default().to_ascii_lowercase();
    let words = words.to_ascii_lowercase();
    let code_has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    let words_have = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let client_error = status.is_none_or(|status| matches!(status, 400 | 413 | 422));

    if code_has(&["context_length", "exceed_context", "context_window"]) || client_error && words_have(TOO_LONG) {
        return Kind::ContextTooLong;
    }
    if status == Some(402) || code_has(&["insufficient_quota", "billing", "credit"]) || words_have(NO_CREDIT) {
        return Kind::Quota;
    }
    if code_has(&["content_filter", "content_policy", "safety", "moderation"]) {
        return Kind::Blocked;
    }
    match status {
        Some(401 | 403) => Kind::Auth,
        Some(408 | 504) => Kind::TimeOut,
        Some(429) => Kind::RateLimited,
        Some(503 | 529) => Kind::Overloaded,
        Some(409 | 500..) => Kind::Server,
        Some(_) => Kind::BadRequest,
        None if code_has(&["rate_limit", "resource_exhausted", "too_many"]) => Kind::RateLimited,
        None if code_has(&["overloaded", "unavailable"]) => Kind::Overloaded,
        None if code_has(&["authentication", "permission", "api_key", "unauthenticated"]) => Kind::Auth,
        None if code_has(&["invalid", "not_found", "bad_request"]) => Kind::BadRequest,
        None if code_has(&["timeout", "deadline"]) => Kind::TimeOut,
        None => Kind::Server,
    }
}

const TOO_LONG: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
    "maximum context",
    "input token count",
    "exceed context limit",
];

const NO_CREDIT: &[&str] =
    &["insufficient_quota", "credit balance", "exceeded your current quota, please check your plan"];

/// The words of a page, without its tags; an error page by a proxy says little, but not nothing.
fn page_text(page: &str) -> String {
    let mut words = String::new();
    for piece in page.split('<') {
        let text = piece.split_once('>').map_or(piece, |(_, text)| text);
        words.push(' ');
        words.push_str(text);
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { "no explanation".into() } else { excerpt(&words) }
}

/// The beginning of a text, as long as an error line bears.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 300; // characters
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod redirect_tests {
    use reqwest::header::{HeaderMap, HeaderValue, LOCATION};

    use super::of_response;

    #[test]
    fn a_redirect_says_where_the_service_is() {
        let place = HeaderValue::from_static("https://api.example.com/v1/chat/completions");
        let headers = HeaderMap::from_iter([(LOCATION, place)]);
        let told = [headers, HeaderMap::new()].map(|headers| {
            let page = "<html><title>Moved</title></html>";
            format!("{:#}", of_response(308, &headers, page).into_error("ask `m`"))
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        ask `m`: the service is at another place; change the base URL: status 308, it redirects to https://api.example.com/v1/chat/completions
        ask `m`: the service is at another place; change the base URL: status 308, Moved
        ");
    }
}

#[cfg(test)]
mod google_tests {
    use serde_json::{Value, json};

    use super::of_document;
    use crate::ProviderErrorKind::{self, Auth, Quota, RateLimited};

    fn kind(status: u16, details: &Value) -> ProviderErrorKind {
        let message = "You exceeded your current quota, please check your plan and billing details.";
        let error = json!({ "error": { "code": status, "message": message, "details": details } });
        of_document(Some(status), &error).kind
    }

    #[test]
    fn the_details_of_google_tell_a_full_minute_from_a_full_day_and_a_wrong_key() {
        let quota = |id| json!([{ "violations": [{ "quotaId": id }] }, { "retryDelay": "38s" }]);
        let kinds = [
            kind(429, &quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")),
            kind(429, &quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
            kind(400, &json!([{ "reason": "API_KEY_INVALID", "domain": "googleapis.com" }])),
            kind(429, &json!([])),
        ];
        assert_eq!(kinds, [RateLimited, Quota, Auth, Quota]);
    }
}
