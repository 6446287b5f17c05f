//! The Berkeley Function Calling Leaderboard.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use agent_core::{ChatMessage, Result};
use serde_json::{Map, Value};

use super::{Import, Imported, case, field, json_lines, shown, text_field};
use crate::{ArgumentMode, CallMode, EvalCase, ExpectedCall, ExpectedCalls, FieldMatcher, Input, Turn};

/// Imports BFCL questions, one a line, with their possible answers. The functions are kept in each case's metadata. A
/// question without an answer expects that no function is called (the categories of irrelevance).
///
/// # Errors
/// A text that is not JSON lines.
pub fn bfcl(file: &str, questions: &str, answers: Option<&str>) -> Result<Imported> {
    let mut import = Import::new(file);
    let answers = json_lines("the answers", answers.unwrap_or_default())?;
    let truth = |answer: Value| Some((text_field(&answer, "id")?.to_owned(), field(&answer, "ground_truth")?.clone()));
    let answers: HashMap<String, Value> = answers.into_iter().filter_map(truth).collect();
    for question in json_lines(file, questions)? {
        let own = text_field(&question, "id").unwrap_or_default().to_owned();
        let id = import.id(Some(&own));
        let truth = answers.get(&own).or_else(|| field(&question, "ground_truth"));
        let Some(input) = field(&question, "question").and_then(input) else {
            import.note(Some(&id), "its question is of no known form, and it is left out");
            continue;
        };
        let mut new = case(&id, input);
        if let Some(functions) = field(&question, "function") {
            new.metadata.insert("functions".to_owned(), functions.clone());
        }
        match truth {
            Some(truth) => expect(&mut import, &mut new, truth, own.contains("parallel")),
            None if own.contains("irrelevance") => new.allowed_tools = Some(BTreeSet::new()),
            None => import.note(Some(&id), "it has no answer"),
        }
        import.add(new);
    }
    import.note(None, "BFCL compares texts without case, spaces and punctuation; here they are compared as they are");
    import.finish(file)
}

/// A text, a list of messages, or a list of turns, each a list of messages.
fn input(question: &Value) -> Option<Input> {
    if let Some(text) = question.as_str() {
        return Some(Input::Text(text.to_owned()));
    }
    let turns = question.as_array()?;
    if let [Value::Array(messages)] = turns.as_slice() {
        return messages_input(messages);
    }
    if turns.iter().all(Value::is_object) {
        return messages_input(turns);
    }
    let turns = turns.iter().map(|turn| {
        let said = turn.as_array()?.iter().filter(|message| text_field(message, "role") == Some("user"));
        let said: Vec<&str> = said.filter_map(|message| text_field(message, "content")).collect();
        Some(Turn { say: said.join("\n\n"), expected: Vec::new(), expected_calls: None, checks: Vec::new() })
    });
    turns.collect::<Option<_>>().map(Input::Turns)
}

fn messages_input(messages: &[Value]) -> Option<Input> {
    if let [only] = messages
        && text_field(only, "role") == Some("user")
    {
        return Some(Input::Text(text_field(only, "content")?.to_owned()));
    }
    let message = |message: &Value| {
        let text = text_field(message, "content")?;
        Some(match text_field(message, "role")? {
            "system" => ChatMessage::system(text),
            "assistant" => ChatMessage::assistant(text),
            _ => ChatMessage::user(text),
        })
    };
    messages.iter().map(message).collect::<Option<_>>().map(Input::Messages)
}

fn expect(import: &mut Import, case: &mut EvalCase, truth: &Value, parallel: bool) {
    let calls = truth.as_array().map_or(&[][..], Vec::as_slice);
    let mut expected = Vec::new();
    for call in calls {
        let Some((name, arguments)) = call.as_object().and_then(|call| call.iter().next()) else {
            import.note(Some(&case.id), format!("the answer {} is code, and is left out", shown(call)));
            return;
        };
        let mut fields = BTreeMap::new();
        let mut optional = Vec::new();
        collect(arguments, "", &mut fields, &mut optional);
        // An argument that may be left out cannot be in the list of fields, which must be there.
        let mode = if optional.is_empty() { ArgumentMode::Exact } else { ArgumentMode::Subset };
        if !optional.is_empty() {
            let what = format!(
                "arguments of `{name}` that may be left out are not compared, and others are accepted: {}",
                optional.join(", ")
            );
            import.note(Some(&case.id), what);
        }
        expected.push(ExpectedCall { name: name.clone(), arguments: Map::new(), mode: Some(mode), fields });
    }
    let mode = if parallel { CallMode::AnyOrder } else { CallMode::Exact };
    case.expected_calls = Some(ExpectedCalls { mode, arguments: ArgumentMode::Exact, calls: expected });
}

/// Each argument has a list of values that do; an empty text among them means that it may be left out. A single object
/// has such lists for its own fields.
fn collect(arguments: &Value, at: &str, fields: &mut BTreeMap<String, FieldMatcher>, optional: &mut Vec<String>) {
    for (name, values) in arguments.as_object().into_iter().flatten() {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        let values = values.as_array().map_or(std::slice::from_ref(values), Vec::as_slice);
        if values.iter().any(|value| value == "") {
            optional.push(pointer);
            continue;
        }
        let is_nested = |value: &Value| {
            value.as_object().is_some_and(|object| !object.is_empty() && object.values().all(Value::is_array))
        };
        match values {
            [nested] if is_nested(nested) => collect(nested, &pointer, fields, optional),
            values => drop(fields.insert(pointer, FieldMatcher::OneOf(values.to_vec()))),
        }
    }
}
