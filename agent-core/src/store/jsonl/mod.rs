//! Sessions as files of JSON lines.

mod ends;
mod file;
mod header;
mod name;

use std::{
    fmt, fs, io, panic,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use self::{
    ends::Ends,
    file::{Access, LogFile, Position},
    name::Named,
};
use super::{SessionStore, Stored};
use crate::{Error, ErrorKind, Event, Result, Session};

/// Sessions in a directory, each a file of JSON lines: for one machine, where several processes may share them.
///
/// An append is on the disk when it returns, and it is there as a whole or not at all. Its cost depends on its own
/// size and on what other processes appended meanwhile, not on the history. Reading a session costs its whole file.
/// Clones are the same store; they and other handles on the directory exclude each other by advisory locks on the
/// files, so the directory must be on a file system that has them (most network file systems do).
///
/// # The format
///
/// The first line of a file is `{"format":"agent-session","version":1,"id":"…"}`. Each further line is one append: an
/// [`Event`], or a list of events that are committed together. The file is named after the id, with everything but
/// `a-z`, `0-9`, `_` and `-` percent-encoded, so any id will do; very long ones are cut and hashed. Other files in the
/// directory are ignored, unless they are named as if they held a session.
///
/// A last line without a line break is what a crash in the middle of an append leaves behind: it is dropped, with a
/// warning. Anything else that cannot be read is an error that names the file, the line and the remedy, and changes
/// nothing; a file of a newer format is [`ErrorKind::Unsupported`].
///
/// Its futures must be polled inside a tokio runtime, whose blocking threads do the work. An append that is dropped
/// while it waits may still happen.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let dir = temporary.path();
/// use agent_core::{JsonlStore, SessionStore};
///
/// let store = JsonlStore::open(dir.join("sessions"))?;
/// let stored = store.load("chat/42").await?;
/// assert_eq!((stored.version, stored.session.messages().len()), (0, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct JsonlStore {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    ends: Mutex<Ends>,
}

impl JsonlStore {
    /// The store in this directory, which is created if it is absent. A relative path is taken from the current
    /// directory as it is now. Blocks for a moment.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the directory cannot be created, or is none.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let opened = std::path::absolute(&dir).and_then(|dir| fs::create_dir_all(&dir).map(|()| dir));
        let dir = opened.map_err(|error| {
            Error::new(ErrorKind::Store, format!("open session directory `{}`", dir.display())).with_source(error)
        })?;
        Ok(Self { shared: Arc::new(Shared { dir, ends: Mutex::default() }) })
    }

    /// The id and the events of the session in this file, wherever it lies and whatever it is called: for programs
    /// that look at sessions. It changes nothing, and waits for an append that is under way. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be read or holds no session; [`ErrorKind::Unsupported`] if it is of a
    /// newer format.
    pub fn read_file(path: impl AsRef<Path>) -> Result<(String, Vec<Event>)> {
        let path = path.as_ref();
        let file = LogFile::open(path, Access::Read)?.ok_or_else(|| {
            Error::new(ErrorKind::Store, format!("read session file `{}`: there is no such file", path.display()))
        })?;
        let mut events = Vec::new();
        let id = file.read_all(|event| events.push(event))?;
        Ok((id, events))
    }

    /// Does file work where blocking is allowed.
    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&Shared) -> Result<T> + Send + 'static) -> Result<T> {
        let shared = self.shared.clone();
        match tokio::task::spawn_blocking(move || work(&shared)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => panic::resume_unwind(panic),
                Err(error) => {
                    let context = "use a session directory while the runtime shuts down";
                    Err(Error::new(ErrorKind::Store, context).with_source(error))
                }
            },
        }
    }
}

impl fmt::Debug for JsonlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonlStore").field("dir", &self.shared.dir).finish()
    }
}

impl Shared {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a whole session; the result is its version.
    fn read(&self, id: &str, visit: impl FnMut(Event)) -> Result<u64> {
        let name = name::file_name(id);
        let path = self.dir.join(&name);
        let Some(file) = LogFile::open(&path, Access::Read)? else { return Ok(0) };
        let end = file.read(file.begin(id)?, visit)?;
        let version = end.version;
        self.ends().keep(name, end);
        Ok(version)
    }

    /// Where the session ends. Reads what was appended since this was last known.
    fn end(&self, id: &str, name: &str, file: &LogFile<'_>) -> Result<Position> {
        let start = file.begin(id)?;
        let known = self.ends().get(name);
        match known {
            Some(end) if file.has(&end)? => file.read(end, drop),
            Some(_) | None => file.read(start, drop),
        }
    }

    fn append(&self, id: &str, expected: u64, line: &[u8], events: usize) -> Result<u64> {
        let name = name::file_name(id);
        let path = self.dir.join(&name);
        let access = match (expected, events) {
            (_, 0) => Access::Read,
            (0, _) => Access::Create,
            (_, _) => Access::Write,
        };
        let file = LogFile::open(&path, access)?;
        let mut end = file.as_ref().map(|file| self.end(id, &name, file)).transpose()?.unwrap_or_default();
        if end.version != expected {
            return Err(Error::conflict(id, expected, end.version));
        }
        if let Some(file) = file
            && events > 0
        {
            end = file.write(id, &end, line, events)?;
        }
        let version = end.version;
        self.ends().keep(name, end);
        Ok(version)
    }

    fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, named) in self.names()? {
            let path = self.dir.join(name);
            let id = match named {
                Named::Id(id) => Some(id),
                Named::Hashed => id_in(&path)?,
            };
            if let Some(id) = id
                && id.starts_with(prefix)
                && after.is_none_or(|after| id.as_str() > after)
            {
                found.push((id, path));
            }
        }
        found.sort_unstable();
        let mut ids = Vec::new();
        for (id, path) in found {
            if ids.len() == limit {
                break;
            }
            match id_in(&path)? {
                Some(found) if found == id && path.ends_with(name::file_name(&id)) => ids.push(id),
                Some(found) => return Err(header::misplaced(&found, &path)),
                None => (),
            }
        }
        Ok(ids)
    }

    /// The names of all files that hold sessions, and what they say.
    fn names(&self) -> Result<Vec<(String, Named)>> {
        let read = || -> io::Result<Vec<_>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.dir)? {
                let name = entry?.file_name().into_string().ok();
                names.extend(name.and_then(|name| name::parse(&name).map(|named| (name, named))));
            }
            Ok(names)
        };
        read().map_err(|error| {
            let context = format!("list session directory `{}`", self.dir.display());
            Error::new(ErrorKind::Store, context).with_source(error)
        })
    }

    fn delete(&self, id: &str) -> Result<()> {
        let path = self.dir.join(name::file_name(id));
        let Some(file) = LogFile::open(&path, Access::Write)? else { return Ok(()) };
        file.begin(id)?; // never another's file, nor one that is not understood
        file.delete()
    }
}

/// The id of the session in this file; none if nothing is stored in it.
fn id_in(path: &Path) -> Result<Option<String>> {
    LogFile::open(path, Access::Read)?.map_or(Ok(None), |file| file.id())
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn load(&self, id: &str) -> Result<Stored> {
        let id = id.to_owned();
        self.blocking(move |shared| {
            let mut session = Session::new();
            let version = shared.read(&id, |event| session.apply(&event))?;
            Ok(Stored { session, version })
        })
        .await
    }

    async fn append(&self, id: &str, expected: u64, events: &[Event]) -> Result<u64> {
        let (id, count) = (id.to_owned(), events.len());
        let line = file::line(events)?;
        self.blocking(move |shared| shared.append(&id, expected, &line, count)).await
    }

    async fn events(&self, id: &str, from: u64) -> Result<Vec<Event>> {
        let id = id.to_owned();
        self.blocking(move |shared| {
            let (mut events, mut skip) = (Vec::new(), from);
            shared.read(&id, |event| match skip.checked_sub(1) {
                Some(rest) => skip = rest,
                None => events.push(event),
            })?;
            Ok(events)
        })
        .await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.list_page("", None, usize::MAX).await
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.blocking(move |shared| shared.delete(&id)).await
    }

    /// As the trait says. Opens the listed sessions and those with very long ids; of the others it reads the names.
    async fn list_page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.blocking(move |shared| shared.list_page(&prefix, after.as_deref(), limit)).await
    }
}
