//! Reports for a terminal.

mod page;
#[cfg(feature = "cli")]
mod parts;

use anstyle::Style;
use textwrap::core::display_width;

use page::{BOLD, DIM, GREEN, MARGIN, Page, RED, YELLOW};

use super::{
    summary::{
        change_table, comparison_facts, gate_word, iterations, judge_facts, loop_facts, loop_table, manifest_facts,
        outcome, set_facts, tags,
    },
    words::{CaseVerdict, SameFailure, count, one_line, passed, percent_of, verdict_word},
};
use crate::{CaseReport, ExitRules, GateVerdict, LoopReport, Report, RunVerdict, SetReport, text::cut};

/// Failures are shown for so many cases; JSON and HTML have all.
const MOST_FAILURES: usize = 50;
/// Changed cases are listed up to so many.
const MOST_CHANGES: usize = 20;
/// How many characters of an answer are shown.
const LONGEST_ANSWER: usize = 600;

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextOptions {
    /// Columns; 100 by default. Ids are never cut.
    pub width: usize,
    /// Whether to use ANSI colors; not by default.
    pub color: bool,
    /// What the verdict looks at beside the report.
    pub rules: ExitRules,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { width: 100, color: false, rules: ExitRules::default() }
    }
}

impl Report {
    /// As text for people: a line for each case, what each set comes to, warnings, the verdict with its exit code, and
    /// the failures last (of the first 50 cases), with each set's outcome and the verdict after them. What a terminal
    /// would obey is written as escapes.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let mut page = Page::new(options);
        for set in &self.sets {
            page.set(set);
        }
        page.heading("run");
        page.facts(&manifest_facts(&self.manifest));
        for warning in &self.warnings {
            page.line("warning", YELLOW, warning);
        }
        page.rule();
        page.line("Summary", BOLD, &self.totals());
        let verdict = self.verdict(&options.rules);
        page.verdict(&verdict);
        if page.failures(self) {
            page.heading("sets");
            for set in &self.sets {
                page.line(&one_line(&set.name), BOLD, &outcome(set));
            }
            page.rule();
            page.verdict(&verdict);
        }
        page.text
    }
}

impl Page {
    fn new(options: &TextOptions) -> Self {
        Self { text: String::new(), width: options.width.max(40), color: options.color }
    }

    fn set(&mut self, set: &SetReport) {
        self.heading(&format!("set {}", set.name));
        self.cases(&set.cases);
        self.heading(&format!("{}: trials", set.name));
        self.facts(&set_facts(set));
        if !set.tags.is_empty() {
            self.push("");
            self.table(&tags(set));
        }
        self.loop_of(set);
        if let Some(judges) = &set.judges {
            self.heading(&format!("{}: judges", set.name));
            self.facts(&judge_facts(judges));
        }
        self.comparison(set);
        self.gates(set);
    }

    fn loop_of(&mut self, set: &SetReport) {
        if let Some(loops) = &set.loops {
            self.heading(&format!("{}: loop", set.name));
            self.loops(loops);
        }
    }

    fn comparison(&mut self, set: &SetReport) {
        if let Some(comparison) = &set.comparison {
            self.heading(&format!("{}: against the baseline", set.name));
            self.facts(&comparison_facts(comparison));
            let changed = change_table(comparison, MOST_CHANGES);
            if !changed.rows.is_empty() {
                self.push("");
                self.table(&changed);
            }
        }
    }

    fn gates(&mut self, set: &SetReport) {
        if !set.gates.is_empty() {
            self.heading(&format!("{}: gates", set.name));
        }
        for gate in &set.gates {
            let style = match gate.verdict {
                GateVerdict::Passed => GREEN,
                GateVerdict::Failed => RED,
                GateVerdict::Inconclusive => YELLOW,
            };
            self.line(gate_word(gate.verdict), style, &format!("{} ({})", gate.gate, gate.detail));
        }
    }

    fn cases(&mut self, cases: &[CaseReport]) {
        let ids: Vec<String> = cases.iter().map(|case| one_line(&case.id)).collect();
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let id_width = widest(&mut ids.iter().map(|id| display_width(id)).filter(|width| *width <= self.width / 2));
        let rate_width = widest(&mut cases.iter().map(|case| passed(&case.tally).len()));
        let tokens_width = widest(&mut cases.iter().map(|case| count(case.tally.usage.total()).len()));
        for (case, id) in cases.iter().zip(&ids) {
            let verdict = CaseVerdict::of(case);
            let pad = " ".repeat(MARGIN - verdict.word().len());
            let word = self.paint(style_of(verdict), verdict.word());
            let id_pad = " ".repeat(id_width.saturating_sub(display_width(id)));
            let tokens = count(case.tally.usage.total());
            let (passed, rate) = (passed(&case.tally), percent_of(case.tally.rate));
            let quarantine = case.quarantine.as_ref().map_or("", |_| "  (in quarantine)");
            self.push(&format!(
                "{pad}{word} {id}{id_pad}  {passed:>rate_width$}  {rate:>7}  {tokens:>tokens_width$} tokens{quarantine}"
            ));
        }
    }

    fn loops(&mut self, loops: &LoopReport) {
        self.table(&loop_table(loops));
        self.push("");
        self.facts(&loop_facts(loops));
        if loops.exits.iter().any(|exits| *exits > 0) {
            self.push("");
            self.push("  iterations at exit");
            self.bars(&loops.exits, iterations(loops).to_string().len());
        }
        if !loops.diagnoses.is_empty() {
            self.push("");
        }
        for diagnosis in &loops.diagnoses {
            self.line("diagnosis", YELLOW, diagnosis);
        }
    }

    fn verdict(&mut self, verdict: &RunVerdict) {
        let style = match verdict {
            RunVerdict::Passed(_) => GREEN,
            RunVerdict::Partial(_) | RunVerdict::Incomplete(_) | RunVerdict::Inconclusive(_) => YELLOW,
            RunVerdict::BadSetup(_) | RunVerdict::GateFailed(_) | RunVerdict::TooManyInfrastructureErrors(_) => RED,
        };
        let text = verdict.to_string();
        let (word, why) = text.split_once(": ").unwrap_or((&text, ""));
        self.line(word, style, &format!("{why} (exit code {})", verdict.exit_code()));
    }

    /// Whether there were any.
    fn failures(&mut self, report: &Report) -> bool {
        let failed = || {
            let cases = report.sets.iter().flat_map(|set| set.cases.iter().map(move |case| (set, case)));
            cases.filter(|(_, case)| !case.failures.is_empty())
        };
        for (set, case) in failed().take(MOST_FAILURES) {
            for same in SameFailure::all(case) {
                self.heading(&format!("{} {} ({})", set.name, case.id, same.repeats()));
                self.failure(&same);
            }
        }
        let left = failed().count().saturating_sub(MOST_FAILURES);
        if left > 0 {
            self.heading(&format!("failures of {left} more cases are in the JSON and HTML reports"));
        }
        failed().next().is_some()
    }

    fn failure(&mut self, same: &SameFailure<'_>) {
        if let Some(error) = &same.failure.error {
            self.line("error", RED, error);
        }
        for check in &same.failure.checks {
            let turn = check.turn.map_or_else(String::new, |turn| format!(" (turn {turn})"));
            let value = check.outcome.value.map_or_else(String::new, |value| format!(" [{value}]"));
            let text = format!("{}{turn}{value}: {}", check.check, check.outcome.reason);
            self.line(verdict_word(check.outcome.verdict), RED, text.trim_end_matches(": "));
            self.block(check.outcome.diff.as_deref().unwrap_or(""), true);
        }
        if !same.failure.answer.is_empty() {
            self.line("answer", DIM, "");
            self.block(&cut(&same.failure.answer, LONGEST_ANSWER), false);
        }
    }
}

fn style_of(verdict: CaseVerdict) -> Style {
    match verdict {
        CaseVerdict::Pass => GREEN,
        CaseVerdict::Mixed | CaseVerdict::Unscored | CaseVerdict::NotRun => YELLOW,
        CaseVerdict::Fail | CaseVerdict::Error => RED,
    }
}
