//! `list`: the cases that would be run.

use anstyle::Style;
use clap::Args;

use super::{
    codes::Outcome,
    place::Place,
    sets::{SetFile, Which, load_all, selected},
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
        for (file, cases) in selected(&sets, &selection)? {
            print_set(file, &cases);
        }
        Ok(0)
    }
}

fn print_set(file: &SetFile, cases: &[&EvalCase]) {
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let set = &file.set;
    let count = words::of_these(cases.len() as u64, "case");
    anstream::println!("{bold}{}{bold:#}: {count}, {}", set.name, file.path.display());
    for case in cases {
        let tags: Vec<&str> = case.tags.union(&set.defaults.tags).map(String::as_str).collect();
        let quarantine =
            case.quarantine.as_ref().map(|quarantine| format!(" (in quarantine until {})", quarantine.until));
        anstream::println!(
            "    {}::{}  {dim}{}{}{dim:#}",
            set.name,
            words::one_line(&case.id),
            words::one_line(&tags.join(" ")),
            quarantine.unwrap_or_default()
        );
    }
}
