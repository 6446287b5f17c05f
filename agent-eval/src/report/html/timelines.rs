//! Which trials a page shows, and how much of them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use agent_core::Result;

use super::timeline::timeline;
use crate::{CaseReport, EvalCase, ExitRules, RunLog, SetReport, TrialKey, Verdict};

/// How a page is written that shows trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HtmlOptions {
    /// What the verdict looks at beside the report.
    pub rules: ExitRules,
    /// Whether trials that passed are shown, too; not by default.
    pub passed: bool,
    /// How many characters are shown of each text; 4,000 by default. The rest is cut with a note.
    pub longest_text: usize,
    /// How many bytes all timelines together have at most; 8 MiB by default. Trials beyond are left out with a note,
    /// later repeats first.
    pub most_bytes: usize,
}

impl Default for HtmlOptions {
    fn default() -> Self {
        Self { rules: ExitRules::default(), passed: false, longest_text: 4_000, most_bytes: 8 << 20 }
    }
}

/// In the order in which they are shown rather than others: the first repeats of all cases come first.
type Place = (u32, String, String);

/// The trials that a page shows, each as a piece of it.
#[derive(Debug, Default)]
pub(super) struct Timelines {
    pieces: BTreeMap<Place, String>,
    left_out: BTreeSet<Place>,
    bytes: usize,
}

impl Timelines {
    /// Reads the trials one after the other, and keeps the pieces only.
    pub(super) fn of(run: &RunLog, options: &HtmlOptions) -> Result<Self> {
        let cases: HashMap<(&str, &str), &EvalCase> = run
            .sets()
            .iter()
            .flat_map(|set| set.cases.iter().map(|case| ((set.name.as_str(), case.id.as_str()), case)))
            .collect();
        let mut found = Self::default();
        for trial in run.trials()? {
            let trial = trial?;
            let TrialKey { set, case, repeat } = &trial.key;
            let place = (*repeat, set.clone(), case.clone());
            // A later line of the same trial replaces an earlier one.
            found.forget(&place);
            if options.passed || trial.verdict != Verdict::Pass {
                let case = cases.get(&(set.as_str(), case.as_str())).copied();
                found.keep(place, timeline(&trial, case, options.longest_text), options.most_bytes);
            }
        }
        Ok(found)
    }

    fn forget(&mut self, place: &Place) {
        self.left_out.remove(place);
        self.bytes -= self.pieces.remove(place).map_or(0, |piece| piece.len());
    }

    fn keep(&mut self, place: Place, piece: String, most: usize) {
        self.bytes += piece.len();
        self.pieces.insert(place, piece);
        while self.bytes > most {
            let Some((place, piece)) = self.pieces.pop_last() else { return };
            self.bytes -= piece.len();
            self.left_out.insert(place);
        }
    }

    /// The timelines of a case; empty if none of its trials is shown.
    pub(super) fn of_case(&self, set: &SetReport, case: &CaseReport) -> String {
        let place = |repeat: usize| (u32::try_from(repeat).unwrap_or(u32::MAX), set.name.clone(), case.id.clone());
        let places = || (0..case.verdicts.len()).map(place);
        let mut text = super::concat(places().filter_map(|place| self.pieces.get(&place).cloned()));
        let left_out = places().filter(|place| self.left_out.contains(place)).count();
        if left_out > 0 {
            let _ =
                writeln!(text, "<p class=\"dim\">{left_out} more in the run's log: the page would be too large.</p>");
        }
        if text.is_empty() { text } else { format!("<h4>trials</h4>\n{text}") }
    }
}
