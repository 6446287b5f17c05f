//! `export`: a set of this project as one of another tool.

use std::path::PathBuf;

use clap::Args;

use super::{
    codes::{BAD_SETUP, Fault, Outcome},
    exchange::Losses,
    place::{Place, write},
    sets::load_all,
    stdout::{print_exactly, print_text},
};
use crate::{
    EvalSet,
    export::{ExportFormat, Exported},
    report::words::of_these,
    text::{listed, nearest},
};

/// Write a set as one of another tool; what that tool cannot say is listed, and nothing is written.
#[derive(Debug, Clone, Args)]
pub(super) struct Export {
    /// The set's name.
    set: String,
    /// Who is to read it: `adk`, `inspect` or `promptfoo`.
    #[arg(long, value_name = "TOOL")]
    to: String,
    /// Where to write it [default: the standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    losses: Losses,
}

impl Export {
    pub(super) fn run(self) -> Outcome<u8> {
        let format: ExportFormat = self.to.parse()?;
        let set = self.find()?;
        let Exported { text, notes } = format.export(&set)?;
        if let Some(path) = &self.output {
            self.losses.may_write(path)?;
        }
        if !self.losses.may_leave_out(&set.name, &notes) {
            return Ok(BAD_SETUP);
        }
        let Some(path) = self.output else {
            print_exactly(&text)?;
            return Ok(0);
        };
        write(&path, &text)?;
        print_text(&format!("{}: {} left out\n", path.display(), of_these(notes.len() as u64, "thing")))?;
        Ok(0)
    }

    fn find(&self) -> Outcome<EvalSet> {
        let mut sets = load_all(&Place::find()?)?;
        let Some(at) = sets.iter().position(|file| file.set.name == self.set) else {
            let known = sets.iter().map(|file| file.set.name.as_str());
            let hint = match nearest(&self.set, known.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known are {}", listed(known)),
            };
            return Err(Fault::setup(format!("export set `{}`: there is none of this name; {hint}", self.set)));
        };
        Ok(sets.swap_remove(at).set)
    }
}
