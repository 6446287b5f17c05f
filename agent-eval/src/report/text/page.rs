//! Lines, lists, tables and bars in a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Color, Style};
use textwrap::{Options, core::display_width};

use super::super::{
    summary::{Fact, Table},
    words::{count, one_line, printable},
};

/// How long the longest bar of a histogram is.
const LONGEST_BAR: u64 = 40;
/// How far the words of verdicts are from the left, as nextest has them.
pub(super) const MARGIN: usize = 12;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const RED: Style = colored(AnsiColor::Red);
pub(super) const GREEN: Style = colored(AnsiColor::Green);
pub(super) const YELLOW: Style = colored(AnsiColor::Yellow);

const fn colored(color: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(Color::Ansi(color)))
}

/// A text in the making.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) width: usize,
    pub(super) color: bool,
}

impl Page {
    pub(super) fn paint(&self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub(super) fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    pub(super) fn rule(&mut self) {
        let rule = "─".repeat(MARGIN);
        self.push(&rule);
    }

    pub(super) fn heading(&mut self, title: &str) {
        let title = self.paint(BOLD, &one_line(title));
        self.push("");
        self.push(&title);
    }

    /// A word at the margin, and a text beside it.
    pub(super) fn line(&mut self, word: &str, style: Style, text: &str) {
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

    pub(super) fn facts(&mut self, facts: &[Fact]) {
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
    pub(super) fn table(&mut self, table: &Table) {
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

    pub(super) fn bars(&mut self, numbers: &[u64], digits: usize) {
        let most = numbers.iter().copied().max().unwrap_or(0).max(1);
        for (iteration, number) in (1..).zip(numbers) {
            // A bar that is there at all is seen.
            let length = u128::from(*number) * u128::from(LONGEST_BAR);
            let length = usize::try_from(length.div_ceil(u128::from(most))).unwrap_or(0);
            self.push(&format!("  {iteration:>digits$}  {} {}", "█".repeat(length), count(*number)));
        }
    }

    pub(super) fn block(&mut self, text: &str, is_diff: bool) {
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
