//! The timeline as a page of its own: it loads nothing, and all that a session says is text in it.

mod chart;
mod escape;
mod tags;

use std::fmt::{self, Write};

use agent_loop::{IterationRecord, LoopOutcome};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

use self::{escape::Escaped, tags::Tags};
use super::{
    format::{self, visible},
    part::{Part, call_text},
    text::end_of,
    timeline::{Step, Timeline},
};

const STYLE: &str = concat!(include_str!("../../../../agent-eval/src/report/html/base.css"), include_str!("style.css"));
const SCRIPT: &str = include_str!("script.js");
/// Longer texts, in characters or lines, are folded.
const FOLDED: (usize, usize) = (700, 12);
const TAKES_ANY: &str = "a string takes any text";

pub(super) fn render(timeline: &Timeline) -> String {
    let mut page = String::new();
    write_page(&mut page, timeline).expect(TAKES_ANY);
    page
}

fn write_page(page: &mut String, timeline: &Timeline) -> fmt::Result {
    let id = visible(&timeline.id);
    let id = Escaped(&id);
    // Only these very texts may style the page or run in it, whatever a session says.
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy =
        format!("default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'");
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{id} · session</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#events\">Skip to the events</a>\n",
        Escaped(&policy)
    )?;
    write!(page, "<header class=\"top\"><p class=\"over\">Session</p><h1>{id}</h1>")?;
    facts(page, timeline)?;
    page.push_str("</header>\n");
    outcomes(page, timeline)?;
    toolbar(page, timeline)?;
    page.push_str("<main id=\"events\" tabindex=\"-1\">\n");
    for run in timeline.steps.chunk_by(|_, next| next.begins_run.is_none()) {
        run_of(page, timeline, run)?;
    }
    page.push_str("<p class=\"none\" hidden>No event is like that.</p>\n</main>\n");
    page.push_str(
        "<footer class=\"keys\"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> next and previous event \
         <kbd>e</kbd> its JSON <kbd>Esc</kbd> show all</footer>\n",
    );
    write!(page, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// What a Content-Security-Policy allows a text by.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

fn facts(page: &mut String, timeline: &Timeline) -> fmt::Result {
    let number = |n: usize| format::number(n as u64);
    let mut facts = vec![
        ("Events", number(timeline.steps.len())),
        ("Runs", number(timeline.runs)),
        ("Tokens", format::number(timeline.usage.total())),
        ("Took", format::duration(timeline.millis())),
        ("Repeats", number(timeline.repeats())),
    ];
    if let Some(start) = timeline.start {
        facts.push(("Began", format::instant(start).replace('T', " ").replace('Z', " UTC")));
    }
    page.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        write!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", Escaped(&value))?;
    }
    page.push_str("</dl>");
    if timeline.usage.total() > 0 {
        write!(page, "<p class=\"usage\">{}</p>", Escaped(&format::tokens(timeline.usage)))?;
    }
    for call in &timeline.waiting {
        let call = visible(&call_text(&call.name, &call.arguments));
        write!(page, "<p class=\"waiting\">Waits for an answer: <code>{}</code></p>", Escaped(&call))?;
    }
    Ok(())
}

fn outcomes(page: &mut String, timeline: &Timeline) -> fmt::Result {
    if timeline.loops.is_empty() {
        return Ok(());
    }
    page.push_str("<section class=\"loops\" aria-label=\"Loops\">\n");
    for (name, outcome) in &timeline.loops {
        let LoopOutcome { stop, by, why, iterations } = outcome;
        let mood = match stop {
            None => "open",
            Some(_) if outcome.passed() => "good",
            Some(stop) if stop.is_suspended() => "open",
            Some(_) => "bad",
        };
        let tokens = iterations.iter().map(|record| record.usage).sum::<agent_core::Usage>().total();
        let about = format!("{} · {} tokens", format::count(iterations.len(), "iteration"), format::number(tokens));
        write!(
            page,
            "<article class=\"loop\"><h2><span class=\"dim\">loop</span> {}</h2>\
             <p><span class=\"badge {mood}\">{}</span> <span class=\"dim\">{about}</span></p>",
            Escaped(&visible(name)),
            Escaped(&end_of(*stop)),
        )?;
        if let Some(by) = by {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            write!(page, "<p class=\"why\">by {}</p>", Escaped(&visible(&format!("{by}{why}"))))?;
        }
        page.push_str("<div class=\"split\">");
        chart::tokens(page, timeline, name, iterations)?;
        records(page, iterations)?;
        page.push_str("</div></article>\n");
    }
    page.push_str("</section>\n");
    Ok(())
}

fn records(page: &mut String, iterations: &[IterationRecord]) -> fmt::Result {
    if iterations.is_empty() {
        return Ok(());
    }
    let open = if iterations.len() <= 5 { " open" } else { "" };
    write!(page, "<details class=\"records\"{open}><summary>Iterations</summary><table><thead><tr><th>#</th>")?;
    page.push_str("<th>In</th><th>Out</th><th>Time</th><th>Decided by</th></tr></thead><tbody>");
    for (at, IterationRecord { usage, millis, by, feedback, .. }) in iterations.iter().enumerate() {
        let feedback = feedback.as_ref().map(|feedback| format!(": {feedback}")).unwrap_or_default();
        let by = by.as_ref().map_or_else(|| "—".to_owned(), |by| visible(&format!("{by}{feedback}")));
        write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            at + 1,
            format::number(usage.input_tokens),
            format::number(usage.output_tokens),
            format::duration(*millis),
            Escaped(&by),
        )?;
    }
    page.push_str("</tbody></table></details>");
    Ok(())
}

fn toolbar(page: &mut String, timeline: &Timeline) -> fmt::Result {
    let Tags { authors, kinds, paths } = Tags::of_all(&timeline.steps);
    // Without its script the page shows everything, and nothing that would not work.
    page.push_str("<form class=\"tools\" role=\"search\" aria-label=\"Filter events\" hidden>");
    page.push_str("<label>Search <input type=\"search\" name=\"q\" autocomplete=\"off\" spellcheck=\"false\"></label>");
    for (label, name, values) in [("Author", "author", authors), ("Kind", "kind", kinds), ("Iteration", "in", paths)] {
        write!(page, "<label>{label} <select name=\"{name}\"><option value=\"\">all</option>")?;
        for value in values {
            let shown = visible(&value);
            write!(page, "<option value=\"{}\">{}</option>", Escaped(&value), Escaped(&shown))?;
        }
        page.push_str("</select></label>");
    }
    page.push_str(
        "<label class=\"check\"><input type=\"checkbox\" name=\"repeats\" value=\"1\"> only repeats</label>\
         <button type=\"button\" data-do=\"clear\">Show all</button>\
         <button type=\"button\" data-do=\"fold\">Fold all</button>\
         <button type=\"button\" data-do=\"theme\">Theme: auto</button>\
         <output aria-live=\"polite\"></output></form>\n",
    );
    Ok(())
}

fn run_of(page: &mut String, timeline: &Timeline, steps: &[Step]) -> fmt::Result {
    let run = steps.first().and_then(|step| step.begins_run).unwrap_or(1);
    let at = timeline.start.zip(steps.first().and_then(|step| step.offset));
    let at = at.map(|(start, offset)| format::instant(start.saturating_add_signed(offset)));
    writeln!(
        page,
        "<section class=\"run group\"><h2>Run {run} <time>{}</time></h2>",
        at.unwrap_or_default().replace('T', " ").replace('Z', " UTC")
    )?;
    nested(page, steps, 0)?;
    page.push_str("</section>\n");
    Ok(())
}

/// Events of which all are in the same first `depth` iterations.
fn nested(page: &mut String, steps: &[Step], depth: usize) -> fmt::Result {
    for group in
        steps.chunk_by(|a, b| a.event.path.get(depth).is_some() && a.event.path.get(depth) == b.event.path.get(depth))
    {
        let Some(iteration) = group.first().and_then(|step| step.event.path.get(depth)) else {
            group.iter().try_for_each(|step| event(page, step))?;
            continue;
        };
        let tokens = group.iter().filter_map(|step| step.event.usage).sum::<agent_core::Usage>().total();
        let about = format!("{} · {} tokens", format::count(group.len(), "event"), format::number(tokens));
        writeln!(
            page,
            "<details class=\"iteration group\" open><summary><b>{} #{}</b> <span class=\"dim\">{about}</span></summary>",
            Escaped(&visible(&iteration.name)),
            iteration.iteration,
        )?;
        nested(page, group, depth + 1)?;
        page.push_str("</details>\n");
    }
    Ok(())
}

fn event(page: &mut String, step: &Step) -> fmt::Result {
    let Step { number, event, offset, parts, .. } = step;
    let repeats = if step.repeats() { " repeats" } else { "" };
    let offset = offset.map_or_else(|| "?".to_owned(), format::offset);
    write!(
        page,
        "<article class=\"event{repeats}\" id=\"e{number}\" tabindex=\"-1\" data-tags=\"{}\">\
         <p class=\"at\"><a href=\"#e{number}\" aria-label=\"Event {number}\">{number}</a> <span>{offset}</span></p>\
         <div class=\"parts\">",
        Escaped(&Tags::of(step).json()),
    )?;
    let mut before = "";
    for part in parts {
        write_part(page, part, part.who == before)?;
        before = &part.who;
    }
    if parts.is_empty() {
        let who = visible(&event.author);
        write!(page, "<div class=\"part\"><span class=\"who\">{}</span></div>", Escaped(&who))?;
    }
    page.push_str("</div>");
    if let Some(usage) = event.usage {
        let (all, total) = (format::tokens(usage), format::number(usage.total()));
        write!(page, "<span class=\"usage\" title=\"{}\">{total} tokens</span>", Escaped(&all))?;
    }
    let json = serde_json::to_string_pretty(event).expect("an event that was read from JSON can be written as JSON");
    writeln!(
        page,
        "<details class=\"json\"><summary aria-label=\"JSON of event {number}\">JSON</summary><pre>{}</pre></details>\
         </article>",
        Escaped(&visible(&json)),
    )
}

/// `goes_on`: by whom the part before is.
fn write_part(page: &mut String, part: &Part, goes_on: bool) -> fmt::Result {
    let Part { kind, who, text, repeat, .. } = part;
    let (text, who) = (visible(text), if goes_on { String::new() } else { visible(who) });
    let class = kind.name().trim_end_matches('?');
    let kind = kind.name();
    write!(
        page,
        "<div class=\"part {class}\"><span class=\"who\" title=\"{who}\">{who}</span><span class=\"kind\">{kind}</span>\
         <div class=\"said\">",
        who = Escaped(&who),
    )?;
    if let Some(repeat) = repeat {
        let (times, first) = (repeat.times, repeat.first);
        write!(
            page,
            "<span class=\"again\" title=\"The same was there before\">⟳ {times}× <a href=\"#e{first}\">as {first}</a></span> "
        )?;
    }
    let characters = text.chars().count();
    if characters > FOLDED.0 || text.lines().count() > FOLDED.1 {
        let cut: String =
            text.lines().take(FOLDED.1 / 2).collect::<Vec<_>>().join("\n").chars().take(FOLDED.0 / 2).collect();
        write!(
            page,
            "<details class=\"long\"><summary><span class=\"cut text\">{}…</span> <span class=\"dim\">all {} characters</span>\
             </summary><div class=\"text\">{}</div></details>",
            Escaped(&cut),
            format::number(characters as u64),
            Escaped(&text),
        )?;
    } else {
        write!(page, "<div class=\"text\">{}</div>", Escaped(&text))?;
    }
    page.push_str("</div></div>");
    Ok(())
}
