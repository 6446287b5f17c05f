//! Sets of other tools: what is lost on the way to and from them.

use std::path::Path;

use clap::Args;

use super::codes::{Fault, Outcome};
use crate::{
    import::Note,
    report::words::{of_these, one_line},
};

/// What may be lost: what a format cannot say, and what is there.
#[derive(Debug, Clone, Args)]
pub(super) struct Losses {
    /// Write it though something is left out.
    #[arg(long)]
    lossy: bool,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

impl Losses {
    /// An error if the file is there, and is to stay.
    pub(super) fn may_write(&self, path: &Path) -> Outcome<()> {
        if path.exists() && !self.overwrite {
            let what = "it is there; take another file with `-o`, or `--overwrite`";
            return Err(Fault::setup(format!("write {}: {what}", path.display())));
        }
        Ok(())
    }

    /// Lists what is left out of what comes from here; false if nothing is to be written then.
    pub(super) fn may_leave_out(&self, from: &str, notes: &[Note]) -> bool {
        for note in notes {
            anstream::eprintln!("note: {}", one_line(&note.to_string()));
        }
        let is_refused = !notes.is_empty() && !self.lossy;
        if is_refused {
            let left_out = of_these(notes.len() as u64, "thing");
            anstream::eprintln!(
                "{from}: {left_out} cannot be said; nothing is written (`--lossy` writes it all the same)"
            );
        }
        !is_refused
    }
}
