//! A cassette: recorded calls by their keys.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{ChatClient, Error, ErrorKind, Result};
use serde_json::Value;

use super::{RecordedClient, entry::Entry, normal};

/// Why there is no recorded answer to a call: the source of the error that a replay gives then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotRecorded(String);

/// What a cassette does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CassetteMode {
    /// Answers from the cassette; a call that is not in it is an error.
    Replay,
    /// Asks the service, and writes the cassette anew.
    Record,
    /// Answers from the cassette where it can; else asks the service, and adds the answer.
    RecordMissing,
}

/// A cassette: calls to models, recorded once and replayed for ever. A clone is the same cassette.
///
/// It is JSON Lines: a call a line, with its key, the request, the pieces for display and the answer. The key is the
/// case, the repeat, the model, the whole request in a normal form, and an ordinal that counts equal requests within a
/// trial; so calls of one trial may run in parallel. Keys of services are blotted out, errors are not recorded.
///
/// ```
/// use agent_core::{ChatClient, ChatRequest, ChatUpdate};
/// use agent_providers::Recorded;
/// use futures::StreamExt;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let cassette = Recorded::replay(r#"
/// {"case":"greeting","repeat":0,"ordinal":0,"model":"m","request":{"messages":[{"role":"user","contents":[{"text":"hi"}]}]},"deltas":["Hel","lo"],"response":{"message":{"role":"assistant","contents":[{"text":"Hello"}]},"usage":{},"stop":"completed","model":"m"}}
/// "#)?; // or include_str!("greeting.jsonl")
/// let client = cassette.replay_trial("greeting", 0);
/// let request = ChatRequest { messages: [agent_core::ChatMessage::user("hi")].into(), ..ChatRequest::default() };
/// let updates = client.stream(request).collect::<Vec<_>>().await;
/// assert!(matches!(updates.last(), Some(Ok(ChatUpdate::Done(answer))) if answer.message.text() == "Hello"));
/// # Ok::<_, agent_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Recorded(Arc<Cassette>);

pub(super) struct Cassette {
    name: String,
    mode: CassetteMode,
    entries: Mutex<Entries>,
    file: Option<Mutex<File>>,
}

/// The calls of one repeat of one case, in the cassette's order.
type Entries = HashMap<(String, u32), Vec<Arc<Entry>>>;

impl Recorded {
    /// The cassette in a file. [`Record`](CassetteMode::Record) empties the file; both recording modes make it, and the
    /// directory that it is in.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be used, [`ErrorKind::Invalid`] if a line of it is no recorded call.
    pub fn open(path: impl Into<PathBuf>, mode: CassetteMode) -> Result<Self> {
        let path = path.into();
        let name = path.display().to_string();
        let failed =
            |what: &str, error| Error::new(ErrorKind::Store, format!("{what} the cassette {name}")).with_source(error);
        let text = match mode {
            CassetteMode::Record => String::new(),
            CassetteMode::RecordMissing if !path.exists() => String::new(),
            CassetteMode::Replay | CassetteMode::RecordMissing => {
                fs::read_to_string(&path).map_err(|error| failed("read", error))?
            }
        };
        let file = match mode {
            CassetteMode::Replay => None,
            CassetteMode::Record | CassetteMode::RecordMissing => {
                Some(open_to_write(&path, mode).map_err(|error| failed("write", error))?)
            }
        };
        let entries = read(&name, &text)?;
        let file = file.map(Mutex::new);
        Ok(Self(Arc::new(Cassette { name, mode, entries: Mutex::new(entries), file })))
    }

    /// The cassette in a text, such as one by `include_str!`, to be replayed.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if a line is no recorded call.
    pub fn replay(text: &str) -> Result<Self> {
        let name = "in the program".to_owned();
        let entries = Mutex::new(read(&name, text)?);
        Ok(Self(Arc::new(Cassette { name, mode: CassetteMode::Replay, entries, file: None })))
    }

    /// The models whose answers are in it.
    pub fn models(&self) -> BTreeSet<String> {
        let entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().flatten().map(|entry| entry.model.clone()).collect()
    }

    /// The client of one trial: the calls of one repeat (from 0) of one case. `client` is asked in the recording modes;
    /// its model is part of the key in all.
    pub fn trial(&self, case: impl Into<String>, repeat: u32, client: impl ChatClient + 'static) -> RecordedClient {
        RecordedClient::new(self.0.clone(), case.into(), repeat, Some(Arc::new(client)))
    }

    /// The client of one trial that has no service to ask: what is not in the cassette is an error in every mode.
    /// The model is whichever was recorded.
    pub fn replay_trial(&self, case: impl Into<String>, repeat: u32) -> RecordedClient {
        RecordedClient::new(self.0.clone(), case.into(), repeat, None)
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("cassette", &self.0.name).field("mode", &self.0.mode).finish_non_exhaustive()
    }
}

impl Cassette {
    pub(super) fn mode(&self) -> CassetteMode {
        self.mode
    }

    /// The model of the first call of a trial.
    pub(super) fn first_model(&self, case: &str, repeat: u32) -> Option<String> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Some(entries.get(&(case.to_owned(), repeat))?.first()?.model.clone())
    }

    /// The recorded call of this key; without a model, by whichever.
    pub(super) fn find(
        &self,
        (case, repeat): (&str, u32),
        model: Option<&str>,
        request: &Value,
        ordinal: u32,
    ) -> Option<Arc<Entry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = entries.get(&(case.to_owned(), repeat))?.iter();
        let is_it = |entry: &&Arc<Entry>| {
            entry.ordinal == ordinal && model.is_none_or(|model| entry.model == model) && entry.request == *request
        };
        entries.find(is_it).cloned()
    }

    /// Adds a recorded call to the file.
    pub(super) fn add(&self, entry: Entry) -> Result<()> {
        let failed = || Error::new(ErrorKind::Store, format!("write the cassette {}", self.name));
        let line = entry.line().map_err(|error| failed().with_source(error))?;
        if let Some(file) = &self.file {
            // One write a line, so that parallel trials do not mix.
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(line.as_bytes()).map_err(|error| failed().with_source(error))?;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.entry((entry.case.clone(), entry.repeat)).or_default().push(Arc::new(entry));
        Ok(())
    }

    /// Why there is no answer to a request: the error shows what differs from the most similar one.
    pub(super) fn missing(&self, case: &str, repeat: u32, model: Option<&str>, request: &Value, ordinal: u32) -> Error {
        let asked = match model {
            Some(model) => format!("call {} of this request to `{model}`", ordinal + 1),
            None => format!("call {} of this request", ordinal + 1),
        };
        let why = self.nearest(case, repeat, request).map_or_else(
            || "the cassette is empty".to_owned(),
            |entry| {
                let Entry { case, repeat, ordinal, model, request: recorded, .. } = &*entry;
                let key = format!("case `{case}`, repeat {repeat}, model `{model}`, call {}", ordinal + 1);
                if recorded == request {
                    format!("there is an equal one for {key}")
                } else {
                    format!("the nearest, for {key}, differs:\n{}", normal::diff(recorded, request))
                }
            },
        );
        let context = format!("replay case `{case}`, repeat {repeat} from the cassette {}", self.name);
        let why = format!("{asked} is not in it; {why}\nrecord the cassette again if that is meant");
        Error::new(ErrorKind::Invalid, context).with_source(NotRecorded(why))
    }

    /// The recorded call whose request is the most similar, in the same trial if there is one.
    fn nearest(&self, case: &str, repeat: u32, request: &Value) -> Option<Arc<Entry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let trial = entries.get(&(case.to_owned(), repeat));
        let all = || entries.values().flatten().collect::<Vec<_>>();
        let candidates = trial.map_or_else(all, |trial| trial.iter().collect());
        let likeness = |entry: &Entry| normal::likeness(&entry.request, request);
        let likest = |a: &&Arc<Entry>, b: &&Arc<Entry>| likeness(a).total_cmp(&likeness(b));
        candidates.into_iter().max_by(likest).cloned()
    }
}

fn open_to_write(path: &Path, mode: CassetteMode) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let anew = mode == CassetteMode::Record;
    OpenOptions::new().create(true).write(true).append(!anew).truncate(anew).open(path)
}

fn read(name: &str, text: &str) -> Result<Entries> {
    let mut entries = Entries::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let entry = serde_json::from_str::<Entry>(line).map_err(|error| {
            let context = format!("read line {} of the cassette {name}", at + 1);
            Error::new(ErrorKind::Invalid, context).with_source(error)
        })?;
        entries.entry((entry.case.clone(), entry.repeat)).or_default().push(Arc::new(entry));
    }
    Ok(entries)
}
