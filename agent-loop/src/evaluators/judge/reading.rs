//! What a judge's reply means.

use agent_core::{Format, unfenced};
use serde::Deserialize;
use serde_json::json;

use super::material::Material;
use crate::LoopEvaluation;

/// What the author is told by a judge that gives no reason.
const NO_REASON: &str = "A reviewer finds that the answer does not do all that was requested, and does not say what is \
                         missing. Check it against the request, point by point, and complete it.";

/// One judge's verdict.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Reading {
    answered: bool,
    #[serde(default)]
    gap: String,
}

impl Reading {
    /// Reads a reply: as JSON, else by its markers. "More" wins, and no marker is "more".
    pub(super) fn of(reply: &str, material: &Material) -> Self {
        let text = unfenced(reply);
        if let Ok(reading) = serde_json::from_str(text) {
            return reading;
        }
        let Material { done, more, .. } = material;
        let answered = !text.contains(more.as_str()) && text.contains(done.as_str());
        let is_prose = !text.starts_with('{'); // JSON that was cut says nothing to an author
        let gap = if is_prose { text.replace(more.as_str(), "").replace(done.as_str(), "") } else { String::new() };
        Self { answered, gap }
    }
}

/// The form of a verdict.
pub(super) fn format() -> Format {
    let schema = json!({
        "type": "object",
        "properties": {
            "answered": { "type": "boolean", "description": "Whether nothing that was asked is missing or wrong." },
            "gap": { "type": "string", "description": "What is missing or wrong, for the author; else empty." },
        },
        "required": ["answered", "gap"],
        "additionalProperties": false,
    });
    Format::JsonSchema { name: "verdict".to_owned(), schema }
}

/// The majority's verdict, with the gaps of those who object.
pub(super) fn decide(readings: Vec<Reading>) -> LoopEvaluation {
    let seats = readings.len();
    let objections: Vec<Reading> = readings.into_iter().filter(|reading| !reading.answered).collect();
    if objections.len() * 2 < seats {
        return LoopEvaluation::Satisfied;
    }
    let mut gaps: Vec<String> = objections.into_iter().map(|reading| reading.gap.trim().to_owned()).collect();
    gaps.retain(|gap| !gap.is_empty());
    let mut at = 0;
    while at < gaps.len() {
        if gaps[..at].contains(&gaps[at]) { drop(gaps.remove(at)) } else { at += 1 }
    }
    LoopEvaluation::feedback(match gaps.as_slice() {
        [] => NO_REASON.to_owned(),
        [gap] => gap.clone(),
        gaps => gaps.iter().map(|gap| format!("- {gap}")).collect::<Vec<_>>().join("\n"),
    })
}
