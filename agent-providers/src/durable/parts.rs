//! A session in pieces, for a store whose values are small.

use std::{collections::BTreeMap, sync::LazyLock};

use agent_core::{Error, ErrorKind, Result, Session};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of all but the messages.
pub(super) const HEAD: &str = "session";

/// A piece is closed by the message that brings it to this size.
const FULL: usize = 64 * 1024;

/// The most pieces. Few in tests, which need not fill them with 64 MiB.
const MOST: usize = if cfg!(test) { 16 } else { 1024 };

/// The most bytes of messages that surely can be stored.
pub(super) const LIMIT: usize = MOST * FULL;

/// The most bytes of one value, in a key or in the journal. A server takes messages of 32 MiB (its `message-size-limit`,
/// <https://docs.restate.dev/references/server-config>), and one of version 1.7 never tells the worker of a journal entry
/// from 16 MiB on that it is kept: the turn would stand still.
pub(super) const LARGEST: usize = if cfg!(test) { LIMIT } else { 15 * 1024 * 1024 };

/// The keys of the pieces. The engine wants keys that outlive its context.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| (0..MOST).map(|piece| format!("messages {piece}")).collect());

/// Keys and JSON texts.
pub(super) type Parts = BTreeMap<&'static str, String>;

#[derive(Serialize, Deserialize)]
struct Head {
    /// How many pieces the messages are in.
    pieces: usize,
    /// The session, without its messages.
    session: Value,
}

/// The key of a piece of the messages.
fn key(piece: usize) -> Result<&'static str> {
    KEYS.get(piece).map(String::as_str).ok_or_else(|| {
        let most = LIMIT / 1024 / 1024;
        let context =
            format!("store a session of more than {most} MiB; begin a new one, or let a loop forget (`Fresh`)");
        Error::new(ErrorKind::Store, context)
    })
}

/// The session as its head and pieces of its messages, in which a message that was said stays in its place: a turn
/// changes the last piece, adds some, and replaces the head.
pub(super) fn split(session: &Session) -> Result<Parts> {
    let failed = |error| Error::new(ErrorKind::Store, "write a session as JSON").with_source(error);
    let mut whole = serde_json::to_value(session).map_err(failed)?;
    let messages = match whole.get_mut("messages").map(Value::take) {
        Some(Value::Array(messages)) => messages,
        Some(_) | None => Vec::new(),
    };
    let mut parts = Parts::new();
    let mut open = String::new();
    for message in messages {
        open.push(if open.is_empty() { '[' } else { ',' });
        open.push_str(&message.to_string());
        if open.len() >= FULL {
            parts.insert(key(parts.len())?, std::mem::take(&mut open) + "]");
        }
    }
    if !open.is_empty() {
        parts.insert(key(parts.len())?, open + "]");
    }
    whole["messages"] = Value::Array(Vec::new());
    let head = Head { pieces: parts.len(), session: whole };
    parts.insert(HEAD, serde_json::to_string(&head).map_err(failed)?);
    if largest(&parts) > LARGEST {
        return Err(too_large("a message, or a state,"));
    }
    Ok(parts)
}

/// That this is too large for one value.
pub(super) fn too_large(what: &str) -> Error {
    let context = format!(
        "store {what} of more than {} MiB, the most that a Restate server takes at once; keep it elsewhere, and its \
         address in the session",
        LARGEST / 1024 / 1024
    );
    Error::new(ErrorKind::Store, context)
}

/// How many bytes they are.
pub(super) fn size(parts: &Parts) -> usize {
    parts.values().map(String::len).sum()
}

/// How many bytes the largest of them is.
pub(super) fn largest(parts: &Parts) -> usize {
    parts.values().map(String::len).max().unwrap_or_default()
}

/// The keys of the pieces that this head tells of.
pub(super) fn pieces(head: &str) -> Result<Vec<&'static str>> {
    let head: Head = serde_json::from_str(head).map_err(unreadable)?;
    (0..head.pieces).map(key).collect()
}

/// The session that was split into these.
pub(super) fn join(parts: &Parts) -> Result<Session> {
    let Some(head) = parts.get(HEAD) else { return Ok(Session::new()) };
    let Head { pieces, session: mut whole } = serde_json::from_str(head).map_err(unreadable)?;
    let mut messages = Vec::new();
    for piece in (0..pieces).map(key) {
        let piece = piece?;
        let piece = parts.get(piece).ok_or_else(|| unreadable(format!("there is no piece `{piece}`")))?;
        messages.append(&mut serde_json::from_str(piece).map_err(unreadable)?);
    }
    whole["messages"] = Value::Array(messages);
    serde_json::from_value(whole).map_err(unreadable)
}

fn unreadable(why: impl Into<agent_core::BoxError>) -> Error {
    Error::new(ErrorKind::Store, "read a stored session").with_source(why)
}

#[cfg(test)]
mod tests {
    use agent_core::{ChatMessage, Session};
    use proptest::{collection::vec, prelude::*};

    use super::{FULL, HEAD, LARGEST, Parts, join, pieces, split};

    fn session(sizes: &[usize]) -> Session {
        let mut session = Session::new().with_state("key", "value");
        for (at, size) in sizes.iter().enumerate() {
            let text = format!("{at}{}", "é".repeat(*size));
            session.push(if at % 2 == 0 { ChatMessage::user(text) } else { ChatMessage::assistant(text) });
        }
        session
    }

    #[test]
    fn nothing_is_an_empty_session() {
        assert_eq!(join(&Parts::new()).unwrap(), Session::new());
    }

    #[test]
    fn a_missing_piece_is_named() {
        let mut parts = split(&session(&[1])).unwrap();
        parts.remove("messages 0");
        let error = join(&parts).unwrap_err();
        insta::assert_snapshot!(format!("{error:#}"), @"read a stored session: there is no piece `messages 0`");
    }

    #[test]
    fn a_state_that_no_value_holds_is_an_error() {
        let with_state = |length| split(&Session::new().with_state("key", "x".repeat(length)));
        let around = with_state(0).unwrap()[HEAD].len();
        assert_eq!(with_state(LARGEST - around).unwrap()[HEAD].len(), LARGEST);
        let error = with_state(LARGEST - around + 1).unwrap_err();
        insta::assert_snapshot!(error, @"store a message, or a state, of more than 1 MiB, the most that a Restate server takes at once; keep it elsewhere, and its address in the session");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_session_that_is_split_is_joined_again(sizes in vec(0..40_000_usize, 0..8), more in vec(0..100_usize, 1..4)) {
            let before = split(&session(&sizes)).unwrap();
            prop_assert_eq!(join(&before).unwrap(), session(&sizes));
            let keys = pieces(&before[HEAD]).unwrap();
            prop_assert_eq!(keys.len() + 1, before.len());

            // No piece is larger than its limit and one message, and a turn changes none but the last.
            let largest = 2 * sizes.iter().max().copied().unwrap_or_default() + 200;
            prop_assert!(before.values().all(|part| part.len() < FULL + largest));
            let sizes: Vec<usize> = sizes.iter().chain(&more).copied().collect();
            let after = split(&session(&sizes)).unwrap();
            let closed = keys.len().saturating_sub(1);
            prop_assert!(keys[..closed].iter().all(|key| before[key] == after[key]));
        }
    }
}
