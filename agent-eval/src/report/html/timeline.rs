//! One trial as a timeline.

use std::fmt::Write as _;

use agent_core::{ChatMessage, Content, Event, Role, StateChange, ToolCall};
use agent_loop::IterationRecord;

use super::{
    super::words::{count, duration, html, of_these, verdict_word},
    badge, concat,
};
use crate::{
    CallMatcher, CheckOutcome, CheckSpec, EvalCase, ExpectedCalls, Input, IterationTrace, Trial, Verdict,
    run::turns_of, traces::traces,
};

/// How many events of a trial are shown: so many from its beginning, and as many from its end.
const MOST_EVENTS: usize = 150;

/// A trial as a piece of a page: what was said, called and answered, how each iteration was judged, and what the checks
/// say. Of each text so many characters are shown.
pub(super) fn timeline(trial: &Trial, case: Option<&EvalCase>, longest: usize) -> String {
    let verdict = verdict_word(trial.verdict);
    let mut text = format!(
        "<details class=\"trial\"><summary>{} <span>repeat {}</span> <span class=\"dim\">{}</span></summary>\n",
        badge(class(trial.verdict), verdict),
        trial.key.repeat,
        html(&summary(trial))
    );
    let page = Timeline { trial, longest };
    text.push_str("<ol class=\"timeline\">\n");
    page.conversation(&mut text, case);
    text.push_str("</ol>\n");
    if let Some(case) = case {
        page.calls(&mut text, case);
    }
    page.checks(&mut text);
    text.push_str("</details>\n");
    text
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "good",
        Verdict::Unscored => "open",
        Verdict::Fail | Verdict::Error => "bad",
    }
}

fn summary(trial: &Trial) -> String {
    let mut parts = vec![trial.stop.map_or("failed".to_owned(), |stop| stop.to_string())];
    if !trial.iterations.is_empty() {
        parts.push(of_these(trial.iterations.len() as u64, "iteration"));
    }
    parts.push(of_these(trial.usage.total(), "token"));
    if trial.judge_usage.total() > 0 {
        parts.push(format!("{} of judges", count(trial.judge_usage.total())));
    }
    parts.push(duration(trial.wall_ms));
    if trial.retries > 0 {
        parts.push(format!("begun again {}", of_these(trial.retries.into(), "time")));
    }
    if trial.cassette_hits > 0 {
        parts.push(format!("{} from a cassette", of_these(trial.cassette_hits.into(), "answer")));
    }
    parts.push(format!("seed {}", trial.seed));
    parts.join(" · ")
}

struct Timeline<'a> {
    trial: &'a Trial,
    longest: usize,
}

impl Timeline<'_> {
    fn conversation(&self, text: &mut String, case: Option<&EvalCase>) {
        let events = &self.trial.events;
        let said = case.map(turns_of).unwrap_or_default();
        let starts = if self.trial.turns.is_empty() { vec![0] } else { self.trial.turns.clone() };
        if let Some(case) = case.filter(|case| !case.state.is_empty()) {
            let state = case.state.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>();
            self.item(text, "state", "state at the beginning", &state.join("\n"));
        }
        let traces = traces(self.trial);
        for (turn, start) in starts.iter().enumerate() {
            for message in said.get(turn).into_iter().flatten() {
                self.message(text, message, if message.role == Role::User { "caller" } else { "history" }, "");
            }
            let end = starts.get(turn + 1).copied().unwrap_or(events.len()).min(events.len());
            for at in (*start).min(end)..end {
                let left_out = events.len().saturating_sub(2 * MOST_EVENTS);
                if left_out > 0 && at == MOST_EVENTS {
                    self.item(text, "state", "…", &format!("{} more in the log", of_these(left_out as u64, "event")));
                }
                if left_out == 0 || !(MOST_EVENTS..events.len() - MOST_EVENTS).contains(&at) {
                    self.event(text, &events[at], traces[at]);
                }
            }
        }
        if let Some(error) = &self.trial.error {
            let whose = if error.infrastructure { "error of the infrastructure" } else { "error" };
            self.item(text, "failed", whose, &error.message);
        }
    }

    /// One row: who, and what.
    fn item(&self, text: &mut String, class: &str, who: &str, what: &str) {
        self.noted(text, class, who, "", what);
    }

    /// The same with a note behind the name.
    fn noted(&self, text: &mut String, class: &str, who: &str, note: &str, what: &str) {
        let note = if note.is_empty() { String::new() } else { format!(" <span class=\"dim\">{}</span>", html(note)) };
        let _ = writeln!(text, "<li class=\"{class}\"><b>{}</b>{note}{}</li>", html(who), self.block(what));
    }

    fn block(&self, text: &str) -> String {
        let shown: String = text.chars().take(self.longest).collect();
        let rest = text[shown.len()..].chars().count();
        let note = match rest {
            0 => String::new(),
            rest => format!("<span class=\"dim\">… {} more</span>", of_these(rest as u64, "character")),
        };
        if text.is_empty() { String::new() } else { format!("<pre>{}{note}</pre>", html(&shown)) }
    }

    fn event(&self, text: &mut String, event: &Event, trace: Option<&IterationTrace>) {
        if let Some(keep) = event.rewind {
            let what = format!("the context goes back to its first {}", of_these(keep as u64, "message"));
            self.item(text, "state", &event.author, &what);
        }
        if let Some((name, record)) = IterationRecord::of(event) {
            let said = event.messages.iter().map(ChatMessage::text).collect::<Vec<_>>();
            let is_said = record.feedback.as_ref().is_some_and(|feedback| said.contains(feedback));
            let record = IterationRecord { feedback: record.feedback.filter(|_| !is_said), ..record };
            self.iteration(text, &name, &record, trace);
        }
        let used = event.usage.map(|usage| usage.total()).filter(|tokens| *tokens > 0);
        let mut tokens = used.map_or_else(String::new, |tokens| of_these(tokens, "token"));
        for message in &event.messages {
            self.message(text, message, &event.author, &std::mem::take(&mut tokens));
        }
        let own =
            |key: &str| !["loop:", "sequence:", "parallel:", "exit:"].iter().any(|prefix| key.starts_with(prefix));
        for change in event.state.iter().filter(|change| own(change.key())) {
            let what = match change {
                StateChange::Set { key, value } => format!("{key} = {value}"),
                StateChange::Append { key, value } => format!("{key} += {value}"),
                StateChange::Remove { key } => format!("{key} is removed"),
            };
            self.item(text, "state", &format!("{} notes", event.author), &what);
        }
        if event.escalate {
            self.item(text, "state", &event.author, "asks the enclosing loop to end");
        }
    }

    fn message(&self, text: &mut String, message: &ChatMessage, by: &str, mut note: &str) {
        let who = message.author.as_deref().unwrap_or(by);
        let spoken = match message.role {
            Role::Assistant => "agent",
            Role::User | Role::System | Role::Tool => "caller",
        };
        for content in message.contents.iter() {
            let (class, who, what) = match content {
                Content::Text(said) => (spoken, who.to_owned(), said.clone()),
                Content::Reasoning { text, .. } => ("thought", format!("{who} thinks"), text.clone()),
                Content::ToolCall(call) => ("call", format!("{who} calls {}", call.name), pretty(call)),
                Content::ToolResult(result) if result.is_error => {
                    ("failed", "error of a tool".to_owned(), result.text())
                }
                Content::ToolResult(result) => ("result", "result".to_owned(), result.text()),
                Content::InvalidToolCall { name, raw, why, .. } => {
                    ("failed", format!("{who} calls {name}, unreadably ({why})"), raw.clone())
                }
                Content::Data { mime_type, data } => {
                    (spoken, who.to_owned(), format!("[{mime_type}, {}]", of_these(data.len() as u64, "byte")))
                }
                Content::Uri { uri, .. } => (spoken, who.to_owned(), format!("[{uri}]")),
                Content::Native { provider, .. } => {
                    ("state", who.to_owned(), format!("[an item of {provider} itself]"))
                }
                Content::ApprovalRequest(call) => ("call", format!("{who} asks to call {}", call.name), pretty(call)),
                Content::ApprovalResponse { approved, reason, .. } => {
                    let what = if *approved { "approved" } else { "rejected" };
                    ("caller", format!("{who}: {what}"), reason.clone().unwrap_or_default())
                }
            };
            self.noted(text, class, &who, std::mem::take(&mut note), &what);
        }
    }

    fn iteration(&self, text: &mut String, name: &str, record: &IterationRecord, trace: Option<&IterationTrace>) {
        let loops = match (&record.by, trace) {
            (None, Some(trace)) if !trace.accepted => badge("open", "no objection, but not done"),
            (None, _) => badge("good", "nothing objects"),
            (Some(by), _) => badge("bad", &format!("{by} objects")),
        };
        let gold = match trace {
            Some(trace) => format!("gold checks: {} ", badge(class(trace.gold), verdict_word(trace.gold))),
            None => String::new(),
        };
        let number = trace.map_or_else(String::new, |trace| format!(" {}", trace.iteration));
        let tokens = of_these(record.usage.total(), "token");
        let feedback = record.feedback.as_deref().map_or_else(String::new, |feedback| self.block(feedback));
        let _ = writeln!(
            text,
            "<li class=\"iteration\"><b>end of iteration{number} of {}</b> {gold}the loop: {loops} \
             <span class=\"dim\">{tokens}</span>{feedback}</li>",
            html(name)
        );
    }

    /// Expected calls beside those that were made.
    fn calls(&self, text: &mut String, case: &EvalCase) {
        let events = &self.trial.events;
        let of_checks = case
            .checks
            .iter()
            .filter_map(|check| if let CheckSpec::Calls(expected) = check { Some(expected) } else { None });
        for expected in case.expected_calls.iter().chain(of_checks) {
            aligned(text, "calls", expected, events);
        }
        let Input::Turns(turns) = &case.input else { return };
        let starts = if self.trial.turns.is_empty() { vec![0] } else { self.trial.turns.clone() };
        for (number, turn) in turns.iter().enumerate() {
            let (Some(expected), Some(start)) = (&turn.expected_calls, starts.get(number)) else { continue };
            let end = starts.get(number + 1).copied().unwrap_or(events.len());
            aligned(text, &format!("calls of turn {number}"), expected, events.get(*start..end).unwrap_or_default());
        }
    }

    fn checks(&self, text: &mut String) {
        if self.trial.outcomes.is_empty() {
            return;
        }
        let marks = |judgment: &CheckOutcome| {
            judgment.outcome.votes.iter().map(|vote| if *vote { '✓' } else { '✗' }).collect::<String>()
        };
        let row = |whole: &CheckOutcome| {
            let CheckOutcome { check, turn, outcome } = whole;
            let turn = turn.map_or_else(String::new, |turn| format!(" turn {turn}"));
            let value = outcome.value.map_or_else(String::new, |value| format!(" [{value:.3}]"));
            let votes = whole.judgments().map(marks).collect::<Vec<_>>().join(" ");
            let votes = if votes.is_empty() { votes } else { format!(" <span title=\"votes\">{votes}</span>") };
            let reason: String = outcome.reason.chars().take(self.longest).collect();
            let badge = badge(class(outcome.verdict), verdict_word(outcome.verdict));
            format!("<li>{badge} <code>{}</code>{turn}{value}{votes} {}</li>\n", html(check), html(&reason))
        };
        let rows = concat(self.trial.outcomes.iter().map(row));
        let _ = write!(text, "<h4>checks</h4>\n<ul class=\"checks\">\n{rows}</ul>\n");
    }
}

fn pretty(call: &ToolCall) -> String {
    serde_json::to_string_pretty(&call.arguments).unwrap_or_default()
}

fn aligned(text: &mut String, title: &str, expected: &ExpectedCalls, events: &[Event]) {
    let Ok(matcher) = CallMatcher::new(expected) else { return };
    let calls = events.iter().flat_map(|event| &event.messages).flat_map(ChatMessage::tool_calls);
    let row = |[expected, made]: [Option<String>; 2]| {
        let (class, mark) = match (&expected, &made) {
            (Some(_), Some(_)) => ("", "="),
            (Some(_), None) => (" class=\"missing\"", "−"),
            (None, _) => (" class=\"extra\"", "+"),
        };
        let cell = |call: Option<String>| call.map_or_else(String::new, |call| format!("<code>{}</code>", html(&call)));
        format!("<tr{class}><td>{mark}</td><td>{}</td><td>{}</td></tr>\n", cell(expected), cell(made))
    };
    let rows = concat(matcher.aligned(calls).into_iter().map(row));
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        text,
        "<h4>{title}, expected and made</h4>\n<div class=\"scroll\"><table class=\"calls\"><thead><tr><th></th>\
         <th scope=\"col\">expected</th><th scope=\"col\">made</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    );
}
