//! A loop's record in the session's state, and what it comes to.

use std::{fmt, ops::Range, sync::Arc};

use agent_core::{ChatMessage, Error, ErrorKind, Result, Session, StopReason, Usage};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};

use crate::IterationRecord;

/// How a loop went, read from a session's state: during the loop, after it, and after a crash.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopOutcome {
    /// Why it ended; none while it runs, and if it crashed or failed.
    pub stop: Option<StopReason>,
    /// Who decided: the evaluator that objected at the cap or halted, or the agent that escalated.
    pub by: Option<String>,
    /// What that evaluator said.
    pub why: Option<String>,
    /// The finished iterations, oldest first.
    pub iterations: Vec<IterationRecord>,
}

impl LoopOutcome {
    /// The outcome of the loop of this name; none if it never began in this session, or if its record cannot be read.
    pub fn of(session: &Session, name: &str) -> Option<Self> {
        let keys = Keys::new(name);
        let Progress { stop, by, why, .. } = session.get(&keys.record)?;
        let iterations = read(session, &keys.iterations).ok()?.unwrap_or_default();
        Some(Self { stop, by, why, iterations })
    }

    /// Why the loop of this name ended in the session's current turn; none if it did not, whatever it came to in an
    /// earlier one. Where the loop is the outermost agent, and only there, that is how the turn ended.
    pub fn stop_of_turn(session: &Session, name: &str) -> Option<StopReason> {
        let Progress { stop, turn, .. } = session.get(&Keys::new(name).record)?;
        stop.filter(|_| turn == session.turn().number)
    }

    /// Whether the work is done.
    pub fn passed(&self) -> bool {
        self.stop == Some(StopReason::Completed)
    }
}

/// One line: why it ended, after how many iterations and tokens, and who decided.
impl fmt::Display for LoopOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stop {
            Some(stop) => write!(f, "{stop}")?,
            None => f.write_str("not ended")?,
        }
        let count = self.iterations.len();
        let tokens = self.iterations.iter().map(|iteration| iteration.usage).sum::<Usage>().total();
        let s = |one: bool| if one { "" } else { "s" };
        write!(f, " after {count} iteration{}, {tokens} token{}", s(count == 1), s(tokens == 1))?;
        match (&self.by, &self.why) {
            (Some(by), Some(why)) => write!(f, "; {by}: {why}"),
            (Some(by), None) => write!(f, "; {by}"),
            (None, _) => Ok(()),
        }
    }
}

const PREFIX: &str = "loop:";
const SUFFIX: &str = ":iterations";

/// Where a loop keeps its record.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) record: Arc<str>,
    pub(crate) iterations: Arc<str>,
}

impl Keys {
    pub(crate) fn new(name: &str) -> Self {
        Self { record: format!("{PREFIX}{name}").into(), iterations: format!("{PREFIX}{name}{SUFFIX}").into() }
    }

    /// The loop whose list this key is.
    pub(crate) fn loop_of(iterations: &str) -> Option<&str> {
        iterations.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
    }

    /// Whether a loop of this name would keep its record where another keeps its list.
    pub(crate) fn are_ambiguous(name: &str) -> bool {
        name.ends_with(SUFFIX)
    }
}

/// The record under `loop:<name>`; the finished iterations are a list beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// The request that the loop serves: in another turn it begins anew.
    pub(crate) turn: u64,
    /// The messages that it serves.
    #[serde(serialize_with = "as_pair")]
    pub(crate) request: Range<usize>,
    /// How many messages there were when it began.
    pub(crate) mark: usize,
    /// What the next iteration begins with, while unsaid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Vec<ChatMessage>>,
    /// What an interrupted pass has used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) partial: Usage,
    /// What it came to before the interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<u64>,
}

impl Progress {
    /// What the current pass of the loop of this name came to before it was interrupted.
    pub(crate) fn interrupted_digest(session: &Session, name: &str) -> Option<u64> {
        number(session, &Keys::new(name), "digest")
    }

    /// How many messages there were when the loop of this name began.
    pub(crate) fn mark_of(session: &Session, name: &str) -> Option<usize> {
        number(session, &Keys::new(name), "mark")?.try_into().ok()
    }

    /// A loop that begins now.
    pub(crate) fn begin(session: &Session) -> Self {
        let messages = session.messages().len();
        let pending = session.pending().len();
        let request = if pending > 0 { messages - pending..messages } else { request_of_turn(session) };
        Self { turn: session.turn().number, request, mark: messages, ..Self::default() }
    }

    /// The record of a loop that was interrupted in the session's current turn.
    ///
    /// # Errors
    /// A record of this turn that cannot be read.
    pub(crate) fn interrupted(session: &Session, keys: &Keys) -> Result<Option<Self>> {
        if number(session, keys, "turn") != Some(session.turn().number) {
            return Ok(None);
        }
        let known = read(session, &keys.record)?;
        Ok(known.filter(|known: &Self| known.stop.is_none_or(StopReason::is_suspended)))
    }

    /// Takes the loop up among other branches' messages: it must not rewind those.
    pub(crate) fn rebase(&mut self, session: &Session) {
        self.request = request_of_turn(session);
        self.mark = session.messages().len();
    }
}

/// One number of a loop's record, whatever else is in it.
fn number(session: &Session, keys: &Keys, field: &str) -> Option<u64> {
    session.state().get(&*keys.record)?.get(field)?.as_u64()
}

/// What a loop keeps under this key; none if there is nothing.
pub(crate) fn read<T: DeserializeOwned>(session: &Session, key: &str) -> Result<Option<T>> {
    let read = session.state().get(key).map(T::deserialize).transpose();
    read.map_err(|error| {
        let context = format!(
            "take up a loop: its record in the session's state, `{key}`, cannot be read; restore it, or remove it to \
             begin anew"
        );
        Error::new(ErrorKind::Invalid, context).with_source(error)
    })
}

/// What the caller said in this turn before anyone answered.
fn request_of_turn(session: &Session) -> Range<usize> {
    use agent_core::Role;
    let messages = session.messages();
    let start = session.turn().start.min(messages.len());
    let spoken = messages[start..].iter().position(|m| matches!(m.role, Role::Assistant | Role::Tool));
    start..spoken.map_or(messages.len(), |at| start + at)
}

/// A pair is smaller than an object; either is read.
fn as_pair<S: Serializer>(range: &Range<usize>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    (range.start, range.end).serialize(serializer)
}

/// What a record leaves out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::Progress;
    use serde_json::json;

    #[test]
    fn a_range_is_kept_as_a_pair_and_read_as_an_object_too() {
        let progress = Progress { turn: 1, request: 2..3, mark: 4, ..Progress::default() };
        let kept = json!(progress);
        assert_eq!(kept, json!({ "turn": 1, "request": [2, 3], "mark": 4 }));
        let object = json!({ "turn": 1, "request": { "start": 2, "end": 3 }, "mark": 4 });
        for json in [kept, object] {
            assert_eq!(serde_json::from_value::<Progress>(json).unwrap(), progress);
        }
    }
}
