//! Reports for a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Color, Style};
use textwrap::{Options, core::display_width};

use super::{
    summary::{
        Fact, Table, change_table, comparison_facts, gate_word, iterations, judge_facts, loop_facts, loop_table,
        manifest_facts, set_facts, tags,
    },
    words::{CaseVerdict, SameFailure, count, one_line, passed, percent_of, printable, verdict_word},
};
use crate::{CaseReport, ExitRules, GateVerdict, LoopReport, Report, RunVerdict, SetReport, text::cut};

/// Failures are shown for so many cases; the other renderings have all.
const MOST_FAILURES: usize = 50;
/// Changed cases are listed up to so many.
const MOST_CHANGES: usize = 20;
/// How many characters of an answer are shown.
const LONGEST_ANSWER: usize = 600;
/// How long the longest bar of a histogram is.
const LONGEST_BAR: u64 = 40;
/// How far the words of verdicts are from the left, as nextest has them.
const MARGIN: usize = 12;

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
    /// the failures last (of the first 50 cases). What a terminal would obey is written as escapes.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let mut page = Page { text: String::new(), width: options.width.max(40), color: options.color };
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
            page.rule();
            page.verdict(&verdict);
        }
        page.text
    }
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = colored(AnsiColor::Red);
const GREEN: Style = colored(AnsiColor::Green);
const YELLOW: Style = colored(AnsiColor::Yellow);

const fn colored(color: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(Color::Ansi(color)))
}

struct Page {
    text: String,
    width: usize,
    color: bool,
}

impl Page {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn rule(&mut self) {
        let rule = "─".repeat(MARGIN);
        self.push(&rule);
    }

    fn heading(&mut self, title: &str) {
        let title = self.paint(BOLD, &one_line(title));
        self.push("");
        self.push(&title);
    }

    /// A word at the margin, and a text beside it.
    fn line(&mut self, word: &str, style: Style, text: &str) {
        let pad = " ".repeat(MARGIN.saturating_sub(display_width(word)));
        let indent = " ".repeat(MARGIN + 1);
        let text = one_line(text);
        let options = Options::new(self.width.saturating_sub(MARGIN + 1).max(20)).break_words(false);
        let lines = textwrap::wrap(&text, options);
        let first = lines.first().map_or("", |line| line.as_ref());
        let word = self.paint(style, word);
        self.push(&format!("{pad}{word} {first}"));
        for line in lines.iter().skip(1) {
            self.push(&format!("{indent}{line}"));
        }
    }

    fn facts(&mut self, facts: &[Fact]) {
        let longest = facts.iter().map(|(name, _)| display_width(name)).max().unwrap_or(0);
        let indent = " ".repeat(longest + 4);
        for (name, value) in facts {
            let value = one_line(value);
            let options = Options::new(self.width).subsequent_indent(&indent).break_words(false);
            let text = format!("  {name}{}  {value}", " ".repeat(longest - display_width(name)));
            for line in textwrap::wrap(&text, options) {
                self.push(&line);
            }
        }
    }

    /// A table; columns that do not fit come below, with the first one again.
    fn table(&mut self, table: &Table) {
        let cells: Vec<Vec<String>> = [table.headers.iter().map(|header| (*header).to_owned()).collect()]
            .into_iter()
            .chain(table.rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()))
            .collect();
        let width_of = |column: usize| cells.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..table.headers.len()).map(width_of).collect();
        let mut next = if table.rows.is_empty() { widths.len() } else { 1 };
        while next < widths.len() {
            if next > 1 {
                self.push("");
            }
            let mut columns = vec![0];
            let mut used = 2 + widths[0];
            while next < widths.len() && (columns.len() == 1 || used + 2 + widths[next] <= self.width) {
                used += 2 + widths[next];
                columns.push(next);
                next += 1;
            }
            for (at, row) in cells.iter().enumerate() {
                let pad = |column: usize| " ".repeat(widths[column] - display_width(&row[column]));
                let mut line = format!("  {}{}", row[0], pad(0));
                for column in columns.iter().skip(1) {
                    let _ = write!(line, "  {}{}", pad(*column), row[*column]);
                }
                let line = if at == 0 { self.paint(DIM, &line) } else { line };
                self.push(&line);
            }
        }
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
        if let Some(loops) = &set.loops {
            self.heading(&format!("{}: loop", set.name));
            self.loops(loops);
        }
        if let Some(judges) = &set.judges {
            self.heading(&format!("{}: judges", set.name));
            self.facts(&judge_facts(judges));
        }
        if let Some(comparison) = &set.comparison {
            self.heading(&format!("{}: against the baseline", set.name));
            self.facts(&comparison_facts(comparison));
            let changed = change_table(comparison, MOST_CHANGES);
            if !changed.rows.is_empty() {
                self.push("");
                self.table(&changed);
            }
        }
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

    fn bars(&mut self, numbers: &[u64], digits: usize) {
        let most = numbers.iter().copied().max().unwrap_or(0).max(1);
        for (iteration, number) in (1..).zip(numbers) {
            // A bar that is there at all is seen.
            let length = u128::from(*number) * u128::from(LONGEST_BAR);
            let length = usize::try_from(length.div_ceil(u128::from(most))).unwrap_or(0);
            self.push(&format!("  {iteration:>digits$}  {} {}", "█".repeat(length), count(*number)));
        }
    }

    fn verdict(&mut self, verdict: &RunVerdict) {
        let style = match verdict {
            RunVerdict::Passed(_) => GREEN,
            RunVerdict::Partial(_) | RunVerdict::Incomplete(_) | RunVerdict::Inconclusive(_) => YELLOW,
            RunVerdict::GateFailed(_) | RunVerdict::TooManyInfrastructureErrors(_) => RED,
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
            self.heading(&format!("failures of {left} more cases are in the other formats"));
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

    fn block(&mut self, text: &str, is_diff: bool) {
        for line in printable(text).lines() {
            let style = match line.as_bytes().first() {
                Some(b'-') if is_diff => RED,
                Some(b'+') if is_diff => GREEN,
                _ => Style::new(),
            };
            let line = self.paint(style, line);
            self.push(&format!("{}{line}", " ".repeat(MARGIN + 1)));
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
