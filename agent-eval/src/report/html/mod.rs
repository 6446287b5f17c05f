//! Reports as one page of HTML that needs nothing else.

mod cases;
mod svg;
mod timeline;
mod timelines;

use std::fmt::Write as _;

pub use self::timelines::HtmlOptions;
use self::timelines::Timelines;
use super::{
    summary::{
        Fact, Table, comparison_facts, gate_word, judge_facts, loop_facts, loop_table, manifest_facts, set_facts, tags,
    },
    words::{CaseVerdict, html},
};
use crate::{Comparison, ExitRules, GateResult, GateVerdict, LoopReport, Report, RunLog, RunVerdict, SetReport};
use agent_core::Result;

/// Nothing is loaded and nothing is sent, whatever the page is made to hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

impl Report {
    /// As one page of HTML, light or dark as the reader's system is: the verdict, what each set comes to with its
    /// plots, and all cases with their failures behind a filter. It loads nothing and asks no network; what comes from
    /// cases, agents and judges is text in it and nothing else. Without scripts all but the filter works.
    pub fn to_html(&self, rules: &ExitRules) -> String {
        self.page(rules, &Timelines::default())
    }

    /// As [`to_html`](Self::to_html), with a timeline of each trial that did not pass, or of all: what was said, called
    /// and answered, what the gold checks and the loop say of each iteration, expected beside made calls, and all
    /// checks. `run` is the log that the report is of; its trials are read one after the other.
    ///
    /// # Errors
    /// What keeps the log from being read.
    pub fn to_html_with_trials(&self, run: &RunLog, options: &HtmlOptions) -> Result<String> {
        Ok(self.page(&options.rules, &Timelines::of(run, options)?))
    }

    fn page(&self, rules: &ExitRules, timelines: &Timelines) -> String {
        let verdict = self.verdict(rules);
        let text = verdict.to_string();
        let (word, why) = text.split_once(": ").unwrap_or((&text, ""));
        let names: Vec<&str> = self.sets.iter().map(|set| set.name.as_str()).collect();
        let title = html(&format!("{word}: {}", names.join(", ")));
        let style = concat!(include_str!("base.css"), include_str!("style.css"));
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#cases\">Skip to the cases</a>\n<header>\n<p class=\"over\">Evaluation</p>\n\
             <h1>{} {}</h1>\n<p>{} <span class=\"dim\">(exit code {})</span></p>\n<p class=\"dim\">{}</p>\n",
            badge(class_of_run(&verdict), word),
            html(&names.join(", ")),
            html(why),
            verdict.exit_code(),
            html(&self.totals()),
        );
        page.push_str(&facts(&manifest_facts(&self.manifest), "facts"));
        page.push_str("</header>\n<main>\n");
        page.push_str(&notes("Warnings", &self.warnings));
        for (at, set) in self.sets.iter().enumerate() {
            page.push_str(&section(at, set));
        }
        page.push_str(&cases::list(&self.sets, timelines));
        let script = include_str!("script.js");
        let _ = write!(page, "</main>\n<script>\n{script}</script>\n</body>\n</html>\n");
        page
    }
}

fn section(at: usize, set: &SetReport) -> String {
    let mut text = format!(
        "<section class=\"set\" aria-labelledby=\"set-{at}\">\n<h2 id=\"set-{at}\">{}</h2>\n{}",
        html(&set.name),
        facts(&set_facts(set), "facts")
    );
    let caption = "Each case, filled by its pass rate";
    text.push_str(&heading("Cases"));
    text.push_str(&figure(&svg::strip(&set.cases), caption));
    if !set.gates.is_empty() {
        text.push_str(&gates(&set.gates));
    }
    if let Some(loops) = &set.loops {
        text.push_str(&loop_section(loops));
    }
    if let Some(comparison) = &set.comparison {
        text.push_str(&comparison_section(comparison));
    }
    if let Some(judges) = &set.judges {
        text.push_str(&heading("Judges"));
        text.push_str(&facts(&judge_facts(judges), "list"));
    }
    if !set.tags.is_empty() {
        text.push_str(&heading("Tags"));
        text.push_str(&table(&tags(set)));
    }
    text.push_str("</section>\n");
    text
}

fn gates(gates: &[GateResult]) -> String {
    let mut text = heading("Gates");
    text.push_str("<div class=\"scroll\"><table class=\"gates\"><tbody>\n");
    for gate in gates {
        let class = match gate.verdict {
            GateVerdict::Passed => "good",
            GateVerdict::Failed => "bad",
            GateVerdict::Inconclusive => "open",
        };
        let (badge, name, detail) = (badge(class, gate_word(gate.verdict)), html(&gate.gate), html(&gate.detail));
        let _ = writeln!(text, "<tr><td>{badge}</td><th scope=\"row\"><code>{name}</code></th><td>{detail}</td></tr>");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

fn loop_section(loops: &LoopReport) -> String {
    let legend = "<span class=\"legend\"><span class=\"key\"></span>the loop (95 %) <span class=\"key afresh\"></span>asking afresh as often</span>";
    let mut text = heading("Loop");
    text.push_str(&notes("Diagnoses", &loops.diagnoses));
    text.push_str("<div class=\"plots\">\n");
    text.push_str(&figure(&svg::pass_by(loops), &format!("Passed by iteration k {legend}")));
    text.push_str(&figure(&svg::exits(loops), "Trials by iterations at exit"));
    text.push_str(&figure(&svg::tokens(loops), "Mean tokens by iteration"));
    text.push_str("</div>\n");
    text.push_str(&facts(&loop_facts(loops), "list"));
    text.push_str(&heading("Iterations"));
    text.push_str(&table(&loop_table(loops)));
    text
}

fn comparison_section(comparison: &Comparison) -> String {
    let mut text = heading("Against the baseline");
    text.push_str(&facts(&comparison_facts(comparison), "list"));
    if !comparison.better.is_empty() || !comparison.worse.is_empty() {
        let caption = "Pass rates before (hollow) and now (filled), of the cases that changed the most";
        text.push_str(&figure(&svg::dumbbells(comparison), caption));
    }
    text
}

fn heading(title: &str) -> String {
    format!("<h3>{title}</h3>\n")
}

fn figure(plot: &str, caption: &str) -> String {
    format!("<figure><figcaption>{caption}</figcaption>{plot}</figure>\n")
}

fn badge(class: &str, word: &str) -> String {
    format!("<span class=\"badge {class}\">{}</span>", html(word))
}

fn notes(label: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let items = concat(notes.iter().map(|note| format!("<li>{}</li>\n", html(note))));
    format!("<ul class=\"notes\" aria-label=\"{label}\">\n{items}</ul>\n")
}

fn facts(facts: &[Fact], class: &str) -> String {
    let item = |(name, value): &Fact| {
        let pair = format!("<dt>{}</dt><dd>{}</dd>", html(name), html(value));
        if class == "facts" { format!("<div>{pair}</div>\n") } else { format!("{pair}\n") }
    };
    format!("<dl class=\"{class}\">\n{}</dl>\n", concat(facts.iter().map(item)))
}

fn table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let headers = concat(table.headers.iter().map(|header| format!("<th scope=\"col\">{header}</th>")));
    let cell = |(at, cell): (usize, &String)| {
        let cell = html(cell);
        if at == 0 { format!("<th scope=\"row\">{cell}</th>") } else { format!("<td>{cell}</td>") }
    };
    let row = |row: &Vec<String>| format!("<tr>{}</tr>\n", concat(row.iter().enumerate().map(cell)));
    let rows = concat(table.rows.iter().map(row));
    format!(
        "<div class=\"scroll\"><table class=\"numbers\"><thead><tr>{headers}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Pieces of a page, joined.
fn concat(pieces: impl Iterator<Item = String>) -> String {
    pieces.collect::<Vec<_>>().concat()
}

fn class_of(verdict: CaseVerdict) -> &'static str {
    match verdict {
        CaseVerdict::Pass => "good",
        CaseVerdict::Mixed | CaseVerdict::Unscored | CaseVerdict::NotRun => "open",
        CaseVerdict::Fail | CaseVerdict::Error => "bad",
    }
}

fn class_of_run(verdict: &RunVerdict) -> &'static str {
    match verdict {
        RunVerdict::Passed(_) => "good",
        RunVerdict::Partial(_) | RunVerdict::Incomplete(_) | RunVerdict::Inconclusive(_) => "open",
        RunVerdict::BadSetup(_) | RunVerdict::GateFailed(_) | RunVerdict::TooManyInfrastructureErrors(_) => "bad",
    }
}
