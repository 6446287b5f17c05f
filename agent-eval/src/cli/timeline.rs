//! One trial as lines: what was said, called and judged.

use std::time::Duration;

use agent_core::{ChatMessage, Content, Event};

use crate::{
    EvalCase, IterationTrace, Trial,
    report::words::{count, one_line, printable, verdict_word},
    run::turns_of,
    text::cut,
    traces::traces,
};

/// How many characters of a call's arguments or a tool's answer are shown.
const LONGEST: usize = 300;

/// What a line tells of: when, and of what.
pub(super) struct Line {
    /// Since the first event; none for what has no time.
    pub(super) at: Option<Duration>,
    pub(super) text: String,
}

/// The trial's name, and what it came to.
pub(super) fn headline(trial: &Trial) -> String {
    let key = &trial.key;
    let stop = crate::LoopReport::stop_key(trial.stop);
    let tokens = count(trial.usage.total());
    let seconds = Duration::from_millis(trial.wall_ms).as_secs_f64();
    let name = one_line(&format!("{}::{}#{}", key.set, key.case, key.repeat));
    format!("{name}: {}, {stop}, {tokens} tokens, {seconds:.3} s", verdict_word(trial.verdict))
}

/// All of it, in order. Equal trials give equal lines but for their times.
pub(super) fn lines(trial: &Trial, case: Option<&EvalCase>) -> Vec<Line> {
    let mut page = Page { lines: Vec::new(), began: trial.events.first().and_then(time) };
    let says = case.map(turns_of).unwrap_or_default();
    let starts = if trial.turns.is_empty() { vec![0] } else { trial.turns.clone() };
    let mut starts = starts.into_iter().zip(says).peekable();
    for (at, (event, trace)) in trial.events.iter().zip(traces(trial)).enumerate() {
        while let Some((_, said)) = starts.next_if(|(start, _)| *start <= at) {
            page.said(&said);
        }
        // The event that ends an iteration says the feedback, with which the next one begins.
        if let Some(trace) = trace {
            page.iteration(trace);
        }
        page.event(event);
    }
    for (_, said) in starts {
        page.said(&said);
    }
    page.end(trial);
    page.lines
}

fn time(event: &Event) -> Option<Duration> {
    let (seconds, nanos) = event.id.get_timestamp()?.to_unix();
    Some(Duration::new(seconds, nanos))
}

struct Page {
    lines: Vec<Line>,
    began: Option<Duration>,
}

impl Page {
    fn push(&mut self, at: Option<Duration>, text: &str) {
        for (number, line) in printable(text).lines().enumerate() {
            let (at, text) = if number == 0 { (at, line.to_owned()) } else { (None, format!("    {line}")) };
            self.lines.push(Line { at, text });
        }
    }

    fn said(&mut self, messages: &[ChatMessage]) {
        for message in messages {
            let role = format!("{:?}", message.role).to_lowercase();
            self.push(None, &format!("{role}: {}", message.text()));
        }
    }

    fn event(&mut self, event: &Event) {
        let at = time(event).zip(self.began).map(|(now, began)| now.saturating_sub(began));
        let path: Vec<String> = event.path.iter().map(|step| format!("{} {}", step.name, step.iteration)).collect();
        let place = if path.is_empty() { String::new() } else { format!(" ({})", path.join(", ")) };
        let who = format!("{}{place}", event.author);
        for text in event.messages.iter().flat_map(contents) {
            self.push(at, &format!("{who}: {text}"));
        }
        if let Some(rewind) = event.rewind {
            self.push(at, &format!("{who}: forgets all but the first {rewind} messages"));
        }
    }

    fn iteration(&mut self, trace: &IterationTrace) {
        let accepted = if trace.accepted { "accepted" } else { "not accepted" };
        let by = trace.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let feedback = trace.feedback.as_ref().map_or_else(String::new, |feedback| format!(": {feedback}"));
        let gold = verdict_word(trace.gold);
        self.push(None, &format!("== iteration {}: the draft is a {gold}; {accepted}{by}{feedback}", trace.iteration));
    }

    fn end(&mut self, trial: &Trial) {
        if let Some(error) = &trial.error {
            let whose = match (error.setup, error.infrastructure) {
                (true, _) => "the setup's",
                (false, true) => "the infrastructure's",
                (false, false) => "the agent's",
            };
            self.push(None, &format!("error ({whose}): {}", error.message));
        }
        for check in &trial.outcomes {
            let turn = check.turn.map_or_else(String::new, |turn| format!(" (turn {turn})"));
            let value = check.outcome.value.map_or_else(String::new, |value| format!(" [{value}]"));
            let reason =
                if check.outcome.reason.is_empty() { String::new() } else { format!(": {}", check.outcome.reason) };
            let verdict = verdict_word(check.outcome.verdict);
            self.push(None, &format!("check {}{turn}: {verdict}{value}{reason}", check.check));
            for line in check.outcome.diff.iter().flat_map(|diff| diff.lines()) {
                self.push(None, &format!("    {line}"));
            }
        }
    }
}

/// What a message says, part by part.
fn contents(message: &ChatMessage) -> Vec<String> {
    let part = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Reasoning { text, .. } => format!("(thinks) {}", cut(text, LONGEST)),
        Content::ToolCall(call) => format!("calls {} {}", call.name, cut(&call.arguments.to_string(), LONGEST)),
        Content::ToolResult(result) => {
            let failed = if result.is_error { "error of " } else { "" };
            format!("{failed}{} gives {}", result.call_id, cut(&result.text(), LONGEST))
        }
        Content::InvalidToolCall { name, why, .. } => format!("calls {name} with arguments that cannot be read: {why}"),
        Content::Data { .. }
        | Content::Uri { .. }
        | Content::Native { .. }
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => cut(&serde_json::to_string(content).unwrap_or_default(), LONGEST),
    };
    message.contents.iter().map(part).collect()
}
