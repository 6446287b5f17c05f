//! Sets from files, and to files.

mod csv;
mod reading;
pub(crate) mod tree;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use agent_core::{Error, ErrorKind, Result};

#[cfg(feature = "cli")]
pub(crate) use self::reading::unknown_name;
use self::{
    reading::{check_case, check_header, read},
    tree::{Node, Spot, Tree, error_at},
};
use crate::{EvalCase, EvalSet, file::write_whole, text::listed};

/// A case, and the file that it is in.
struct Found {
    file: String,
    tree: Tree,
}

/// The places of a set: what holds for all, and the cases.
struct Parts {
    file: String,
    header: Tree,
    cases: Vec<Found>,
}

/// In what form a set is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetFormat {
    /// One YAML document.
    Yaml,
    /// One JSON document.
    Json,
    /// JSON lines: the set without its cases, then one case a line.
    Jsonl,
    /// A table: one case a record, under the fields' names. Columns are `id`, `input`, `expected` (may be there several
    /// times: alternatives), `tags` (apart by spaces or commas), `split`, `group`, `repeats`, `contains`, `regex`,
    /// `state.KEY` and `metadata.KEY` (values are JSON, or else text). The set is named after the file.
    Csv,
}

impl SetFormat {
    /// The format of a file by its name's ending, if there is one.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

impl EvalSet {
    /// Loads a set: a file of one of the [formats](SetFormat), or a folder. A folder has `set.yaml` (or `.yml`,
    /// `.json`) with what holds for all, and maybe cases; beside it each other YAML or JSON file is one case, and each
    /// line of a `.jsonl` and each record of a `.csv` file too. Files are read in the order of their names.
    ///
    /// The set is checked: ids are unique, dates are dates, every check can be built (apart from the model that judges
    /// and custom checks, which only a run has), and every case has one.
    ///
    /// # Errors
    /// The first thing that is wrong, as `file:line:column: what is wrong; what to do`. In a CSV file the column is
    /// the field's number.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let parts = if path.is_dir() { folder(path)? } else { file(path)? };
        assemble(&parts)
    }

    /// Reads a set from a text, as [`load`](Self::load) does; `file` is what errors call it.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, format: SetFormat, file: &str) -> Result<Self> {
        assemble(&parts(text, format, file)?)
    }

    /// Writes the set as a text that [`parse`](Self::parse) reads back.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for [`SetFormat::Csv`], which cannot hold all that a set can.
    pub fn write(&self, format: SetFormat) -> Result<String> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(ErrorKind::Invalid, format!("write the set `{}`", self.name)).with_source(error)
        };
        match format {
            SetFormat::Yaml => serde_saphyr::to_string(self).map_err(|error| failed(error.into())),
            SetFormat::Json => {
                serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(|error| failed(error.into()))
            }
            SetFormat::Jsonl => {
                let mut header = serde_json::to_value(Self { cases: Vec::new(), ..self.clone() })
                    .map_err(|error| failed(error.into()))?;
                if let Some(header) = header.as_object_mut() {
                    header.remove("cases");
                }
                let mut text = header.to_string() + "\n";
                for case in &self.cases {
                    text += &serde_json::to_string(case).map_err(|error| failed(error.into()))?;
                    text.push('\n');
                }
                Ok(text)
            }
            SetFormat::Csv => {
                Err(Error::new(ErrorKind::Unsupported, format!("write the set `{}` as CSV; use JSONL", self.name)))
            }
        }
    }

    /// Writes the set to a file, in the format of its name's ending.
    ///
    /// # Errors
    /// A name without a known ending, and what the file system says; what was there before stays then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = self.write(format_of(path)?)?;
        write_whole(path, &text).map_err(|source| {
            Error::new(ErrorKind::Store, format!("write the set `{}` to {}", self.name, path.display()))
                .with_source(source)
        })
    }
}

fn format_of(path: &Path) -> Result<SetFormat> {
    SetFormat::of(path).ok_or_else(|| {
        let endings = listed([".yaml", ".yml", ".json", ".jsonl", ".csv"]);
        Error::new(
            ErrorKind::Invalid,
            format!("tell the format of {}; its name must end with one of {endings}", path.display()),
        )
    })
}

pub(crate) fn read_text(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path);
    // Some editors put a byte order mark at the beginning.
    text.map(|text| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
        .map_err(|source| Error::new(ErrorKind::Invalid, format!("read {}: {source}", path.display())))
}

fn file(path: &Path) -> Result<Parts> {
    parts(&read_text(path)?, format_of(path)?, &path.display().to_string())
}

fn parts(text: &str, format: SetFormat, file: &str) -> Result<Parts> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let found = |tree: Tree| Found { file: file.to_owned(), tree };
    let start = Spot { line: 1, column: 1 };
    match format {
        SetFormat::Yaml | SetFormat::Json => {
            let mut header =
                if format == SetFormat::Yaml { Tree::yaml(file, text)? } else { Tree::json(file, text, start)? };
            let cases = take_cases(&mut header, file)?;
            let cases = cases.ok_or_else(|| error_at(file, header.spot, "the set has no `cases`; list at least one"));
            Ok(Parts { file: file.to_owned(), cases: cases?.into_iter().map(found).collect(), header })
        }
        SetFormat::Jsonl => {
            let mut lines = lines(file, text);
            let header = lines.next().unwrap_or_else(|| Err(error_at(file, start, "the file is empty")))?;
            if header.get("schema").is_none() && header.get("id").is_some() {
                let what = "the first line must be the set itself; write `{\"schema\": \"agent-eval/1\", \"name\": …}` above it";
                return Err(error_at(file, header.spot, what));
            }
            let cases = lines.map(|line| line.map(found)).collect::<Result<_>>()?;
            Ok(Parts { file: file.to_owned(), header, cases })
        }
        SetFormat::Csv => {
            let cases = csv::cases(file, text)?.into_iter().map(found).collect();
            Ok(Parts { file: file.to_owned(), header: csv::header(file), cases })
        }
    }
}

/// One JSON document a line; blank lines are passed over.
fn lines<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Result<Tree>> + 'a {
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    numbered.map(move |(number, line)| Tree::json(file, line, Spot { line: number, column: 1 }))
}

/// Takes the list of cases out of a set; none if it has none.
fn take_cases(header: &mut Tree, file: &str) -> Result<Option<Vec<Tree>>> {
    let Node::Map(entries) = &mut header.node else {
        return Err(error_at(file, header.spot, "a set is a mapping with `schema`, `name` and `cases`"));
    };
    let Some(at) = entries.iter().position(|(_, key, _)| key == "cases") else { return Ok(None) };
    let (_, _, cases) = entries.remove(at);
    match cases.node {
        Node::List(cases) => Ok(Some(cases)),
        Node::Leaf(_) | Node::Map(_) => Err(error_at(file, cases.spot, "`cases` must be a list")),
    }
}

fn folder(path: &Path) -> Result<Parts> {
    let failed = |source: std::io::Error| {
        Error::new(ErrorKind::Invalid, format!("list the folder {}: {source}", path.display()))
    };
    let entries = fs::read_dir(path).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)?;
    files.retain(|file| file.is_file() && SetFormat::of(file).is_some());
    files.sort();
    let is_header = |file: &&PathBuf| {
        file.file_stem().is_some_and(|stem| stem == "set")
            && matches!(SetFormat::of(file), Some(SetFormat::Yaml | SetFormat::Json))
    };
    let Some(header_file) = files.iter().find(is_header).cloned() else {
        let what = format!("load the folder {}: it has no `set.yaml` or `set.json`", path.display());
        return Err(Error::new(ErrorKind::Invalid, what));
    };
    let mut header = document(&header_file)?;
    let name = header_file.display().to_string();
    let own = take_cases(&mut header, &name)?.unwrap_or_default();
    let mut cases: Vec<Found> = own.into_iter().map(|tree| Found { file: name.clone(), tree }).collect();
    for file in files.iter().filter(|file| **file != header_file) {
        let name = file.display().to_string();
        let trees = match format_of(file)? {
            SetFormat::Yaml | SetFormat::Json => vec![document(file)?],
            SetFormat::Jsonl => lines(&name, &read_text(file)?).collect::<Result<_>>()?,
            SetFormat::Csv => csv::cases(&name, &read_text(file)?)?,
        };
        cases.extend(trees.into_iter().map(|tree| Found { file: name.clone(), tree }));
    }
    Ok(Parts { file: name, header, cases })
}

fn document(path: &Path) -> Result<Tree> {
    let (text, name) = (read_text(path)?, path.display().to_string());
    match format_of(path)? {
        SetFormat::Yaml => Tree::yaml(&name, &text),
        SetFormat::Json | SetFormat::Jsonl | SetFormat::Csv => Tree::json(&name, &text, Spot { line: 1, column: 1 }),
    }
}

fn assemble(parts: &Parts) -> Result<EvalSet> {
    check_header(&parts.file, &parts.header)?;
    let mut header = parts.header.clone();
    if let Node::Map(entries) = &mut header.node {
        let none = Tree { spot: header.spot, node: Node::List(Vec::new()) };
        entries.push((header.spot, "cases".to_owned(), none));
    }
    let mut set: EvalSet = read(&parts.file, &header)?;
    if parts.cases.is_empty() {
        return Err(error_at(&parts.file, parts.header.spot, "the set has no cases; an empty set would always pass"));
    }
    let mut known: HashMap<String, String> = HashMap::new();
    for Found { file, tree } in &parts.cases {
        let case: EvalCase = read(file, tree)?;
        let spot = tree.get("id").map_or(tree.spot, |id| id.spot);
        if let Some(first) = known.insert(case.id.clone(), format!("{file}:{}:{}", spot.line, spot.column)) {
            let what = format!("the id `{}` is taken by the case at {first}; give each case its own", case.id);
            return Err(error_at(file, spot, what));
        }
        check_case(file, tree, &case, &set)?;
        set.cases.push(case);
    }
    Ok(set)
}
