//! The cases of a report, with their failures.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    super::words::{CaseVerdict, SameFailure, count, html, passed, percent_of, verdict_word},
    badge, class_of, concat,
    timelines::Timelines,
};
use crate::{CaseReport, SetReport, Verdict};

/// All verdicts, in the order of the filter.
const VERDICTS: [CaseVerdict; 6] = [
    CaseVerdict::Fail,
    CaseVerdict::Error,
    CaseVerdict::Mixed,
    CaseVerdict::Unscored,
    CaseVerdict::NotRun,
    CaseVerdict::Pass,
];

pub(super) fn list(sets: &[SetReport], timelines: &Timelines) -> String {
    let there: Vec<CaseVerdict> = sets.iter().flat_map(|set| &set.cases).map(CaseVerdict::of).collect();
    let verdicts = VERDICTS.iter().filter(|verdict| there.contains(verdict)).map(|verdict| verdict.word());
    let tags: BTreeSet<&str> = sets.iter().flat_map(|set| set.tags.keys()).map(String::as_str).collect();
    let mut text = format!(
        "<div class=\"tools\">\n<h2 id=\"cases\">Cases</h2>\n<form hidden role=\"search\" aria-label=\"Filter of cases\">\n\
         <label>Search <input type=\"search\" name=\"q\"></label>\n{}{}{}<span class=\"dim keys\">keys: <kbd>j</kbd> next, <kbd>k</kbd> previous</span><output aria-live=\"polite\"></output>\n</form>\n</div>\n",
        choice("Verdict", "verdict", verdicts),
        choice("Set", "set", sets.iter().map(|set| set.name.as_str())),
        choice("Tag", "tag", tags.into_iter()),
    );
    for set in sets {
        for case in &set.cases {
            text.push_str(&article(set, case, &timelines.of_case(set, case)));
        }
    }
    text.push_str("<p class=\"none\" hidden>No case passes the filter.</p>\n");
    text
}

fn choice<'a>(label: &str, name: &str, values: impl Iterator<Item = &'a str>) -> String {
    let option = |value: &str| format!("<option>{}</option>", html(value));
    let options = concat(values.map(option));
    format!("<label>{label} <select name=\"{name}\"><option value=\"\">all</option>{options}</select></label>\n")
}

fn article(set: &SetReport, case: &CaseReport, trials: &str) -> String {
    let verdict = CaseVerdict::of(case);
    let class = class_of(verdict);
    let data = format!(
        "class=\"case\" data-verdict=\"{}\" data-set=\"{}\" data-tags=\"{}\"",
        verdict.word(),
        html(&set.name),
        html(&case.tags.join("\n"))
    );
    let dots = concat(case.verdicts.iter().map(|verdict| dot(*verdict)));
    let row = format!(
        "{}<span class=\"id\">{} <span class=\"tags\">{}</span></span>\
         <span class=\"dots\" role=\"img\" aria-label=\"{} trials passed\">{dots}</span>\
         <span class=\"number\">{}</span><span class=\"number\">{}</span><span class=\"number dim\">{} tokens</span>",
        badge(class, verdict.word()),
        html(&case.id),
        html(&case.tags.join(" ")),
        passed(&case.tally),
        passed(&case.tally),
        percent_of(case.tally.rate),
        count(case.tally.usage.total()),
    );
    if case.failures.is_empty() && case.quarantine.is_none() && trials.is_empty() {
        return format!("<div {data}><div class=\"row\">{row}</div></div>\n");
    }
    let quarantine = case.quarantine.as_ref().map(|why| format!("<p>In quarantine: {}</p>\n", html(why)));
    let failures = concat(SameFailure::all(case).iter().map(failure));
    let quarantine = quarantine.unwrap_or_default();
    format!(
        "<details {data}><summary class=\"row\">{row}</summary><div class=\"inside\">\n{quarantine}{failures}{trials}</div></details>\n"
    )
}

fn dot(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Pass => "good",
        Verdict::Fail | Verdict::Error => "bad",
        Verdict::Unscored => "open",
    };
    format!("<i class=\"{class}\" title=\"{}\"></i>", verdict_word(verdict))
}

fn failure(same: &SameFailure<'_>) -> String {
    let mut text = format!("<h4>{}</h4>\n", same.repeats());
    let failure = same.failure;
    if let Some(error) = &failure.error {
        let _ = writeln!(text, "<p>{} {}</p>", badge("bad", "error"), html(error));
    }
    for check in &failure.checks {
        let turn = check.turn.map_or_else(String::new, |turn| format!(" turn {turn}"));
        let value = check.outcome.value.map_or_else(String::new, |value| format!(" [{value}]"));
        let class = if check.outcome.verdict == Verdict::Unscored { "open" } else { "bad" };
        let _ = writeln!(
            text,
            "<p>{} <code>{}</code>{turn}{value} {}</p>",
            badge(class, verdict_word(check.outcome.verdict)),
            html(&check.check),
            html(&check.outcome.reason)
        );
        if let Some(diff) = &check.outcome.diff {
            let _ = writeln!(text, "<pre>{}</pre>", diff_lines(diff));
        }
    }
    if !failure.answer.is_empty() {
        let _ = writeln!(text, "<h4>answer</h4>\n<pre>{}</pre>", html(&failure.answer));
    }
    text
}

fn diff_lines(diff: &str) -> String {
    let line = |line: &str| match line.as_bytes().first() {
        Some(b'-') => format!("<del>{}</del>", html(line)),
        Some(b'+') => format!("<ins>{}</ins>", html(line)),
        _ => format!("<span>{}\n</span>", html(line)),
    };
    concat(diff.lines().map(line))
}
