//! Inspect.

use agent_core::{ChatMessage, Content, Result, Role};
use serde_json::{Map, Value, json};

use super::{Export, Exported};
use crate::{EvalSet, Input};

/// Exports a set as Inspect's samples, one JSON document a line. Tags are in the metadata.
///
/// # Errors
/// None so far.
pub fn inspect(set: &EvalSet) -> Result<Exported> {
    let mut export = Export::default();
    let says = ["tags", "expected", "metadata", "messages"];
    let mut text = String::new();
    for case in export.cases(set, &says) {
        let input = match &case.input {
            Input::Text(said) => json!(said),
            Input::Messages(messages) => {
                let Some(messages) = messages.iter().map(message).collect::<Option<Vec<Value>>>() else {
                    export.note(&case, "its messages are not all texts, and it is left out");
                    continue;
                };
                json!(messages)
            }
            Input::Turns(_) => continue, // noted already
        };
        let mut sample = Map::from_iter([("id".to_owned(), json!(case.id)), ("input".to_owned(), input)]);
        match case.expected.as_slice() {
            [] => (),
            [one] => drop(sample.insert("target".to_owned(), json!(one))),
            several => drop(sample.insert("target".to_owned(), json!(several))),
        }
        let mut metadata = case.metadata;
        if !case.tags.is_empty() {
            metadata.insert("tags".to_owned(), json!(case.tags));
        }
        if !metadata.is_empty() {
            sample.insert("metadata".to_owned(), metadata.into());
        }
        text += &Value::Object(sample).to_string();
        text.push('\n');
    }
    export.note_all("Inspect's scorers are code: choose one that compares with the target, such as `exact`");
    Ok(export.finish(text))
}

/// A message of texts only.
fn message(message: &ChatMessage) -> Option<Value> {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => return None,
    };
    let is_text = message.contents.iter().all(|content| matches!(content, Content::Text(_)));
    is_text.then(|| json!({ "role": role, "content": message.text() }))
}
