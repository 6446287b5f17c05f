//! A run on the terminal, as it streams.

use std::io::Write;

use agent_core::{Content, Delta, Event, Result, Role, StopReason, ToolCall, ToolResult, Update, Updates, Usage};
use agent_loop::IterationRecord;
use anstream::{print, println};
use futures::StreamExt;

/// Prints a run as it streams: answers piece by piece, tool calls with their results, and the iterations of a loop with
/// what was objected to each. Then why the run stopped, and what it used. Thoughts are not shown.
///
/// # Errors
/// The run's.
pub async fn print_run(mut updates: Updates<'_>) -> Result<StopReason> {
    let mut printer = Printer::default();
    while let Some(update) = updates.next().await {
        match update? {
            Update::Delta(Delta::Text(text)) => printer.piece(&text),
            Update::Delta(Delta::Reasoning(_) | Delta::ToolArguments { .. }) => (),
            Update::Event(event) => printer.event(&event),
            Update::Done(stop) => {
                printer.summary(stop);
                return Ok(stop);
            }
        }
    }
    unreachable!("a run ends with `Done` or an error");
}

#[derive(Default)]
struct Printer {
    /// Whether a line of an answer is open.
    is_streaming: bool,
    /// Whether the last line is empty.
    is_spaced: bool,
    /// How many iterations have ended.
    iterations: usize,
    usage: Usage,
}

impl Printer {
    fn piece(&mut self, text: &str) {
        print!("{text}");
        // A terminal that is gone shows nothing; the next line fails in its stead.
        let _ = std::io::stdout().flush();
        self.is_streaming = true;
        self.is_spaced = false;
    }

    fn event(&mut self, event: &Event) {
        self.usage += event.usage.unwrap_or_default();
        let has_streamed = std::mem::take(&mut self.is_streaming);
        if has_streamed {
            println!();
        }
        self.is_spaced &= event.messages.is_empty();
        for message in &event.messages {
            for content in message.contents.iter() {
                match content {
                    Content::Text(text) if message.role == Role::Assistant && !has_streamed => println!("{text}"),
                    Content::ToolCall(call) => println!("-> {}", call_text(call)),
                    Content::ToolResult(result) => println!("{}", result_text(result)),
                    Content::InvalidToolCall { name, raw, why, .. } => println!("-> {name}({raw}): {why}"),
                    Content::Text(_)
                    | Content::Reasoning { .. }
                    | Content::Data { .. }
                    | Content::Uri { .. }
                    | Content::Native { .. }
                    | Content::ApprovalRequest(_)
                    | Content::ApprovalResponse { .. } => (),
                }
            }
        }
        if let Some((_, record)) = IterationRecord::of(event) {
            self.iterations += 1;
            let verdict = match (record.by, record.feedback) {
                (Some(by), Some(feedback)) => format!(", {by}: {feedback}"),
                (Some(by), None) => format!(", {by}"),
                (None, _) => ": accepted".to_owned(),
            };
            println!("[iteration {}{verdict}]\n", self.iterations);
            self.is_spaced = true;
        }
    }

    fn summary(&self, stop: StopReason) {
        let Self { iterations, usage, is_spaced, .. } = self;
        let gap = if *is_spaced { "" } else { "\n" };
        let iterations = if *iterations == 0 { String::new() } else { format!("; iterations: {iterations}") };
        println!("{gap}stop: {stop}{iterations}; tokens: {} in, {} out", usage.input_tokens, usage.output_tokens);
    }
}

/// A call as one would write it.
pub fn call_text(call: &ToolCall) -> String {
    format!("{}({})", call.name, call.arguments)
}

fn result_text(result: &ToolResult) -> String {
    let texts = result.contents.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.as_str()),
        Content::Reasoning { .. }
        | Content::Data { .. }
        | Content::Uri { .. }
        | Content::ToolCall(_)
        | Content::ToolResult(_)
        | Content::InvalidToolCall { .. }
        | Content::Native { .. }
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let mark = if result.is_error { "<- error: " } else { "<- " };
    format!("{mark}{}", text.replace('\n', "\n   "))
}
