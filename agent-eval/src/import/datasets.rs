//! Data sets whose scoring is code elsewhere: Inspect, deepeval, `HumanEval`.

use std::collections::BTreeMap;

use agent_core::{ChatMessage, Result};
use serde_json::{Map, Value, json};

use super::{Import, Imported, case, field, json_lines, list, not_of_the_format, shown, text_field};
use crate::{ArgumentMode, CallMode, CheckSpec, ExpectedCall, ExpectedCalls, Input, SetFormat};

/// Imports Inspect samples: JSON lines, a JSON list, or a CSV file with the fields as columns.
///
/// # Errors
/// A text that is not of the form that the file's name says.
pub fn inspect(file: &str, text: &str) -> Result<Imported> {
    let mut import = Import::new(file);
    let samples = match SetFormat::of(file.as_ref()) {
        Some(SetFormat::Csv) => records(file, text)?,
        Some(SetFormat::Json) => super::json(file, text)?.as_array().cloned().unwrap_or_default(),
        Some(SetFormat::Jsonl | SetFormat::Yaml) | None => json_lines(file, text)?,
    };
    for sample in samples {
        let id = import.id(field(&sample, "id").map(shown).as_deref());
        let Some(mut input) = field(&sample, "input").and_then(inspect_input) else {
            import.note(Some(&id), "its `input` is neither a text nor messages of text, and it is left out");
            continue;
        };
        let choices = choices(&sample);
        if let (Input::Text(text), false) = (&mut input, choices.is_empty()) {
            let lettered = ('A'..='Z').zip(&choices).map(|(letter, choice)| format!("\n{letter}) {choice}"));
            text.push('\n');
            text.extend(lettered);
            import.note(Some(&id), "the choices are written below the question, and the letter is expected");
        }
        if matches!(input, Input::Messages(_)) && !choices.is_empty() {
            import.note(Some(&id), "`choices` beside messages are left out");
        }
        let mut new = case(&id, input);
        new.expected = match field(&sample, "target") {
            Some(Value::Array(targets)) => targets.iter().map(shown).collect(),
            Some(target) => vec![shown(target)],
            None => Vec::new(),
        };
        new.metadata = field(&sample, "metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        for name in ["sandbox", "files", "setup"] {
            if field(&sample, name).is_some() {
                import.note(Some(&id), format!("`{name}` is left out"));
            }
        }
        import.add(new);
    }
    import.note(None, "Inspect's scorers are code: a `target` is compared with the whole answer here");
    import.finish(file)
}

fn inspect_input(input: &Value) -> Option<Input> {
    if let Some(text) = input.as_str() {
        return Some(Input::Text(text.to_owned()));
    }
    let message = |message: &Value| {
        let text = match field(message, "content")? {
            Value::Array(parts) => parts.iter().map(|part| text_field(part, "text")).collect::<Option<String>>()?,
            content => content.as_str()?.to_owned(),
        };
        match text_field(message, "role")? {
            "system" => Some(ChatMessage::system(text)),
            "user" => Some(ChatMessage::user(text)),
            "assistant" => Some(ChatMessage::assistant(text)),
            _ => None,
        }
    };
    input.as_array()?.iter().map(message).collect::<Option<_>>().map(Input::Messages)
}

fn choices(sample: &Value) -> Vec<String> {
    match field(sample, "choices") {
        Some(Value::Array(choices)) => choices.iter().map(shown).collect(),
        Some(choices) => shown(choices).split(',').map(|choice| choice.trim().to_owned()).collect(),
        None => Vec::new(),
    }
}

fn records(file: &str, text: &str) -> Result<Vec<Value>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let records = reader.deserialize().map(|record| {
        let cells: BTreeMap<String, String> = record.map_err(|error| not_of_the_format(file, &error.to_string()))?;
        let cells = cells.into_iter().filter(|(_, cell)| !cell.is_empty());
        // Only what is not a text in a sample is JSON in a cell.
        let cells = cells.map(|(name, cell)| {
            let is_json = matches!(name.as_str(), "metadata" | "choices" | "target") && cell.starts_with(['{', '[']);
            let value = if is_json { serde_json::from_str(&cell).ok() } else { None };
            (name, value.unwrap_or(Value::String(cell)))
        });
        Ok(Value::Object(cells.collect()))
    });
    records.collect()
}

/// Imports deepeval's goldens: a JSON list, or an object with `goldens`. An expected output is judged by a model, as
/// deepeval's metrics do.
///
/// # Errors
/// A text that is no JSON, or no goldens.
pub fn deepeval(file: &str, text: &str) -> Result<Imported> {
    let mut import = Import::new(file);
    let root = super::json(file, text)?;
    let goldens = root.as_array().map_or_else(|| list(&root, "goldens"), Vec::as_slice);
    for golden in goldens {
        let id = import.id(text_field(golden, "name"));
        let Some(input) = text_field(golden, "input") else {
            import.note(Some(&id), "it has no `input` (a conversation?), and is left out");
            continue;
        };
        let mut new = case(&id, Input::Text(input.to_owned()));
        if let Some(expected) = text_field(golden, "expected_output").filter(|text| !text.trim().is_empty()) {
            let rubric = format!("The answer says in substance what this one says:\n{expected}");
            new.checks.push(CheckSpec::Judge { rubric, repeats: None });
        }
        let calls: Vec<ExpectedCall> = list(golden, "expected_tools").iter().map(expected_tool).collect();
        if !calls.is_empty() {
            new.expected_calls =
                Some(ExpectedCalls { mode: CallMode::Superset, arguments: ArgumentMode::Exact, calls });
        }
        for name in ["context", "retrieval_context", "source_file", "comments"] {
            if let Some(value) = field(golden, name) {
                new.metadata.insert(name.to_owned(), value.clone());
            }
        }
        let more = field(golden, "additional_metadata").and_then(Value::as_object).cloned();
        new.metadata.extend(more.unwrap_or_default());
        for name in ["actual_output", "tools_called"] {
            if field(golden, name).is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty())) {
                import.note(Some(&id), format!("`{name}` is of an earlier run, and is left out"));
            }
        }
        import.add(new);
    }
    if !list(&root, "conversational_goldens").is_empty() {
        import.note(None, "`conversational_goldens` need a simulated user, and are left out");
    }
    import.note(None, "deepeval's metrics are code: expected outputs are judged by a model here");
    import.finish(file)
}

fn expected_tool(tool: &Value) -> ExpectedCall {
    let arguments = field(tool, "input_parameters").and_then(Value::as_object).cloned();
    let mode = if arguments.is_some() { ArgumentMode::Exact } else { ArgumentMode::Ignore };
    let name = text_field(tool, "name").map_or_else(|| shown(tool), str::to_owned);
    ExpectedCall { name, arguments: arguments.unwrap_or_default(), mode: Some(mode), fields: BTreeMap::new() }
}

/// Runs an answer with its test. It takes the last fenced block, and puts a bare continuation behind the prompt.
const PYTHON_TEST: &str = r#"import re, sys
answer = sys.stdin.read()
blocks = re.findall(r"```[a-z]*\n(.*?)```", answer, re.S)
code = blocks[-1] if blocks else answer
prompt, test, entry = sys.argv[1:4]
source = code if "def " + entry in code else prompt + code
call = "\ncheck(" + entry + ")\n" if "def check" in test else "\n"
exec(compile(source + "\n" + test + call, "answer", "exec"), {"__name__": "answer"})
"#;

/// Imports coding tasks in Python as `HumanEval` has them, one a line: `task_id`, `prompt`, `canonical_solution`, `test`,
/// `entry_point`. Each is checked by running the answer with its test, so the set must be given `allow_exec: true` by
/// hand before it loads.
///
/// # Errors
/// A text that is not JSON lines.
pub fn humaneval(file: &str, text: &str) -> Result<Imported> {
    let mut import = Import::new(file);
    for task in json_lines(file, text)? {
        let id = import.id(text_field(&task, "task_id"));
        let (Some(prompt), Some(unit_test)) = (text_field(&task, "prompt"), text_field(&task, "test")) else {
            import.note(Some(&id), "it has no `prompt` or no `test`, and is left out");
            continue;
        };
        let entry = text_field(&task, "entry_point").unwrap_or_default();
        let mut new = case(&id, Input::Text(prompt.to_owned()));
        let args = ["-c", PYTHON_TEST, prompt, unit_test, entry].map(str::to_owned).to_vec();
        new.checks.push(CheckSpec::Command {
            program: "python3".to_owned(),
            args,
            dir: None,
            timeout_ms: Some(10_000),
        });
        let solution = field(&task, "canonical_solution").or_else(|| field(&task, "solution"));
        new.metadata =
            solution.map(|solution| Map::from_iter([("solution".to_owned(), json!(solution))])).unwrap_or_default();
        import.add(new);
    }
    import.note(None, "its checks run code that a model wrote; write `allow_exec: true` if that may be");
    import.finish(file)
}
