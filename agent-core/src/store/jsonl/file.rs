//! One session's file, under a lock.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use super::header;
use crate::{Error, ErrorKind, Event, Result};

/// How many bytes of a line tell it from all others: an event begins with its own id.
const MARK: usize = 64;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Access {
    /// Reading, beside other readers.
    Read,
    /// Changing, alone.
    Write,
    /// Changing, alone; an absent file is created.
    Create,
}

/// A session's file, locked against other handles and processes until it is dropped.
pub(super) struct LogFile<'a> {
    file: File,
    path: &'a Path,
    /// In bytes, when the lock was taken.
    len: u64,
}

/// A place between two lines, and what the lines before it come to. Appends never change what is before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    /// How many events come before.
    pub(super) version: u64,
    pub(super) offset: u64,
    pub(super) lines: u64,
    /// Where the line before begins.
    pub(super) last: u64,
    /// How the line before begins.
    pub(super) mark: Vec<u8>,
}

impl Position {
    fn pass(&mut self, line: &[u8], events: usize) {
        self.version += events as u64;
        self.last = self.offset;
        self.offset += line.len() as u64;
        self.lines += 1;
        self.mark.clear();
        self.mark.extend_from_slice(&line[..line.len().min(MARK)]);
    }
}

impl<'a> LogFile<'a> {
    /// Opens and locks the file; none if there is none.
    pub(super) fn open(path: &'a Path, access: Access) -> Result<Option<Self>> {
        loop {
            let write = access != Access::Read;
            let mut options = OpenOptions::new();
            options.read(true).write(write).create(access == Access::Create).truncate(false);
            // Before it is opened: a pipe that nobody writes to would wait here for ever.
            match fs::metadata(path) {
                Ok(found) if !found.is_file() && !found.is_dir() => return Err(no_file(path)),
                Ok(_) | Err(_) => (), // what is wrong is said below
            }
            let file = match options.open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound && access != Access::Create => return Ok(None),
                Err(error) => return Err(failed("open", path, error)),
            };
            lock(&file, write).map_err(|error| failed("lock", path, error))?;
            let metadata = file.metadata().map_err(|error| failed("open", path, error))?;
            if metadata.is_dir() {
                return Err(failed("open", path, io::ErrorKind::IsADirectory.into()));
            }
            // Whoever held the lock before may have deleted the file, and others may have created it again.
            if is_at(&metadata, path).map_err(|error| failed("open", path, error))? {
                return Ok(Some(Self { file, path, len: metadata.len() }));
            }
        }
    }

    /// The id in the header; none if nothing is stored: the header or the first events are torn.
    pub(super) fn id(&self) -> Result<Option<String>> {
        let mut lines = self.lines(0)?;
        let header = self.next_line(&mut lines)?;
        if !header.ends_with(b"\n") {
            return Ok(None);
        }
        let id = header::id_in(&header, self.path)?;
        Ok(self.next_line(&mut lines)?.ends_with(b"\n").then_some(id))
    }

    /// Checks whose file it is, and returns the place behind the header: the beginning, if the header is torn.
    pub(super) fn begin(&self, id: &str) -> Result<Position> {
        let line = self.next_line(&mut self.lines(0)?)?;
        let mut start = Position::default();
        if header::check(&line, id, self.path)? {
            start.pass(&line, 0);
        } else if !line.is_empty() {
            self.warn_torn(0);
        }
        Ok(start)
    }

    /// Reads the whole file, whosever it is, and returns the id in its header.
    pub(super) fn read_all(&self, visit: impl FnMut(Event)) -> Result<String> {
        let header = self.next_line(&mut self.lines(0)?)?;
        let id = header::id_in(&header, self.path)?;
        self.read(self.begin(&id)?, visit)?;
        Ok(id)
    }

    /// Whether the file still begins with what came before `place`. Reads a few bytes.
    pub(super) fn has(&self, place: &Position) -> Result<bool> {
        if place.offset == 0 || place.offset > self.len {
            return Ok(false);
        }
        let mut found = Vec::with_capacity(MARK);
        let mark = self.bytes(place.last, place.mark.len() as u64)?.read_to_end(&mut found);
        mark.map_err(|error| failed("read", self.path, error))?;
        Ok(found == place.mark)
    }

    /// Reads the events behind `from`, and returns where they end. A torn last line is left out.
    pub(super) fn read(&self, from: Position, mut visit: impl FnMut(Event)) -> Result<Position> {
        let mut end = from;
        if end.offset == 0 {
            return Ok(end); // the header is torn, and so nothing can follow it
        }
        let mut lines = self.lines(end.offset)?;
        loop {
            let line = self.next_line(&mut lines)?;
            if !line.ends_with(b"\n") {
                if !line.is_empty() {
                    self.warn_torn(end.offset);
                }
                return Ok(end);
            }
            let events = parse(&line).map_err(|error| self.unreadable(end.lines + 1, error))?;
            end.pass(&line, events.len());
            events.into_iter().for_each(&mut visit);
        }
    }

    /// Writes a line of so many events at `end`, where everything whole ends, and returns once it is on the disk. If
    /// that fails, the file is as before.
    pub(super) fn write(&self, id: &str, end: &Position, line: &[u8], events: usize) -> Result<Position> {
        let mut after = end.clone();
        let mut bytes = Vec::new();
        if end.offset == 0 {
            bytes = header::header(id);
            after.pass(&bytes, 0);
        }
        after.pass(line, events);
        bytes.extend_from_slice(line);
        self.write_at(end.offset, &bytes).map_err(|error| {
            // If this fails too, the torn line is dropped by whoever comes next.
            drop(self.file.set_len(end.offset).and_then(|()| self.file.sync_data()));
            failed("append to", self.path, error)
        })?;
        Ok(after)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.len > offset {
            self.file.set_len(offset)?;
        }
        if offset == 0 {
            sync_directory(self.path)?; // first, so that no header is ever found in a file that may still vanish
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    /// Removes the file.
    pub(super) fn delete(self) -> Result<()> {
        let removed = fs::remove_file(self.path).and_then(|()| sync_directory(self.path));
        removed.map_err(|error| failed("delete", self.path, error))
    }

    /// At most `count` bytes from `offset` on.
    fn bytes(&self, offset: u64, count: u64) -> Result<impl Read> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(|error| failed("read", self.path, error))?;
        Ok(file.take(count))
    }

    /// What is from `offset` on.
    fn lines(&self, offset: u64) -> Result<impl BufRead> {
        self.bytes(offset, self.len.saturating_sub(offset)).map(BufReader::new)
    }

    /// The next line with its line break; without one if it is torn, empty at the end.
    fn next_line(&self, lines: &mut impl BufRead) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).map_err(|error| failed("read", self.path, error))?;
        Ok(line)
    }

    fn warn_torn(&self, offset: u64) {
        let file = self.path.display();
        tracing::warn!(%file, offset, "dropped a torn last line: a write was interrupted at this byte offset or later");
    }

    fn unreadable(&self, line: u64, error: serde_json::Error) -> Error {
        let path = self.path.display();
        let context = format!(
            "read session file `{path}`: line {line} is not an event; restore the file from a backup, \
             or cut it off before that line to keep what came earlier"
        );
        Error::new(ErrorKind::Store, context).with_source(error)
    }
}

/// The events of one append as one line, with its line break.
pub(super) fn line(events: &[Event]) -> Result<Vec<u8>> {
    let line = match events {
        [event] => serde_json::to_vec(event),
        _ => serde_json::to_vec(events),
    };
    // Read back, because JSON may be written that nests deeper than its parser goes: nobody could load it again.
    let readable = line.and_then(|line| parse(&line).map(|_| line));
    let mut line = readable.map_err(|error| {
        Error::new(ErrorKind::Store, "append events that could not be read again as JSON").with_source(error)
    })?;
    line.push(b'\n');
    Ok(line)
}

fn parse(line: &[u8]) -> serde_json::Result<Vec<Event>> {
    match line.first() {
        Some(b'[') => serde_json::from_slice(line),
        Some(_) | None => serde_json::from_slice(line).map(|event| vec![event]),
    }
}

fn lock(file: &File, alone: bool) -> io::Result<()> {
    loop {
        let locked = if alone { file.lock() } else { file.lock_shared() };
        match locked {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            done => return done,
        }
    }
}

/// Whether an open file is still what is found under its path.
fn is_at(open: &fs::Metadata, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(found) => Ok(is_same(open, &found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Elsewhere the standard library does not tell files apart; a deleted file is gone from its path at least.
#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

/// Makes the file's entry in its directory as durable as the file.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// Elsewhere a directory cannot be opened; the file system keeps its entries safe by itself.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

fn no_file(path: &Path) -> Error {
    let path = path.display();
    let context = format!("open session file `{path}`: it is a pipe or a device; copy its content into a file");
    Error::new(ErrorKind::Store, context)
}

fn failed(action: &str, path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Store, format!("{action} session file `{}`", path.display())).with_source(error)
}
