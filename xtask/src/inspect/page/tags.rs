//! What events are filtered by.

use std::collections::BTreeSet;

use agent_core::LoopStep;
use serde_json::json;

use crate::inspect::{part::Kind, timeline::Step};

/// Who speaks, what kinds of parts there are, and in which iterations it is.
#[derive(Default)]
pub(super) struct Tags {
    pub(super) authors: Vec<String>,
    pub(super) kinds: Vec<String>,
    pub(super) paths: Vec<String>,
}

impl Tags {
    /// An event's: an event that ends an iteration belongs to it, too.
    pub(super) fn of(step: &Step) -> Self {
        let authors: BTreeSet<&str> =
            step.parts.iter().map(|part| part.who.as_str()).chain([&*step.event.author]).collect();
        let kinds: BTreeSet<Kind> = step.parts.iter().map(|part| part.kind).collect();
        let path = &step.event.path;
        let mut paths: Vec<String> = (1..=path.len()).map(|depth| path_name(&path[..depth])).collect();
        if let Some(ended) = &step.ends {
            let path: Vec<LoopStep> = path.iter().chain([ended]).cloned().collect();
            paths.push(path_name(&path));
        }
        Self {
            authors: authors.into_iter().map(str::to_owned).collect(),
            kinds: kinds.into_iter().map(|kind| kind.name().to_owned()).collect(),
            paths,
        }
    }

    /// Those of all events: authors and iterations in order of appearance, kinds in theirs.
    pub(super) fn of_all(steps: &[Step]) -> Self {
        let mut all = Self::default();
        let mut seen = BTreeSet::new();
        let kinds: BTreeSet<Kind> = steps.iter().flat_map(|step| &step.parts).map(|part| part.kind).collect();
        for step in steps {
            let Self { authors, paths, .. } = Self::of(step);
            all.authors.extend(authors.into_iter().filter(|author| seen.insert((true, author.clone()))));
            all.paths.extend(paths.into_iter().filter(|path| seen.insert((false, path.clone()))));
        }
        all.kinds = kinds.into_iter().map(|kind| kind.name().to_owned()).collect();
        all
    }

    pub(super) fn json(&self) -> String {
        json!({ "author": self.authors, "kind": self.kinds, "in": self.paths }).to_string()
    }
}

/// An iteration's name, with those that it is in: `ship #2 › fix #1`.
pub(super) fn path_name(path: &[LoopStep]) -> String {
    let names: Vec<String> = path.iter().map(|step| format!("{} #{}", step.name, step.iteration)).collect();
    names.join(" › ")
}
