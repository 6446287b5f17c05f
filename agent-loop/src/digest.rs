//! A stable hash of what an iteration said and did.

use agent_core::{AgentResponse, ChatMessage, Content, Role, Session};
use serde_json::Value;
use xxhash_rust::xxh64::xxh64;

use crate::{Iteration, outcome::Progress};

/// A hash of the texts, data and calls of a run's assistant messages, without ids and thoughts: the XXH64 of each part,
/// seeded with that of the part before. The order of the keys in arguments does not matter. `begun` is the digest of what
/// the same pass did before it was interrupted: it comes to what it would have come to in one go.
pub(crate) fn digest(begun: Option<u64>, response: &AgentResponse) -> u64 {
    hash(begun.unwrap_or_default(), said(response.messages()))
}

/// What a pass had come to when a crash or an error cut it off, if it had come to anything and the session tells where it
/// began: no record tells it, but its messages stand before those of the rest, `last`. Without it, the rest alone could be
/// taken for a repetition of an earlier pass.
pub(crate) fn cut_off(session: &Session, name: &str, earlier: &[Iteration], last: &AgentResponse) -> Option<u64> {
    let since = session.messages().get(Progress::mark_of(session, name)?..)?;
    let start = match earlier.last() {
        None => 0,
        // A pass that was told nothing begins where nobody can see it.
        Some(Iteration { feedback: None, .. }) => return None,
        Some(_) => since.iter().rposition(|m| m.role == Role::User && m.author.as_deref() == Some(name))? + 1,
    };
    let (all, rest) = (said(&since[start..]).count(), said(last.messages()).count());
    let before = all.checked_sub(rest).filter(|before| *before > 0)?;
    Some(hash(0, said(&since[start..]).take(before)))
}

fn said<'a>(messages: impl IntoIterator<Item = &'a ChatMessage>) -> impl Iterator<Item = &'a ChatMessage> {
    messages.into_iter().filter(|message| message.role == Role::Assistant)
}

fn hash<'a>(begun: u64, said: impl Iterator<Item = &'a ChatMessage>) -> u64 {
    said.flat_map(|message| message.contents.iter()).fold(begun, add)
}

fn add(hash: u64, content: &Content) -> u64 {
    match content {
        Content::Text(text) => part(hash, b't', text.as_bytes()),
        Content::Data { mime_type, data } => part(part(hash, b'd', mime_type.as_bytes()), b'd', data),
        Content::Uri { uri, .. } => part(hash, b'u', uri.as_bytes()),
        Content::ToolCall(call) => {
            let mut arguments = call.arguments.clone();
            arguments.sort_all_objects();
            part(part(hash, b'c', call.name.as_bytes()), b'a', arguments.to_string().as_bytes())
        }
        Content::InvalidToolCall { name, raw, .. } => part(part(hash, b'c', name.as_bytes()), b'r', raw.as_bytes()),
        // A service's own items carry ids and thoughts, so only their kind counts.
        Content::Native { value, .. } => match value.get("type").and_then(Value::as_str) {
            Some(kind) => part(hash, b'n', kind.as_bytes()),
            None => hash,
        },
        Content::Reasoning { .. }
        | Content::ToolResult(_)
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => hash,
    }
}

/// One more part of this kind.
fn part(before: u64, tag: u8, bytes: &[u8]) -> u64 {
    xxh64(bytes, before ^ u64::from(tag))
}

#[cfg(test)]
mod tests {
    use super::digest;
    use agent_core::{AgentExt, AgentResponse, ChatMessage, Draft, Session, StopReason, testing::ScriptedAgent};

    async fn says(texts: &[&str]) -> AgentResponse {
        let draft = texts.iter().fold(Draft::default(), |draft, text| draft.say(ChatMessage::assistant(*text)));
        let agent = ScriptedAgent::new("writer").turn(draft, StopReason::Completed);
        agent.ask(&mut Session::new(), "go").await.unwrap()
    }

    #[tokio::test]
    async fn an_interrupted_pass_comes_to_what_it_would_have_come_to_in_one_go() {
        let whole = digest(None, &says(&["one", "two"]).await);
        let begun = digest(None, &says(&["one"]).await);
        assert_eq!(digest(Some(begun), &says(&["two"]).await), whole);
        assert_eq!(digest(Some(begun), &says(&[]).await), begun);
        assert_ne!(digest(None, &says(&["two", "one"]).await), whole);
    }
}
