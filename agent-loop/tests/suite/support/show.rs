use agent_core::{ChatMessage, Content, Role, Session};

/// A session's messages as lines: who, and what.
pub(crate) fn said(session: &Session) -> Vec<String> {
    session.messages().iter().map(show).collect()
}

/// `author: parts`; the caller is `user`, other roles than the author's usual ones are named.
pub(crate) fn show(message: &ChatMessage) -> String {
    let author = message.author.as_deref().unwrap_or("user");
    let role = if message.role == Role::System { " (system)" } else { "" };
    let parts: Vec<String> = message.contents.iter().map(part).collect();
    format!("{author}{role}: {}", parts.join(", "))
}

fn part(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::ToolCall(call) => format!("call {} {}", call.name, call.id),
        Content::ToolResult(result) => {
            format!("{} {} = {}", if result.is_error { "error" } else { "result" }, result.call_id, result.text())
        }
        Content::ApprovalRequest(call) => format!("may {} {}?", call.name, call.id),
        Content::ApprovalResponse { call_id, approved, .. } => {
            format!("{} {call_id}", if *approved { "approve" } else { "reject" })
        }
        other => format!("{other:?}"),
    }
}

/// What was said with the role of a user, in order.
pub(crate) fn user_words(messages: &[ChatMessage]) -> Vec<String> {
    messages.iter().filter(|message| message.role == Role::User).map(ChatMessage::text).collect()
}
