//! What a fresh iteration begins with.

use agent_core::{ChatMessage, Content};

/// One more item of a list.
pub(super) fn note(notes: &mut String, feedback: &str) {
    let separator = if notes.is_empty() { "" } else { "\n" };
    notes.extend([separator, "- ", feedback]);
}

/// All feedback so far, as one text; none if there was none.
pub(super) fn told(notes: &str) -> Option<String> {
    (!notes.is_empty()).then(|| format!("## Feedback\n\n{notes}"))
}

/// How many messages a fresh iteration keeps: those before the mark, and on to the last result of a call from before
/// it. Without its result, a call that the caller approved would run once more.
pub(super) fn kept(messages: &[ChatMessage], mark: usize) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut kept = mark;
    for (at, message) in messages.iter().enumerate().skip(mark) {
        for content in message.contents.iter() {
            match content {
                Content::ToolCall(call) => open.push(&call.id),
                Content::InvalidToolCall { id, .. } => open.push(id),
                Content::ToolResult(result) => match open.iter().position(|id| *id == result.call_id) {
                    Some(call) => drop(open.swap_remove(call)),
                    None => kept = at + 1,
                },
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
    kept
}
