//! The timeline as lines of text.

use std::io::{self, Write};

use agent_core::StopReason;
use agent_loop::{IterationRecord, LoopOutcome};
use anstyle::{AnsiColor, Style};
use textwrap::{Options, core::display_width};

use super::{
    format::{self, visible},
    part::{Kind, Part, call_text},
    timeline::{Step, Timeline, took},
};

/// How wide lines are, and whether long texts are shown whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) width: usize,
    pub(super) full: bool,
}

impl Layout {
    /// Where nobody says how wide a line may be.
    pub(super) const DEFAULT_WIDTH: usize = 100;
    pub(super) const MIN_WIDTH: usize = 40;
}

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const REPEAT: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
/// The longest name that gets its own width; longer ones are cut.
const WIDEST_NAME: usize = 16;
const KIND_WIDTH: usize = 9;
const TIME_WIDTH: usize = 9;

pub(super) fn print(out: &mut (impl Write + ?Sized), timeline: &Timeline, layout: Layout) -> io::Result<()> {
    let mut printer = Printer::new(out, timeline, layout);
    printer.title()?;
    for step in &timeline.steps {
        printer.step(step)?;
    }
    printer.summary()
}

struct Printer<'a, W> {
    out: W,
    timeline: &'a Timeline,
    layout: Layout,
    number_width: usize,
    name_width: usize,
    /// The iterations that the last event was in.
    path: &'a [agent_core::LoopStep],
    /// Whether a text was cut.
    cut: bool,
}

impl<'a, W: Write> Printer<'a, W> {
    fn new(out: W, timeline: &'a Timeline, layout: Layout) -> Self {
        let names = timeline.steps.iter().flat_map(|step| &step.parts).map(|part| display_width(&part.who));
        let name_width = names.max().unwrap_or(0).min(WIDEST_NAME);
        let number_width = timeline.steps.len().to_string().len();
        Self { out, timeline, layout, number_width, name_width, path: &[], cut: false }
    }

    fn title(&mut self) -> io::Result<()> {
        let Timeline { id, steps, usage, runs, .. } = self.timeline;
        let about = [
            format::count(steps.len(), "event"),
            format::count(*runs, "run"),
            format::duration(self.timeline.millis()),
            format!("{} tokens: {}", format::number(usage.total()), format::tokens(*usage)),
        ];
        writeln!(self.out, "{BOLD}session {}{BOLD:#}", visible(id))?;
        writeln!(self.out, "{DIM}{}{DIM:#}", about.join(" · "))
    }

    fn step(&mut self, step: &'a Step) -> io::Result<()> {
        if let Some(run) = step.begins_run {
            let at = self.timeline.start.zip(step.offset).map(|(start, offset)| {
                format!(" {DIM}at {}{DIM:#}", format::instant(start.saturating_add_signed(offset)))
            });
            writeln!(self.out, "\n{BOLD}run {run}{BOLD:#}{}", at.unwrap_or_default())?;
            self.path = &[];
        }
        self.enter(&step.event.path)?;
        let number = step.number.to_string();
        let offset = step.offset.map_or_else(|| "?".to_owned(), format::offset);
        let number_width = self.number_width;
        let mut head = format!("{DIM}{number:>number_width$} {offset:>TIME_WIDTH$}{DIM:#}");
        let mut who = "";
        for part in &step.parts {
            self.part(&head, if part.who == who { "" } else { &part.who }, part)?;
            head = " ".repeat(self.head_width());
            who = &part.who;
        }
        if let Some(usage) = step.event.usage {
            let who = if step.parts.is_empty() { &step.event.author } else { "" };
            self.row(&head, who, ("tokens", DIM), "", &format::tokens(usage))?;
        } else if step.parts.is_empty() {
            self.row(&head, &step.event.author, ("nothing", DIM), "", "")?;
        }
        Ok(())
    }

    /// The width of an event's number and time.
    fn head_width(&self) -> usize {
        self.number_width + 1 + TIME_WIDTH
    }

    /// Says which iterations begin, and remembers them.
    fn enter(&mut self, path: &'a [agent_core::LoopStep]) -> io::Result<()> {
        let shared = self.path.iter().zip(path).take_while(|(a, b)| a == b).count();
        let blank = " ".repeat(self.head_width() + 2);
        for (depth, step) in path.iter().enumerate().skip(shared) {
            let bars = "│ ".repeat(depth);
            let name = visible(&step.name);
            writeln!(self.out, "{blank}{DIM}{bars}╭{DIM:#} {BOLD}{name} #{}{BOLD:#}", step.iteration)?;
        }
        self.path = path;
        Ok(())
    }

    fn part(&mut self, head: &str, who: &str, part: &Part) -> io::Result<()> {
        let repeat = part.repeat.map(|repeat| format!("⟳{} (as {}) ", repeat.times, repeat.first)).unwrap_or_default();
        self.row(head, who, (part.kind.name(), style_of(part.kind)), &repeat, &part.text)
    }

    fn row(&mut self, head: &str, who: &str, kind: (&str, Style), repeat: &str, text: &str) -> io::Result<()> {
        let bars = "│ ".repeat(self.path.len());
        let who = self.fit(&visible(who), self.name_width);
        let (kind, style) = kind;
        let rest = self.name_width + 2 + KIND_WIDTH + 2;
        let indent = self.head_width() + 2 + display_width(&bars) + rest;
        let width = self.layout.width.saturating_sub(indent).max(Layout::MIN_WIDTH / 2);
        let lines = self.lines(&visible(text), width, display_width(repeat));
        let pad = " ".repeat(self.name_width.saturating_sub(display_width(&who)));
        let mut lines = lines.into_iter();
        let first = lines.next().unwrap_or_default();
        let start = format!("{head}  {DIM}{bars}{DIM:#}{who}{pad}  {style}{kind:<KIND_WIDTH$}{style:#}  ");
        let line = format!("{start}{REPEAT}{repeat}{REPEAT:#}{first}");
        writeln!(self.out, "{}", line.trim_end())?;
        for line in lines {
            let (before, after) = (" ".repeat(self.head_width() + 2), " ".repeat(rest));
            writeln!(self.out, "{}", format!("{before}{DIM}{bars}{DIM:#}{after}{line}").trim_end())?;
        }
        Ok(())
    }

    /// A text as lines of this width, the first shorter by what stands before it: one line, unless all is asked for.
    fn lines(&mut self, text: &str, width: usize, before: usize) -> Vec<String> {
        if !self.layout.full {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return vec![self.fit(&line, width.saturating_sub(before).max(1))];
        }
        let blank = " ".repeat(before);
        let options = Options::new(width).initial_indent(&blank);
        let mut lines: Vec<String> = Vec::new();
        for line in text.replace('\t', "    ").lines() {
            let options = if lines.is_empty() { options.clone() } else { Options::new(width) };
            lines.extend(textwrap::wrap(line, options).into_iter().map(std::borrow::Cow::into_owned));
        }
        if let Some(first) = lines.first_mut() {
            first.drain(..before.min(first.len()));
        }
        lines
    }

    /// A line that is cut where it is too wide.
    fn fit(&mut self, line: &str, width: usize) -> String {
        let mut taken = 0;
        let mut end = None;
        for (at, c) in line.char_indices() {
            let wide = display_width(c.encode_utf8(&mut [0; 4]));
            if end.is_none() && taken + wide + 1 > width {
                end = Some(at); // as much as fits beside an ellipsis
            }
            taken += wide;
            if taken > width {
                self.cut = true;
                return format!("{}…", &line[..end.unwrap_or(at)]);
            }
        }
        line.to_owned()
    }

    fn summary(&mut self) -> io::Result<()> {
        for (name, outcome) in &self.timeline.loops {
            self.outcome(name, outcome)?;
        }
        for call in &self.timeline.waiting {
            let call = visible(&call_text(&call.name, &call.arguments));
            let line = self.fit(&format!("waits for an answer: {call}"), self.layout.width);
            writeln!(self.out, "\n{REPEAT}{line}{REPEAT:#}")?;
        }
        if self.cut {
            writeln!(self.out, "\n{DIM}long texts are cut; --full shows them whole{DIM:#}")?;
        }
        Ok(())
    }

    fn outcome(&mut self, name: &str, outcome: &LoopOutcome) -> io::Result<()> {
        let LoopOutcome { stop, by, why, iterations } = outcome;
        let style = if outcome.passed() { GOOD } else { BAD };
        let used = iterations.iter().map(|record| record.usage).sum::<agent_core::Usage>();
        let about = format!(
            "{} · {} tokens · {}",
            format::count(iterations.len(), "iteration"),
            format::number(used.total()),
            format::duration(took(iterations)),
        );
        writeln!(self.out, "\n{BOLD}loop {}{BOLD:#}  {style}{}{style:#}  {about}", visible(name), end_of(*stop))?;
        if let Some(by) = by {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            self.indented(&format!("by {by}{why}"))?;
        }
        for (at, IterationRecord { usage, millis, by, feedback, .. }) in iterations.iter().enumerate() {
            let by = by.as_ref().map(|by| format!(" · {by}")).unwrap_or_default();
            let feedback = feedback.as_ref().map(|feedback| format!(": {feedback}")).unwrap_or_default();
            let (number, took) = (format::number(usage.total()), format::duration(*millis));
            self.indented(&format!("#{} · {number} tokens · {took}{by}{feedback}", at + 1))?;
        }
        Ok(())
    }

    fn indented(&mut self, text: &str) -> io::Result<()> {
        let width = self.layout.width.saturating_sub(2);
        for line in self.lines(&visible(text), width, 0) {
            writeln!(self.out, "  {line}")?;
        }
        Ok(())
    }
}

/// How a loop ended, as its record says.
pub(super) fn end_of(stop: Option<StopReason>) -> String {
    stop.map_or_else(|| "no end yet: it runs, or was interrupted".to_owned(), |stop| stop.to_string())
}

fn style_of(kind: Kind) -> Style {
    match kind {
        Kind::Request => AnsiColor::Cyan.on_default().bold(),
        Kind::Feedback | Kind::Verdict => AnsiColor::Magenta.on_default(),
        Kind::Answer => AnsiColor::Green.on_default(),
        Kind::Call | Kind::Result => AnsiColor::Blue.on_default(),
        Kind::Error | Kind::Rejected => AnsiColor::Red.on_default(),
        Kind::Approval | Kind::Approved | Kind::Escalation | Kind::Rewind => AnsiColor::Yellow.on_default(),
        Kind::Loop => BOLD,
        Kind::System | Kind::Thoughts | Kind::Data | Kind::State => DIM,
    }
}
