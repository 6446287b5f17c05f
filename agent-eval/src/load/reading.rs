//! From values to sets, with errors that say where and what to do.

use agent_core::{Result, Role};
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use super::tree::{Node, Spot, Tree, error_at};
use crate::{
    BuildContext, EvalCase, EvalSet, SCHEMA, case_checks,
    text::{listed, nearest},
};

/// Reads a value of the file.
pub(super) fn read<T: DeserializeOwned>(file: &str, tree: &Tree) -> Result<T> {
    serde_path_to_error::deserialize(tree.value()).map_err(|error| {
        let (spot, what) = explain(tree, error.path(), &error.inner().to_string());
        let case = tree.get("id").and_then(Tree::text).map(|id| format!("case `{id}`: ")).unwrap_or_default();
        error_at(file, spot, format!("{case}{what}"))
    })
}

/// The place and the words of an error.
fn explain(tree: &Tree, path: &Path, message: &str) -> (Spot, String) {
    let mut place = tree;
    let mut spot = tree.spot;
    let mut field = None;
    for segment in path {
        let key = match segment {
            Segment::Seq { index } => match place.items().get(*index) {
                Some(item) => {
                    (place, spot) = (item, item.spot);
                    continue;
                }
                None => break,
            },
            Segment::Map { key } | Segment::Enum { variant: key } => key,
            Segment::Unknown => break,
        };
        match place.get(key) {
            Some(value) => {
                spot = place.key(key);
                place = value;
                field = Some(key.as_str());
            }
            None => break,
        }
    }
    if let Some((name, known)) = unknown(message, "unknown field `") {
        // The path may end at the field, or at the mapping that has it.
        let spot = if place.get(name).is_some() { place.key(name) } else { spot };
        return (spot, format!("unknown field `{name}`{}", remedy(name, &known)));
    }
    if let Some((name, known)) = unknown(message, "unknown variant `") {
        let spot = if place.get(name).is_some() { place.key(name) } else { place.spot };
        let what = if known.contains(&"contains") { "check" } else { "value" };
        return (spot, format!("unknown {what} `{name}`{}", remedy(name, &known)));
    }
    let named = field.map(|field| format!("`{field}`: ")).unwrap_or_default();
    let what = if field == Some("repeats") && message.contains("`0`") {
        "`repeats` is 0: nothing would be run; write at least 1".to_owned()
    } else if message.contains("untagged enum") {
        format!("{named}expected a text or a list of texts")
    } else if message.contains("single key") || message.contains("expected string or map") {
        format!("{named}expected one key; write each check as an item of its own")
    } else if let Some(missing) = message.strip_prefix("missing field `") {
        let missing = missing.trim_end_matches('`');
        format!("{named}the field `{missing}` is missing; add it")
    } else if message.starts_with("invalid type") && message.ends_with("a string") {
        format!("{named}{message}; put it in quotes")
    } else {
        let message = message.replace("a sequence", "a list").replace("a nonzero u32", "a whole number from 1");
        format!("{named}{message}")
    };
    (spot, what)
}

/// The wrong name of such a message, and the names that are known.
fn unknown<'a>(message: &'a str, start: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (name, rest) = message.strip_prefix(start)?.split_once('`')?;
    Some((name, rest.split('`').skip(1).step_by(2).collect()))
}

/// Such a message in the words of this crate; none if it is about something else. `more` names are known, too.
#[cfg(feature = "cli")]
pub(crate) fn unknown_name(message: &str, more: &[&str]) -> Option<String> {
    let of = |what: &str| {
        let (name, mut known) = unknown(message, &format!("unknown {what} `"))?;
        known.extend(more.iter().filter(|_| what == "field"));
        let what = if what == "variant" { "value" } else { what };
        Some(format!("unknown {what} `{name}`{}", remedy(name, &known)))
    };
    of("field").or_else(|| of("variant"))
}

fn remedy(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None if known.is_empty() => "; none is known here, take it out".to_owned(),
        None => format!("; known are {}", listed(known)),
    }
}

/// The version comes first: of another version nothing else can be said.
pub(super) fn check_header(file: &str, header: &Tree) -> Result<()> {
    let Node::Map(_) = header.node else {
        return Err(error_at(file, header.spot, "a set is a mapping with `schema`, `name` and `cases`"));
    };
    let Some(schema) = header.get("schema") else {
        return Err(error_at(file, header.spot, format!("the set has no `schema`; add `schema: {SCHEMA}`")));
    };
    if schema.text() != Some(SCHEMA) {
        let what = format!(
            "this version reads `{SCHEMA}`, and the set is {}; convert it, or use the version that it was written for",
            schema.value()
        );
        return Err(error_at(file, schema.spot, what));
    }
    if let Some(name) = header.get("name") {
        let is_name =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if name.text().is_some_and(|text| !is_name(text)) {
            let what = format!("{} is no name of a set; use letters, digits, `_` and `-`", name.value());
            return Err(error_at(file, name.spot, what));
        }
    }
    Ok(())
}

/// What the types do not say.
pub(super) fn check_case(file: &str, tree: &Tree, case: &EvalCase, set: &EvalSet) -> Result<()> {
    let input = tree.get("input").map_or(tree.spot, |input| input.spot);
    let at = |spot: Spot, what: String| Err(error_at(file, spot, format!("case `{}`: {what}", case.id)));
    if case.id.trim().is_empty() {
        return Err(error_at(file, tree.spot, "the case's `id` is blank; give it one that stays"));
    }
    let empty = match &case.input {
        crate::Input::Text(text) => text.trim().is_empty(),
        crate::Input::Messages(messages) => messages.is_empty(),
        crate::Input::Turns(turns) => turns.iter().all(|turn| turn.say.trim().is_empty()),
    };
    if empty {
        return at(input, "nothing is said to the agent; fill `input`".to_owned());
    }
    if let crate::Input::Messages(messages) = &case.input
        && messages.last().is_some_and(|last| last.role != Role::User)
    {
        return at(input, "its last message is not the caller's; end with one whose role is `user`".to_owned());
    }
    if let Some(quarantine) = &case.quarantine
        && !is_date(&quarantine.until)
    {
        let spot = tree.get("quarantine").and_then(|tree| tree.get("until")).map_or(tree.spot, |until| until.spot);
        return at(spot, format!("`{}` is no date; write YYYY-MM-DD", quarantine.until));
    }
    let lint = BuildContext { lint: true, ..BuildContext::default() };
    match case_checks(case, set, &lint) {
        Ok(_) => Ok(()),
        Err(error) => {
            let lint = BuildContext { allow_exec: set.allow_exec, ..lint };
            let broken = case.checks.iter().position(|check| check.build(&lint).is_err());
            let checks = tree.get("checks").map_or(&[][..], Tree::items);
            let spot = broken.and_then(|at| checks.get(at)).map_or(tree.spot, |check| check.spot);
            Err(error_at(file, spot, error))
        }
    }
}

/// Whether a text is a day of the Gregorian calendar as `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let parsed = || {
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts.as_slice() else { return None };
        let digits =
            |part: &&str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
            return None;
        }
        let (year, month, day): (u32, u32, u32) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let last = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=last).contains(&day).then_some(())
    };
    parsed().is_some()
}
