//! The plots of a report, as SVG within the page.

use std::fmt::Write as _;

use super::super::{
    summary::{changes, iterations},
    words::{CaseVerdict, count, html, passed, percent, percent_of, range, rounded},
};
use crate::{CaseReport, Comparison, LoopReport, stats::Interval};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 256.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;
/// Changed cases are drawn up to so many, those with the largest change.
const MOST_CHANGES: usize = 30;
/// How many cases a row of the strip has.
const STRIP: usize = 60;

/// A value of an axis that begins at 0, as a share of its end.
fn share(value: f64, end: f64) -> f64 {
    let share = value / end;
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

fn y(share: f64) -> f64 {
    TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
}

/// The middle of the column of an iteration, from 0.
fn x(at: usize, columns: usize) -> f64 {
    LEFT + (at as f64 + 0.5) * (WIDTH - LEFT - RIGHT) / columns.max(1) as f64
}

fn open(width: f64, height: f64, title: &str) -> String {
    let title = html(title);
    format!(
        "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" aria-label=\"{title}\"><title>{title}</title>"
    )
}

/// Lines across, with their values and what they are values of, and the numbers of the iterations below.
fn axes(columns: usize, vertical: &str, horizontal: &str, label: impl Fn(f64) -> String) -> String {
    let mut text = format!(
        "<text class=\"axis start\" x=\"4\" y=\"14\">{vertical}</text>\
         <text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\">{horizontal}</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 6.0
    );
    for quarter in 0..=4 {
        let value = f64::from(quarter) / 4.0;
        let (at, end) = (y(value), WIDTH - RIGHT);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            label(value)
        );
    }
    let step = columns.div_ceil(12).max(1);
    for at in (0..columns).step_by(step) {
        let _ = write!(text, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x(at, columns), HEIGHT - BOTTOM + 17.0, at + 1);
    }
    text
}

/// Passed by iteration k, with its interval, and what asking afresh would come to.
pub(super) fn pass_by(report: &LoopReport) -> String {
    let columns = iterations(report);
    let mut text = open(WIDTH, HEIGHT, "Share of trials passed by iteration k");
    text.push_str(&axes(columns, "share of trials", "iteration k", |value| format!("{:.0} %", value * 100.0)));
    let bands: Vec<(usize, Interval)> =
        (0..columns).filter_map(|at| Some((at, report.pass_by_interval.get(at).copied().flatten()?))).collect();
    let low = bands.iter().map(|(at, band)| (*at, band.low));
    let high = bands.iter().rev().map(|(at, band)| (*at, band.high));
    if bands.len() > 1 {
        let _ = write!(text, "<polygon class=\"band\" points=\"{}\"/>", points(low.chain(high), columns));
    }
    for (at, band) in &bands {
        let (x, low, high) = (x(*at, columns), y(share(band.low, 1.0)), y(share(band.high, 1.0)));
        let _ = write!(text, "<line class=\"whisker\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>");
    }
    let afresh: Vec<(usize, f64)> =
        report.resampling.iter().enumerate().filter_map(|(at, share)| Some((at, (*share)?))).collect();
    text.push_str(&curve("afresh", &afresh, columns, |at, value| {
        format!("asking afresh {at} times: {}", percent(value))
    }));
    let passed: Vec<(usize, f64)> = report.pass_by.iter().copied().enumerate().collect();
    text.push_str(&curve("loop", &passed, columns, |at, value| {
        let interval = report.pass_by_interval.get(at - 1).copied().flatten();
        format!("passed by iteration {at}: {} ({})", percent(value), range(interval))
    }));
    text.push_str("</svg>");
    text
}

fn points(at: impl Iterator<Item = (usize, f64)>, columns: usize) -> String {
    let point = |(at, value): (usize, f64)| format!("{:.1},{:.1}", x(at, columns), y(share(value, 1.0)));
    at.map(point).collect::<Vec<_>>().join(" ")
}

fn curve(class: &str, values: &[(usize, f64)], columns: usize, title: impl Fn(usize, f64) -> String) -> String {
    let line = points(values.iter().copied(), columns);
    let mut text = format!("<polyline class=\"{class}\" points=\"{line}\"/>");
    for (at, value) in values {
        let (x, y, title) = (x(*at, columns), y(share(*value, 1.0)), html(&title(at + 1, *value)));
        let _ = write!(
            text,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{title}</title></circle>"
        );
    }
    text
}

/// How many trials ended after how many iterations.
pub(super) fn exits(report: &LoopReport) -> String {
    let numbers: Vec<f64> = report.exits.iter().map(|exits| *exits as f64).collect();
    bars("Trials by iterations at exit", ["trials", "iterations at exit"], &numbers, |at, number| {
        format!("{} ended after iteration {at}", rounded(number))
    })
}

/// Mean tokens of an iteration.
pub(super) fn tokens(report: &LoopReport) -> String {
    bars("Mean tokens by iteration", ["tokens of a trial, mean", "iteration"], &report.tokens, |at, number| {
        format!("iteration {at}: {} tokens on average", rounded(number))
    })
}

fn bars(
    title: &str,
    [vertical, horizontal]: [&str; 2],
    numbers: &[f64],
    hint: impl Fn(usize, f64) -> String,
) -> String {
    let most = numbers.iter().copied().filter(|number| number.is_finite()).fold(0.0, f64::max);
    let columns = numbers.len();
    let end = round_end(most);
    let mut text = open(WIDTH, HEIGHT, title);
    text.push_str(&axes(columns, vertical, horizontal, |value| short(value * end)));
    let width = ((WIDTH - LEFT - RIGHT) / columns.max(1) as f64 * 0.62).clamp(1.0, 56.0);
    for (at, number) in numbers.iter().enumerate() {
        let (left, top) = (x(at, columns) - width / 2.0, y(share(*number, end)));
        let (height, title) = (y(0.0) - top, html(&hint(at + 1, *number)));
        let _ = write!(
            text,
            "<rect class=\"bar\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\">\
             <title>{title}</title></rect>"
        );
        if columns <= 12 {
            let label = short(*number);
            let _ =
                write!(text, "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>", x(at, columns), top - 4.0);
        }
    }
    text.push_str("</svg>");
    text
}

/// The end of an axis with four steps: a little above the largest value.
fn round_end(most: f64) -> f64 {
    let most = most * 1.1;
    let unit = 10_f64.powf(most.max(10.0).log10().floor());
    let ends = [0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0];
    ends.into_iter().map(|step| step * unit).find(|end| *end >= most).unwrap_or(most)
}

/// `950`, `1.2k`, `3.4M`.
fn short(number: f64) -> String {
    match number {
        _ if number >= 1e6 => format!("{:.1}M", number / 1e6),
        _ if number >= 1e3 => format!("{:.1}k", number / 1e3),
        _ => rounded(number),
    }
}

/// Pass rates before and now, of the cases that changed the most.
pub(super) fn dumbbells(comparison: &Comparison) -> String {
    const ROW: f64 = 22.0;
    const NAME: f64 = 190.0;
    let shown: Vec<&(String, f64, f64)> = changes(comparison).into_iter().take(MOST_CHANGES).collect();
    let (width, height) = (640.0, ROW * shown.len() as f64 + 46.0);
    let place = |rate: f64| NAME + share(rate, 1.0) * (width - NAME - 20.0);
    let mut text = open(width, height, "Pass rates before and now of the cases that changed");
    for quarter in 0..=4 {
        let rate = f64::from(quarter) / 4.0;
        let (x, end) = (place(rate), height - 40.0);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{end:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\">{:.0} %</text>",
            height - 26.0,
            rate * 100.0
        );
    }
    let _ = write!(text, "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\">pass rate</text>", place(0.5), height - 8.0);
    for (row, (id, old, new)) in shown.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5) + 4.0;
        let class = if new < old { "worse" } else { "better" };
        let name = html(&crate::text::cut(id, 26));
        let title = html(&format!("{id}: {} before, {} now", percent(*old), percent(*new)));
        let (from, to) = (place(*old), place(*new));
        let _ = write!(
            text,
            "<g class=\"{class}\"><title>{title}</title>\
             <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\
             <line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             <circle class=\"before\" cx=\"{from:.1}\" cy=\"{middle:.1}\" r=\"5\"/>\
             <circle cx=\"{to:.1}\" cy=\"{middle:.1}\" r=\"5\"/></g>",
            NAME - 14.0,
            middle + 4.0
        );
    }
    text.push_str("</svg>");
    text
}

/// A square for each case, filled from below by its pass rate.
pub(super) fn strip(cases: &[CaseReport]) -> String {
    const CELL: f64 = 13.0;
    const GAP: f64 = 3.0;
    let (columns, rows) = (cases.len().clamp(1, STRIP), cases.len().div_ceil(STRIP));
    let (width, height) = (columns as f64 * (CELL + GAP), rows as f64 * (CELL + GAP));
    let mut text = open(width, height, &format!("Pass rates of {} cases", count(cases.len() as u64)));
    for (at, case) in cases.iter().enumerate() {
        let (left, top) = ((at % STRIP) as f64 * (CELL + GAP), (at / STRIP) as f64 * (CELL + GAP));
        let (verdict, filled) = (CaseVerdict::of(case), share(case.tally.rate.unwrap_or(0.0), 1.0) * CELL);
        let title = html(&format!(
            "{}: {}, {} passed ({})",
            case.id,
            verdict.word(),
            passed(&case.tally),
            percent_of(case.tally.rate)
        ));
        let class = super::class_of(verdict);
        let _ = write!(
            text,
            "<g class=\"cell {class}\"><title>{title}</title>\
             <rect class=\"all\" x=\"{left}\" y=\"{top}\" width=\"{CELL}\" height=\"{CELL}\" rx=\"2\"/>\
             <rect x=\"{left}\" y=\"{:.1}\" width=\"{CELL}\" height=\"{filled:.1}\" rx=\"2\"/></g>",
            top + CELL - filled
        );
    }
    text.push_str("</svg>");
    text
}
