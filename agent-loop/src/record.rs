//! A finished iteration, as the session keeps it.

use std::{fmt, sync::Arc};

use agent_core::{Event, StateChange, Usage};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        Error, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::{Value, json};

use crate::outcome::{Keys, is_default};

/// One finished iteration, as the session keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IterationRecord {
    /// See [`Iteration::digest`](crate::Iteration::digest).
    pub digest: u64,
    /// The evaluator that objected, or the agent that escalated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What the evaluator said; none if it said nothing, or messages of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// How long it took, in milliseconds; after an interruption, since then.
    #[serde(skip_serializing_if = "is_default")]
    pub millis: u64,
    /// The tokens of the whole pass: judges, and what it used before an interruption.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: Usage,
}

impl IterationRecord {
    /// The iteration that an event finishes, with the loop's name: for those who watch a stream.
    pub fn of(event: &Event) -> Option<(Arc<str>, Self)> {
        event.state.iter().find_map(|change| {
            let StateChange::Append { key, value } = change else { return None };
            Some((Keys::loop_of(key)?.into(), Self::deserialize(value).ok()?))
        })
    }

    /// As the state keeps it: one text, since each value in a list or an object is an allocation, in the event and in
    /// the session. The numbers are on its first line (the digest, then the milliseconds and the four counts of tokens,
    /// as far as they say anything), who decided on the second, and the rest is the feedback. A record that does not
    /// fit is an object.
    pub(crate) fn to_json(&self) -> Value {
        let Self { digest, by, feedback, millis, usage } = self;
        let by = by.as_deref();
        if by.is_some_and(|by| by.contains('\n')) || by.is_none() && feedback.is_some() {
            return json!(self);
        }
        let texts = by.map_or(0, str::len) + feedback.as_deref().map_or(0, str::len);
        let mut text = String::with_capacity(NUMBER + 2 + texts);
        let mut number = itoa::Buffer::new();
        text.push_str(number.format(*digest));
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = *usage;
        let numbers = [*millis, input_tokens, output_tokens, cached_input_tokens, reasoning_tokens];
        let said = numbers.iter().rposition(|number| *number > 0).map_or(0, |last| last + 1);
        for count in &numbers[..said] {
            text.extend([" ", number.format(*count)]);
        }
        for part in [by, feedback.as_deref()].into_iter().flatten() {
            text.extend(["\n", part]);
        }
        Value::String(text)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.splitn(3, '\n');
        let mut numbers = lines.next()?.split(' ').map(str::parse);
        let digest = numbers.next()?.ok()?;
        let mut next = || numbers.next().unwrap_or(Ok(0)).ok();
        let [millis, input_tokens, output_tokens, cached_input_tokens, reasoning_tokens] =
            [next()?, next()?, next()?, next()?, next()?];
        if numbers.next().is_some() {
            return None;
        }
        let usage = Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens };
        let mut text = || lines.next().map(str::to_owned);
        Some(Self { digest, by: text(), feedback: text(), millis, usage })
    }
}

/// The most digits of a number.
const NUMBER: usize = 20;

impl<'de> Deserialize<'de> for IterationRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Form)
    }
}

/// The forms in which a record is read.
struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = IterationRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an iteration's record: a text, an object or a list")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        // The rest, the feedback, may be long, and can always be read.
        let numbers = text.lines().next().unwrap_or_default();
        IterationRecord::from_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(numbers), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Fields::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Fields::deserialize(SeqAccessDeserializer::new(list)).map(Into::into)
    }
}

/// A record as an object, or as the list of its fields.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    digest: u64,
    by: Option<String>,
    feedback: Option<String>,
    millis: u64,
    usage: Usage,
}

impl From<Fields> for IterationRecord {
    fn from(Fields { digest, by, feedback, millis, usage }: Fields) -> Self {
        Self { digest, by, feedback, millis, usage }
    }
}

#[cfg(test)]
mod tests {
    use super::IterationRecord;
    use agent_core::Usage;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use serde_json::{from_value, json};

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_kept(
            digest: u64, by: Option<String>, feedback: Option<String>, millis: u64, tokens in any::<[u64; 4]>(),
        ) {
            let [input_tokens, output_tokens, cached_input_tokens, reasoning_tokens] = tokens;
            let used = Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens };
            for usage in [used, Usage::default()] {
                let record = IterationRecord { digest, by: by.clone(), feedback: feedback.clone(), millis, usage };
                prop_assert_eq!(from_value::<IterationRecord>(record.to_json()).unwrap(), record.clone());
                prop_assert_eq!(from_value::<IterationRecord>(json!(record)).unwrap(), record);
            }
        }

        #[test]
        fn a_text_with_lines_is_feedback_as_it_is(feedback in "[ \n\r0-9a-z]*", by in "[a-z]{0,3}") {
            let record = IterationRecord { by: Some(by), feedback: Some(feedback), ..IterationRecord::default() };
            prop_assert_eq!(from_value::<IterationRecord>(record.to_json()).unwrap(), record);
        }
    }

    #[test]
    fn a_record_is_kept_without_what_says_nothing() {
        let quick = IterationRecord { digest: 7, ..IterationRecord::default() };
        assert_eq!(quick.to_json(), "7");
        let critic = IterationRecord { by: Some("critic".into()), ..quick };
        assert_eq!(critic.to_json(), "7\ncritic");
        let usage = Usage { input_tokens: 5, ..Usage::default() };
        let slow = IterationRecord { feedback: Some("shorter\n".into()), usage, ..critic };
        assert_eq!(slow.to_json(), "7 0 5\ncritic\nshorter\n");
        let odd = IterationRecord { by: Some("two\nlines".into()), ..IterationRecord::default() };
        assert_eq!(odd.to_json(), json!({ "digest": 0, "by": "two\nlines" }));
    }

    #[test]
    fn lists_and_objects_are_read_too() {
        let record = IterationRecord { digest: 7, by: Some("critic".into()), ..IterationRecord::default() };
        for json in [json!([7, "critic", null]), json!({ "by": "critic", "digest": 7 })] {
            assert_eq!(from_value::<IterationRecord>(json).unwrap(), record);
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let error = |json| from_value::<IterationRecord>(json).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!("seven\ncritic")), @r#"invalid value: string "seven", expected an iteration's record: a text, an object or a list"#);
        insta::assert_snapshot!(error(json!(7)), @"invalid type: integer `7`, expected an iteration's record: a text, an object or a list");
    }
}
