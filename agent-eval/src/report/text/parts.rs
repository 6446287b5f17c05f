//! Parts of a report for a terminal.

use super::{Page, TextOptions, page::YELLOW};
use crate::{Report, SetReport};

impl Report {
    /// The gates of each set, and the verdict.
    pub(crate) fn gates_text(&self, options: &TextOptions) -> String {
        self.parts(options, Page::gates)
    }

    /// The comparison of each set with its baseline, and its gates, and the verdict.
    pub(crate) fn comparisons_text(&self, options: &TextOptions) -> String {
        self.parts(options, |page, set| {
            page.comparison(set);
            page.gates(set);
        })
    }

    /// The loop of each set that has one.
    pub(crate) fn loops_text(&self, options: &TextOptions) -> String {
        let mut page = Page::new(options);
        for set in &self.sets {
            page.loop_of(set);
        }
        page.text
    }

    fn parts(&self, options: &TextOptions, part: impl Fn(&mut Page, &SetReport)) -> String {
        let mut page = Page::new(options);
        for set in &self.sets {
            part(&mut page, set);
        }
        page.push("");
        for warning in &self.warnings {
            page.line("warning", YELLOW, warning);
        }
        page.verdict(&self.verdict(&options.rules));
        page.text
    }
}
