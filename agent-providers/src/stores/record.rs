//! What the tables hold: events and snapshots as JSON, in columns of bytes. A column for text or JSON would not do: some
//! databases refuse the character NUL there, and round numbers.

use std::num::NonZeroU32;

use agent_core::{Error, ErrorKind, Event, Result, Stored};

/// The form of the snapshots that are written here. Those of another form are ignored, and written anew. It has to rise
/// when a session is serialized in another way, or folds its events in another way.
pub(super) const SNAPSHOT_FORMAT: i32 = 1;

/// The options' default.
pub(super) const SNAPSHOT_EVERY: Option<NonZeroU32> = NonZeroU32::new(100);

/// Events as they are stored.
pub(super) fn encode(events: &[Event]) -> Result<Vec<Vec<u8>>> {
    let encode = |event| -> serde_json::Result<Vec<u8>> {
        let bytes = serde_json::to_vec(event)?;
        // JSON may be written that nests deeper than its parser goes: nobody could load it again.
        serde_json::from_slice::<Event>(&bytes)?;
        Ok(bytes)
    };
    events.iter().map(encode).collect::<Result<_, _>>().map_err(|error| {
        let context = "append events that could not be read again as JSON; keep such deep values elsewhere";
        Error::new(ErrorKind::Store, context).with_source(error)
    })
}

/// The stored event that makes version `number`.
fn decode(id: &str, number: u64, bytes: &[u8]) -> Result<Event> {
    serde_json::from_slice(bytes).map_err(|error| {
        let context = format!(
            "read session `{id}`: its event {number} is not readable; restore it from a backup, or delete the session"
        );
        Error::new(ErrorKind::Store, context).with_source(error)
    })
}

/// Adds the stored event that makes version `number` to those behind the first `from`.
pub(super) fn push(events: &mut Vec<Event>, id: &str, from: u64, number: u64, bytes: &[u8]) -> Result<()> {
    if number != from + events.len() as u64 + 1 {
        return Err(incomplete(id));
    }
    events.push(decode(id, number, bytes)?);
    Ok(())
}

/// Events of a session are missing.
pub(super) fn incomplete(id: &str) -> Error {
    let context = format!(
        "load session `{id}`: not all of its events are there; restore them from a backup, or delete the session"
    );
    Error::new(ErrorKind::Store, context)
}

/// A session that is being loaded: a snapshot, if there was one, and the events behind it.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Which session it is, even if its id is deleted and used again; 0 is an unknown one.
    key: i64,
    stored: Stored,
    /// The version of the snapshot.
    from: u64,
}

impl Fold {
    /// Begins with a snapshot. One that cannot be read is as none: the events have all that it has.
    pub(super) fn begin(id: &str, key: i64, snapshot: Option<(u64, &[u8])>) -> Self {
        let nothing = Self { key, ..Self::default() };
        let Some((version, bytes)) = snapshot else { return nothing };
        match serde_json::from_slice(bytes) {
            Ok(session) => Self { key, stored: Stored { session, version }, from: version },
            Err(error) => {
                tracing::warn!(session = id, version, %error, "ignored a snapshot that is not readable");
                nothing
            }
        }
    }

    pub(super) fn key(&self) -> i64 {
        self.key
    }

    /// How many events are in it so far.
    pub(super) fn version(&self) -> u64 {
        self.stored.version
    }

    /// Applies the event of this number. The one behind a gap is not applied, so that the version tells of the gap.
    pub(super) fn apply(&mut self, id: &str, number: u64, bytes: &[u8]) -> Result<()> {
        if number == self.stored.version + 1 {
            self.stored.session.apply(&decode(id, number, bytes)?);
            self.stored.version = number;
        }
        Ok(())
    }

    /// Whether the events since the snapshot are so many that one was missed.
    pub(super) fn is_long(&self, every: Option<NonZeroU32>) -> bool {
        every.is_some_and(|every| self.stored.version - self.from >= 2 * u64::from(every.get()))
    }

    /// The snapshot of what was folded.
    pub(super) fn snapshot(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.stored.session)
            .map_err(|error| Error::new(ErrorKind::Store, "write a snapshot").with_source(error))
    }

    pub(super) fn end(self) -> Stored {
        self.stored
    }
}

/// Whether an append between these versions is one after which a snapshot is kept.
pub(super) fn is_snapshot_due(every: Option<NonZeroU32>, before: u64, after: u64) -> bool {
    every.is_some_and(|every| before / u64::from(every.get()) != after / u64::from(every.get()))
}

/// A snapshot is derived from the events: without it a load takes longer, and that is all.
pub(super) fn warn_no_snapshot(id: &str, error: &Error) {
    tracing::warn!(session = id, error = format!("{error:#}"), "could not keep a snapshot; loading will take longer");
}

/// A number as SQL has them; one that is beyond its range is beyond every stored one.
pub(super) fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A stored number, which never was negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use agent_core::{ChatMessage, Session};

    use super::*;

    /// If this fails because of a change to `Session`, raise `SNAPSHOT_FORMAT`: snapshots of before would be misread.
    #[test]
    fn the_form_of_a_snapshot_is_the_one_that_its_number_stands_for() {
        let mut session = Session::new().with_state("key", 1);
        session.push(ChatMessage::user("hi"));
        session.push(ChatMessage::assistant("hello").by("agent"));
        session.push(ChatMessage::user("again"));
        let snapshot = Fold { key: 1, stored: Stored { session, version: 3 }, from: 0 }.snapshot().unwrap();
        assert_eq!(SNAPSHOT_FORMAT, 1);
        insta::assert_snapshot!(
            String::from_utf8(snapshot).unwrap(),
            @r#"{"messages":[{"role":"user","contents":[{"text":"hi"}]},{"role":"assistant","author":"agent","contents":[{"text":"hello"}]},{"role":"user","contents":[{"text":"again"}]}],"state":{"key":1},"turn":{"number":1,"start":2},"recorded":false}"#
        );
    }

    #[test]
    fn a_snapshot_is_due_wherever_an_append_passes_a_multiple() {
        let every = NonZeroU32::new(10);
        let due = [(0, 1), (8, 9), (9, 10), (9, 11), (10, 11), (5, 35)].map(|(a, b)| is_snapshot_due(every, a, b));
        assert_eq!(due, [false, false, true, true, false, true]);
        assert!(!is_snapshot_due(None, 9, 10));
    }
}
