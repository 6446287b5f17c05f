//! Reports as Markdown, for pull requests.

use std::fmt::Write as _;

use super::{
    summary::{
        Fact, Table, change_table, comparison_facts, gate_word, judge_facts, loop_facts, loop_table, manifest_facts,
        set_facts, tags,
    },
    words::{
        CaseVerdict, SameFailure, count, html, of_these, one_line, passed, percent_of, printable, range, verdict_word,
    },
};
use crate::{CaseReport, ExitRules, Report, SetReport, text::cut};

/// A comment on GitHub has at most 65,536 characters; details end before.
const MOST: usize = 45_000;
/// Cases that did not pass, and changed ones, are listed up to so many.
const MOST_ROWS: usize = 50;
/// How many characters are shown of an error, a reason, a diff or an answer.
const LONGEST: usize = 1_500;
/// How many characters are shown of what stands in a list or a table.
const SHORT: usize = 300;
/// The rule of a column of words.
const WORDS: &str = ":--";
/// The rule of a column of numbers.
const NUMBERS: &str = "--:";

impl Report {
    /// As Markdown after GitHub's rules, short enough for a comment: the verdict, a table of the sets, and for each set
    /// its gates, its loop, its comparison and its failures, collapsed. What comes from cases, agents and judges is
    /// escaped: it is text, and mentions nobody.
    pub fn to_markdown(&self, rules: &ExitRules) -> String {
        let verdict = self.verdict(rules);
        let mut page = Page { text: String::new() };
        let text = verdict.to_string();
        let (word, why) = text.split_once(": ").unwrap_or((&text, ""));
        page.paragraph(&format!("## Evaluation: {word}"));
        page.paragraph(&format!("{} (exit code {})", prose(&cut(why, LONGEST)), verdict.exit_code()));
        page.paragraph(&prose(&self.totals()));
        page.sets(&self.sets);
        for warning in self.warnings.iter().take(MOST_ROWS) {
            page.line(&format!("- ⚠️ {}", prose(&cut(warning, SHORT))));
        }
        page.line("");
        let mut shown = 0;
        while shown < self.sets.len() && page.text.len() < MOST {
            page.set(&self.sets[shown]);
            shown += 1;
        }
        page.left_out(self.sets.len() - shown, "set");
        page.open("Run");
        page.facts(&manifest_facts(&self.manifest));
        page.close();
        page.text
    }
}

struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        self.line(text);
        self.line("");
    }

    /// Says that there is more.
    fn left_out(&mut self, number: usize, what: &str) {
        if number > 0 {
            self.paragraph(&format!("The JSON and HTML reports have {} more.", of_these(number as u64, what)));
        }
    }

    fn open(&mut self, summary: &str) {
        self.paragraph(&format!("<details><summary>{}</summary>", html(&one_line(summary))));
    }

    fn close(&mut self) {
        self.paragraph("</details>");
    }

    /// A table, with a rule for each column that says how it is aligned.
    fn table(&mut self, headers: &[&str], rules: &[&str], rows: impl Iterator<Item = Vec<String>>) {
        self.line(&format!("| {} |", headers.join(" | ")));
        self.line(&format!("| {} |", rules.join(" | ")));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
        self.line("");
    }

    /// A table whose first column is code if it names cases or tags.
    fn data(&mut self, table: &Table, is_named: bool) {
        let cell = |(at, cell): (usize, &String)| if at == 0 && is_named { code_cell(cell) } else { prose(cell) };
        if table.rows.is_empty() {
            return;
        }
        let rules: Vec<&str> = (0..table.headers.len()).map(|at| if at == 0 { WORDS } else { NUMBERS }).collect();
        self.table(
            &table.headers,
            &rules,
            table.rows.iter().take(MOST_ROWS).map(|row| row.iter().enumerate().map(cell).collect()),
        );
    }

    fn facts(&mut self, facts: &[Fact]) {
        for (name, value) in facts {
            self.line(&format!("- {name}: {}", prose(&cut(value, SHORT))));
        }
        self.line("");
    }

    fn sets(&mut self, sets: &[SetReport]) {
        let row = |set: &SetReport| {
            let held = set.gates.iter().filter(|gate| gate.verdict == crate::GateVerdict::Passed).count();
            vec![
                code_cell(&set.name),
                count(set.cases.len() as u64),
                passed(&set.total),
                percent_of(set.total.rate),
                range(set.total.interval),
                count(set.total.usage.total()),
                format!("{held} of {}", set.gates.len()),
            ]
        };
        let headers = ["set", "cases", "passed", "rate", "95 %", "tokens", "gates that hold"];
        let rules = [WORDS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS];
        self.table(&headers, &rules, sets.iter().take(MOST_ROWS).map(row));
    }

    fn set(&mut self, set: &SetReport) {
        self.paragraph(&format!("### {}", code(&set.name)));
        if !set.gates.is_empty() {
            let row = |gate: &crate::GateResult| {
                vec![code_cell(&gate.gate), gate_word(gate.verdict).to_owned(), prose(&cut(&gate.detail, SHORT))]
            };
            self.table(&["gate", "verdict", "numbers"], &[WORDS; 3], set.gates.iter().take(MOST_ROWS).map(row));
        }
        self.facts(&set_facts(set));
        if let Some(loops) = &set.loops {
            for diagnosis in &loops.diagnoses {
                self.line(&format!("- **diagnosis:** {}", prose(diagnosis)));
            }
            self.line("");
            self.open("Loop");
            self.data(&loop_table(loops), false);
            self.facts(&loop_facts(loops));
            let exits =
                (1_u64..).zip(&loops.exits).map(|(iteration, exits)| vec![iteration.to_string(), count(*exits)]);
            self.table(&["iterations at exit", "trials"], &[NUMBERS; 2], exits);
            self.close();
        }
        if let Some(judges) = &set.judges {
            self.open("Judges");
            self.facts(&judge_facts(judges));
            self.close();
        }
        if let Some(comparison) = &set.comparison {
            self.paragraph("Against the baseline:");
            self.facts(&comparison_facts(comparison));
            let changed = change_table(comparison, MOST_ROWS);
            if !changed.rows.is_empty() {
                self.open("Changed cases");
                self.data(&changed, true);
                self.close();
            }
        }
        if !set.tags.is_empty() {
            self.open("Tags");
            self.data(&tags(set), true);
            self.close();
        }
        self.cases(&set.cases);
    }

    fn cases(&mut self, cases: &[CaseReport]) {
        let bad: Vec<&CaseReport> = cases.iter().filter(|case| CaseVerdict::of(case) != CaseVerdict::Pass).collect();
        if bad.is_empty() {
            return;
        }
        self.open(&format!("Cases that did not pass in all trials ({} of {})", bad.len(), cases.len()));
        let row = |case: &&CaseReport| {
            let rate = percent_of(case.tally.rate);
            let quarantine = case.quarantine.as_ref().map_or_else(String::new, |why| prose(&cut(why, SHORT)));
            let verdict = CaseVerdict::of(case).word().to_owned();
            vec![code_cell(&case.id), verdict, passed(&case.tally), rate, quarantine]
        };
        let rules = [WORDS, WORDS, NUMBERS, NUMBERS, WORDS];
        self.table(&["case", "verdict", "passed", "rate", "quarantine"], &rules, bad.iter().take(MOST_ROWS).map(row));
        let mut shown = 0;
        for case in &bad {
            let details = failures(case);
            if self.text.len() + details.len() > MOST {
                break;
            }
            self.text.push_str(&details);
            shown += 1;
        }
        self.left_out(bad.len() - shown, "case");
        self.close();
    }
}

fn failures(case: &CaseReport) -> String {
    let mut text = String::new();
    for same in SameFailure::all(case) {
        let _ = write!(text, "#### {}, {}\n\n", code(&case.id), same.repeats());
        let failure = same.failure;
        if let Some(error) = &failure.error {
            let _ = write!(text, "error: {}\n\n", prose(&cut(error, LONGEST)));
        }
        for check in &failure.checks {
            let verdict = verdict_word(check.outcome.verdict);
            let reason = prose(&cut(&check.outcome.reason, LONGEST));
            let _ = write!(text, "{verdict}: {}: {reason}\n\n", code(&check.check));
            if let Some(diff) = &check.outcome.diff {
                text.push_str(&block(&cut(diff, LONGEST), "diff"));
            }
        }
        if !failure.answer.is_empty() {
            text.push_str("answer:\n\n");
            text.push_str(&block(&cut(&failure.answer, LONGEST), "text"));
        }
    }
    text
}

/// Text on one line that is no markup, no link and no mention.
fn prose(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in one_line(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => {
                safe.push('\\');
                safe.push(character);
            }
            // GitHub looks for people and issues after it has read the markup: an escape does not stop it.
            '@' | '#' => {
                safe.push(character);
                safe.push('\u{200b}');
            }
            other => safe.push(other),
        }
    }
    safe
}

/// How many backticks stand in a row at most.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// Text as code, on one line.
fn code(text: &str) -> String {
    let text = one_line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.is_empty() || text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// The same in a table, whose cells a pipe would end even in code.
fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A block of code that nothing in it ends.
fn block(text: &str, language: &str) -> String {
    let text = printable(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n\n", text.trim_end())
}
