//! `lint`: everything that is wrong before anything runs.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::Args;

use super::{
    codes::{BAD_SETUP, Fault, Outcome},
    place::Place,
    profile::{self, Profile},
    sets::{SetFile, paths},
    stdout::print_text,
    verdict::gate_of,
};
use crate::{
    Baseline, BuildContext, CassetteMode, EvalSet, Label, ModelSource, Project, case_checks, report::words::of_these,
    run::date,
};

/// Check all sets, profiles, baselines and labels, and run nothing.
#[derive(Debug, Clone, Args)]
pub(super) struct Lint {
    /// Fail for warnings, too.
    #[arg(long)]
    deny_warnings: bool,
}

/// What was found.
#[derive(Default)]
struct Findings {
    errors: u64,
    warnings: u64,
    lines: Vec<String>,
}

impl Findings {
    fn error(&mut self, text: &dyn std::fmt::Display) {
        let red = anstyle::AnsiColor::Red.on_default().bold();
        self.lines.push(format!("{red}error{red:#}: {text}\n"));
        self.errors += 1;
    }

    fn warning(&mut self, text: &str) {
        let yellow = anstyle::AnsiColor::Yellow.on_default().bold();
        self.lines.push(format!("{yellow}warning{yellow:#}: {text}\n"));
        self.warnings += 1;
    }

    /// What is there, if it is no error.
    fn ok<T, E: Into<Fault>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.error(&error.into())).ok()
    }
}

impl Lint {
    pub(super) fn run(&self, project: &dyn Project) -> Outcome<u8> {
        let place = Place::find()?;
        let mut found = Findings::default();
        let mut sets: Vec<SetFile> = Vec::new();
        let mut unread: Vec<String> = Vec::new();
        for path in paths(&place)? {
            let Some(set) = found.ok(EvalSet::load(&path)) else {
                unread.push(stem(&path));
                continue;
            };
            let file = SetFile { set, path };
            if let Some(first) = sets.iter().find(|first| first.set.name == file.set.name) {
                let (path, first) = (file.path.display(), first.path.display());
                found.error(&format!("{path}: the name `{}` is that of {first}, too; rename one", file.set.name));
            }
            set_findings(&file, project, &mut found);
            sets.push(file);
        }
        // A set that cannot be read is there, most likely with its file's name.
        let known: Vec<&str> = sets.iter().map(|file| &file.set.name).chain(&unread).map(String::as_str).collect();
        profile_findings(&place, &known, &mut found);
        baseline_findings(&place.baselines(), &sets, &mut found);
        label_findings(&place.sets().join("labels"), &sets, &mut found);
        let cases: usize = sets.iter().map(|file| file.set.cases.len()).sum();
        let Findings { errors, warnings, lines } = found;
        let (cases, sets) = (of_these(cases as u64, "case"), of_these(sets.len() as u64, "set"));
        let (shown, warned) = (of_these(errors, "error"), of_these(warnings, "warning"));
        print_text(&format!("{}{sets}, {cases}: {shown}, {warned}\n", lines.concat()))?;
        Ok(if errors > 0 || (self.deny_warnings && warnings > 0) { BAD_SETUP } else { 0 })
    }
}

/// The set's subject can be made, and has the set's custom checks; no quarantine has ended.
fn set_findings(file: &SetFile, project: &dyn Project, found: &mut Findings) {
    let source = ModelSource { cassettes: CassetteMode::Replay, ..ModelSource::default() };
    if let Some(subject) = found.ok(file.subject(project, &source)) {
        let context =
            BuildContext { subject: Some(subject.as_ref()), lint: true, dir: Some(file.dir()), ..Default::default() };
        for case in &file.set.cases {
            if let Err(error) = case_checks(case, &file.set, &context) {
                found.error(&format!("{}: {error:#}", file.path.display()));
            }
        }
    }
    let today = date(SystemTime::now());
    for case in &file.set.cases {
        if let Some(quarantine) = case.quarantine.as_ref().filter(|quarantine| quarantine.until < today) {
            let path = file.path.display();
            found.warning(&format!("{path}: the quarantine of case `{}` ended on {}", case.id, quarantine.until));
        }
    }
}

/// What runs and verdicts are asked for can be read, profile by profile, and gates are of sets that are there. The folder
/// of baselines that is read by default has findings of its own.
fn profile_findings(place: &Place, known: &[&str], found: &mut Findings) {
    let file = place.root.join(profile::FILE);
    for (name, Profile { settings, verdicts }) in found.ok(Profile::all(&place.root)).unwrap_or_default() {
        let labels = verdicts.labels.as_ref().map_or(Ok(()), |path| Label::read(path).map(drop));
        let baselines = verdicts.baseline.as_ref().map_or(Ok(()), |_| verdicts.baselines(place, known).map(drop));
        let settings = [
            settings.repeats().map(drop),
            settings.jobs().map(drop),
            settings.timeout().map(drop),
            verdicts.rules().map(drop),
            labels.map_err(Fault::from),
            baselines,
        ];
        let gates = verdicts.gates.iter().map(|gate| gate_of(gate, known).map(drop));
        for fault in settings.into_iter().chain(gates).filter_map(Result::err) {
            found.error(&format!("{}: profile `{name}`: {fault}", file.display()));
        }
    }
}

/// Each file of labels can be read, and is of a set that is there, and so are the cases.
fn label_findings(dir: &Path, sets: &[SetFile], found: &mut Findings) {
    for path in files(dir, "jsonl") {
        let Some(labels) = found.ok(Label::read(&path)) else { continue };
        let (shown, name) = (path.display(), stem(&path));
        if sets.iter().all(|file| file.set.name != name) {
            found.warning(&format!("{shown}: there is no set `{name}`, so nothing reads it"));
        }
        let is_there = |label: &&Label| {
            let mut of_set = sets.iter().filter(|file| file.set.name == label.set);
            of_set.any(|file| file.set.cases.iter().any(|case| case.id == label.case))
        };
        let gone = labels.iter().filter(|label| !is_there(label));
        let gone: BTreeSet<String> = gone.map(|label| format!("{}::{}", label.set, label.case)).collect();
        if !gone.is_empty() {
            let gone: Vec<String> = gone.into_iter().collect();
            found.warning(&format!("{shown}: there are no cases {}; take their labels out", gone.join(", ")));
        }
    }
}

/// The files of a folder that end so, in the order of their names.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|has| has == end)).collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Each baseline can be read, and is of a set that is there; its cases are, too.
fn baseline_findings(dir: &Path, sets: &[SetFile], found: &mut Findings) {
    for path in files(dir, "json") {
        let Some(baseline) = found.ok(Baseline::read(&path)) else { continue };
        let shown = path.display();
        let Some(file) = sets.iter().find(|file| file.set.name == baseline.set) else {
            found.warning(&format!("{shown}: there is no set `{}`", baseline.set));
            continue;
        };
        let gone = baseline.cases.keys().filter(|id| file.set.cases.iter().all(|case| case.id != **id));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if !gone.is_empty() {
            found.warning(&format!("{shown}: the set has no more the cases {}; bless anew", gone.join(", ")));
        }
    }
}
