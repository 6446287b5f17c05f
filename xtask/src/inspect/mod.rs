//! `cargo xtask inspect`: what happened in a session, read from its events.

mod format;
mod page;
mod part;
mod text;
mod timeline;

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use agent_core::{Event, JsonlStore, SessionStore};
use clap::Args;

use self::{text::Layout, timeline::Timeline};

/// Show a session's events: as a timeline in the terminal, or as a page for the browser.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The session's file.
    #[arg(required_unless_present = "dir", conflicts_with_all = ["dir", "id"])]
    file: Option<PathBuf>,
    /// A directory of sessions.
    #[arg(long, requires = "id")]
    dir: Option<PathBuf>,
    /// Which session of the directory.
    #[arg(long, requires = "dir")]
    id: Option<String>,
    /// Show long texts whole.
    #[arg(long)]
    full: bool,
    /// The width of the lines; the terminal's own if it is absent.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// Write a page of its own to this file instead: it needs no network, and no other file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), String> {
        // Says what the store drops: the torn last line of an interrupted write.
        let warnings = tracing_subscriber::fmt().without_time().with_target(false).with_ansi(false);
        warnings.with_writer(io::stderr).init();
        let (id, events) = self.load()?;
        let timeline = Timeline::of(id, events);
        match &self.html {
            Some(path) => write_page(&timeline, path),
            None => self.print(&timeline),
        }
    }

    fn load(&self) -> Result<(String, Vec<Event>), String> {
        if let Some(file) = &self.file {
            return JsonlStore::read_file(file).map_err(|error| format!("{error:#}"));
        }
        let (Some(dir), Some(id)) = (&self.dir, &self.id) else {
            return Err("inspect nothing: name a session's file, or --dir and --id".to_owned());
        };
        from_store(dir, id).map(|events| (id.clone(), events))
    }

    fn print(&self, timeline: &Timeline) -> Result<(), String> {
        let width = self.width.or_else(terminal_width).unwrap_or(Layout::DEFAULT_WIDTH);
        let layout = Layout { width: width.max(Layout::MIN_WIDTH), full: self.full };
        print(&format!("session `{}`", timeline.id), |out| text::print(out, timeline, layout))
    }
}

fn from_store(dir: &Path, id: &str) -> Result<Vec<Event>, String> {
    // Opening the store would create it.
    if !dir.is_dir() {
        return Err(format!("open session directory `{}`: there is no such directory", dir.display()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| format!("start a runtime: {error}"))?;
    let read = runtime.block_on(async {
        let store = JsonlStore::open(dir)?;
        let events = store.events(id, 0).await?;
        let known = if events.is_empty() { store.list_page("", None, LISTED + 1).await? } else { Vec::new() };
        Ok((events, known))
    });
    let (events, known) = read.map_err(|error: agent_core::Error| format!("{error:#}"))?;
    if events.is_empty() {
        return Err(format!("read session `{id}` in `{}`: it is not there; {}", dir.display(), those(&known)));
    }
    Ok(events)
}

/// How many sessions are named where one is not found.
const LISTED: usize = 10;

fn those(known: &[String]) -> String {
    if known.is_empty() {
        return "there are none".to_owned();
    }
    let mut names: Vec<String> = known.iter().take(LISTED).map(|id| format!("`{id}`")).collect();
    if known.len() > LISTED {
        names.push("…".to_owned());
    }
    format!("there are: {}", names.join(", "))
}

fn write_page(timeline: &Timeline, path: &Path) -> Result<(), String> {
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        let path = path.display();
        return Err(format!("write page `{path}`: that is a session file's name; take one that ends in `.html`"));
    }
    fs::write(path, page::render(timeline)).map_err(|error| format!("write page `{}`: {error}", path.display()))?;
    print("where the page is", |out| writeln!(out, "wrote {}", path.display()))
}

/// Prints something, of which an error tells `what` it is.
fn print(what: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let mut out = anstream::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        // Whoever reads has seen enough, as `head` has.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("print {what}: {error}")),
        Ok(()) => Ok(()),
    }
}

fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}
