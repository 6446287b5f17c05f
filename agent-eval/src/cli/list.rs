//! `list`: the cases that would be run.

use anstyle::Style;
use clap::Args;

use super::{
    codes::Outcome,
    place::Place,
    sets::{SetFile, Which, load_all, selected},
    stdout::print_text,
};
use crate::{EvalCase, report::words};

/// List the cases that a run would select.
#[derive(Debug, Clone, Args)]
pub(super) struct List {
    #[command(flatten)]
    which: Which,
}

impl List {
    pub(super) fn run(&self) -> Outcome<u8> {
        let sets = load_all(&Place::find()?)?;
        let selection = self.which.selection(&sets)?;
        let listed = selected(&sets, &selection)?;
        print_text(&listed.into_iter().flat_map(|(file, cases)| lines(file, &cases)).collect::<String>())?;
        Ok(0)
    }
}

fn lines(file: &SetFile, cases: &[&EvalCase]) -> Vec<String> {
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let set = &file.set;
    let count = words::of_these(cases.len() as u64, "case");
    let head = format!("{bold}{}{bold:#}: {count}, {}\n", set.name, file.path.display());
    let line = |case: &&EvalCase| {
        let tags: Vec<&str> = case.tags.union(&set.defaults.tags).map(String::as_str).collect();
        let quarantine =
            case.quarantine.as_ref().map(|quarantine| format!(" (in quarantine until {})", quarantine.until));
        format!(
            "    {}::{}  {dim}{}{}{dim:#}\n",
            set.name,
            words::one_line(&case.id),
            words::one_line(&tags.join(" ")),
            quarantine.unwrap_or_default()
        )
    };
    std::iter::once(head).chain(cases.iter().map(line)).collect()
}
