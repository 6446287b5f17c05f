//! Checks of the answer's text.

use std::collections::HashMap;

use agent_core::Result;
use regex::Regex;

use super::{BuiltCheck, OneOrMany, build::invalid};
use crate::{Outcome, text::cut};

/// How many characters of an answer a reason quotes.
const QUOTED: usize = 200;
/// How many characters of a text are compared line by line for a reader.
const COMPARED: usize = 10_000;

pub(super) fn equals(name: &'static str, texts: &OneOrMany) -> Result<BuiltCheck> {
    let texts = match texts {
        OneOrMany::One(text) => vec![text.clone()],
        OneOrMany::Many(texts) if texts.is_empty() => return Err(invalid("it has no texts; list at least one")),
        OneOrMany::Many(texts) => texts.clone(),
    };
    Ok(BuiltCheck::of(name, move |cx| {
        let answer = cx.answer.trim();
        if texts.iter().any(|text| text.trim() == answer) {
            return Outcome::pass();
        }
        let alternatives = texts.len();
        let what = if alternatives == 1 {
            "the expected text".to_owned()
        } else {
            format!("any of the {alternatives} expected texts")
        };
        // The most alike alternative tells most.
        let likeness = |text: &&String| strsim::normalized_levenshtein(&cut(text.trim(), QUOTED), &cut(answer, QUOTED));
        let nearest = texts.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).map_or("", String::as_str);
        Outcome::fail(format!("the answer is not {what}")).with_diff(line_diff(nearest.trim(), answer))
    }))
}

/// Lines of two texts: `-` is expected only, `+` is answered only.
fn line_diff(expected: &str, answer: &str) -> String {
    let (expected, answer) = (cut(expected, COMPARED), cut(answer, COMPARED));
    let lines = similar::TextDiff::from_lines(&expected, &answer);
    let lines = lines.iter_all_changes().map(|change| {
        let mark = match change.tag() {
            similar::ChangeTag::Equal => ' ',
            similar::ChangeTag::Delete => '-',
            similar::ChangeTag::Insert => '+',
        };
        format!("{mark} {}", change.value().trim_end_matches('\n'))
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn contains(all: &[String], any: &[String], none: &[String], ignore_case: bool) -> Result<BuiltCheck> {
    if all.is_empty() && any.is_empty() && none.is_empty() {
        return Err(invalid("it has no condition; give `all`, `any` or `none`"));
    }
    if all.iter().chain(any).chain(none).any(String::is_empty) {
        return Err(invalid("every text contains the empty one; take it out"));
    }
    let (all, any, none) = (all.to_vec(), any.to_vec(), none.to_vec());
    Ok(BuiltCheck::of("contains", move |cx| {
        let answer = if ignore_case { cx.answer.to_lowercase() } else { cx.answer.to_owned() };
        let has =
            |text: &&String| if ignore_case { answer.contains(&text.to_lowercase()) } else { answer.contains(*text) };
        let missing: Vec<&String> = all.iter().filter(|text| !has(text)).collect();
        let forbidden: Vec<&String> = none.iter().filter(has).collect();
        let mut reasons = Vec::new();
        if !missing.is_empty() {
            reasons.push(format!("the answer does not contain {}", quoted(&missing)));
        }
        if !any.is_empty() && !any.iter().any(|text| has(&text)) {
            reasons.push(format!("the answer contains none of {}", quoted(&any.iter().collect::<Vec<_>>())));
        }
        if !forbidden.is_empty() {
            reasons.push(format!("the answer contains {}, and must not", quoted(&forbidden)));
        }
        Outcome::of(reasons.is_empty(), || reasons.join("; "))
    }))
}

fn quoted(texts: &[&String]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn starts_with(start: &str) -> Result<BuiltCheck> {
    let start = filled(start)?;
    Ok(BuiltCheck::of("starts_with", move |cx| {
        Outcome::of(cx.answer.starts_with(&start), || {
            format!("the answer does not start with {start:?}: {}", quote(cx.answer))
        })
    }))
}

pub(super) fn ends_with(end: &str) -> Result<BuiltCheck> {
    let end = filled(end.trim_end())?;
    Ok(BuiltCheck::of("ends_with", move |cx| {
        Outcome::of(cx.answer.trim_end().ends_with(&end), || {
            format!("the answer does not end with {end:?}: {}", quote(cx.answer))
        })
    }))
}

fn filled(text: &str) -> Result<String> {
    if text.is_empty() { Err(invalid("every text has the empty one; write a text")) } else { Ok(text.to_owned()) }
}

pub(super) fn quote(answer: &str) -> String {
    format!("{:?}", cut(answer, QUOTED))
}

pub(super) fn regex(pattern: &str) -> Result<BuiltCheck> {
    let regex = Regex::new(pattern).map_err(|error| invalid(error.to_string()))?;
    Ok(BuiltCheck::of("regex", move |cx| {
        Outcome::of(regex.is_match(cx.answer), || format!("the answer does not match /{regex}/: {}", quote(cx.answer)))
    }))
}

pub(super) fn edit_similarity(expected: &str, at_least: f64) -> Result<BuiltCheck> {
    similarity("edit_similarity", expected, at_least, strsim::normalized_levenshtein)
}

pub(super) fn rouge1(expected: &str, at_least: f64) -> Result<BuiltCheck> {
    if words(expected).is_empty() {
        return Err(invalid("the expected text has no words"));
    }
    similarity("rouge1", expected, at_least, rouge1_f1)
}

fn similarity(name: &'static str, expected: &str, at_least: f64, of: fn(&str, &str) -> f64) -> Result<BuiltCheck> {
    if !(at_least > 0.0 && at_least <= 1.0) {
        return Err(invalid(format!("`at_least` is {at_least}; it must be above 0, and 1 at most")));
    }
    let expected = expected.to_owned();
    Ok(BuiltCheck::of(name, move |cx| {
        let value = of(&expected, cx.answer);
        Outcome::of(value >= at_least, || format!("the similarity is {value:.3}, below {at_least}")).with_value(value)
    }))
}

/// The words of a text in lower case: runs of letters and digits.
fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    words
}

/// The F1 of common words, each counted as often as in both (ROUGE-1; Lin 2004, without stemming).
#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^53")]
fn rouge1_f1(expected: &str, answer: &str) -> f64 {
    let (expected, answer) = (words(expected), words(answer));
    let common: usize =
        expected.iter().map(|(word, count)| answer.get(word).map_or(0, |other| *count.min(other))).sum();
    let total: usize = expected.values().chain(answer.values()).sum();
    if total == 0 { 0.0 } else { 2.0 * common as f64 / total as f64 }
}
