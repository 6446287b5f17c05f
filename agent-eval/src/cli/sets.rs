//! The sets of a project, and which of their cases are meant.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{
    codes::{Fault, NOTHING_SELECTED, Outcome},
    place::Place,
};
use crate::{
    EvalCase, EvalSet, Filter, ModelSource, Project, Selection, SetFormat, Subject,
    text::{listed, nearest},
};

/// A set, and where it is.
#[derive(Debug, Clone)]
pub(super) struct SetFile {
    pub(super) set: EvalSet,
    /// Its file, or its folder.
    pub(super) path: PathBuf,
}

impl SetFile {
    /// The folder of its file.
    pub(super) fn dir(&self) -> PathBuf {
        if self.path.is_dir() { self.path.clone() } else { self.path.parent().unwrap_or(Path::new("")).to_owned() }
    }

    /// The name of its subject.
    fn subject_name(&self) -> &str {
        self.set.subject.as_deref().unwrap_or(&self.set.name)
    }

    /// Its subject.
    pub(super) fn subject(&self, project: &dyn Project, source: &ModelSource) -> Outcome<Box<dyn Subject>> {
        let source = ModelSource { dir: self.dir(), ..source.clone() };
        let (name, set) = (self.subject_name(), &self.set.name);
        let made = project.subject(name, &self.set, &source);
        let made = made.map_err(|error| Fault::setup(format!("make the subject of set `{set}`: {error:#}")))?;
        made.ok_or_else(|| {
            let known = project.subjects();
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known are {}", listed(known)),
            };
            Fault::setup(format!("{}: the set's subject `{name}` is unknown; {hint}", self.path.display()))
        })
    }
}

/// All sets of the project: folders in `evals` that have a set, and files in it.
pub(super) fn load_all(place: &Place) -> Outcome<Vec<SetFile>> {
    let mut sets = Vec::new();
    for path in paths(place)? {
        sets.push(SetFile { set: EvalSet::load(&path)?, path });
    }
    check_names(&sets)?;
    Ok(sets)
}

/// Where the sets are, in the order of their names.
pub(super) fn paths(place: &Place) -> Outcome<Vec<PathBuf>> {
    let dir = place.sets();
    let entries = fs::read_dir(&dir).map_err(|error| Fault::setup(format!("list {}: {error}", dir.display())))?;
    let is_set = |path: &PathBuf| {
        let has_header = || ["set.yaml", "set.yml", "set.json"].iter().any(|name| path.join(name).is_file());
        if path.is_dir() { has_header() } else { SetFormat::of(path).is_some() }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_set).collect();
    paths.sort();
    if paths.is_empty() {
        let what = "it has no set; write `NAME/set.yaml` or `NAME.yaml` into it, or `import` one";
        return Err(Fault::setup(format!("load the sets of {}: {what}", dir.display())));
    }
    Ok(paths)
}

fn check_names(sets: &[SetFile]) -> Outcome<()> {
    let mut known = BTreeMap::new();
    for SetFile { set, path } in sets {
        if let Some(first) = known.insert(&set.name, path) {
            let (path, first) = (path.display(), first.display());
            return Err(Fault::setup(format!("{path}: the name `{}` is that of {first}, too; rename one", set.name)));
        }
    }
    Ok(())
}

/// Which cases.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Which {
    /// Only cases whose `set::case` contains one of these.
    #[arg(value_name = "CASES")]
    pub(super) substrings: Vec<String>,
    /// Only cases that this expression selects, such as `tag(sql) & !case(/slow/)`; if given several times, all of
    /// them.
    #[arg(short = 'E', long = "filter", value_name = "FILTER", help_heading = "Selection")]
    pub(super) filters: Vec<String>,
    /// Only one of n parts of the cases, `hash:m/n`; a case is always in the same one.
    #[arg(long, value_name = "PART", help_heading = "Selection")]
    pub(super) partition: Option<String>,
}

impl Which {
    /// Whether it says anything.
    pub(super) fn is_all(&self) -> bool {
        self.substrings.is_empty() && self.filters.is_empty() && self.partition.is_none()
    }

    /// As what selects, for these sets.
    pub(super) fn selection(&self, sets: &[SetFile]) -> Outcome<Selection> {
        for part in &self.substrings {
            check_substring(part, sets)?;
        }
        Ok(Selection {
            filters: self.filters.iter().map(|filter| read_filter(filter, sets)).collect::<Outcome<_>>()?,
            substrings: self.substrings.clone(),
            partition: self.partition.as_ref().map(|partition| partition.parse()).transpose()?,
        })
    }
}

/// A filter that selects no case is a mistake, even beside others.
fn read_filter(text: &str, sets: &[SetFile]) -> Outcome<Filter> {
    let filter: Filter = text.parse()?;
    if sets.iter().any(|file| file.set.cases.iter().any(|case| filter.matches(&file.set, case))) {
        return Ok(filter);
    }
    let what = format!("select `{text}`: no case is so; `list` shows their names and tags");
    Err(Fault::new(NOTHING_SELECTED, what))
}

/// A name that no case has is a mistake, even beside others.
fn check_substring(part: &str, sets: &[SetFile]) -> Outcome<()> {
    let cases = || sets.iter().flat_map(|file| file.set.cases.iter().map(move |case| (&file.set, case)));
    if cases().any(|(set, case)| format!("{}::{}", set.name, case.id).contains(part)) {
        return Ok(());
    }
    let whole: Vec<String> = cases().map(|(set, case)| format!("{}::{}", set.name, case.id)).collect();
    let ids = cases().map(|(_, case)| case.id.as_str());
    let known = sets.iter().map(|file| file.set.name.as_str()).chain(ids).chain(whole.iter().map(String::as_str));
    let hint = match nearest(part, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the sets are {}; `list` shows their cases", listed(sets.iter().map(|file| &file.set.name))),
    };
    Err(Fault::new(NOTHING_SELECTED, format!("select `{part}`: no case has it in its name; {hint}")))
}

/// The sets that have selected cases, each with how many.
pub(super) fn selected<'a>(
    sets: &'a [SetFile],
    selection: &Selection,
) -> Outcome<Vec<(&'a SetFile, Vec<&'a EvalCase>)>> {
    let of = |file: &'a SetFile| {
        let cases = file.set.cases.iter().filter(|case| selection.matches(&file.set, case)).collect::<Vec<_>>();
        (file, cases)
    };
    let found: Vec<_> = sets.iter().map(of).filter(|(_, cases)| !cases.is_empty()).collect();
    if found.is_empty() {
        let cases: usize = sets.iter().map(|file| file.set.cases.len()).sum();
        let what = format!("select cases to run: none of {cases} is left; `list` shows them");
        return Err(Fault::new(NOTHING_SELECTED, what));
    }
    Ok(found)
}
