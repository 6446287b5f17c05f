//! `import`: a set of another tool as one of this project.

use std::path::PathBuf;

use clap::Args;

use super::{
    codes::{BAD_SETUP, Fault, Outcome},
    exchange::Losses,
    place::{Place, write},
    stdout::print_text,
};
use crate::{
    EvalSet, SetFormat,
    import::{ImportFormat, Imported},
    report::words::of_these,
};

/// Write a set of another tool as a set of this project; what cannot be said in one is listed, and nothing is written.
#[derive(Debug, Clone, Args)]
pub(super) struct Import {
    /// The file, with what belongs to it beside it.
    file: PathBuf,
    /// Whose it is: `adk`, `inspect`, `promptfoo`, `pydantic`, `deepeval`, `bfcl` or `humaneval`.
    #[arg(long, value_name = "TOOL")]
    from: String,
    /// Where to write it; the ending says in which format [default: evals/NAME.yaml].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    losses: Losses,
}

impl Import {
    pub(super) fn run(self) -> Outcome<u8> {
        let format: ImportFormat = self.from.parse()?;
        let Imported { set, notes } = format.import(&self.file)?;
        let path = match self.output {
            Some(path) => path,
            None => Place::find()
                .map_or_else(|_| PathBuf::from("evals"), |place| place.sets())
                .join(format!("{}.yaml", set.name)),
        };
        self.losses.may_write(&path)?;
        if !self.losses.may_leave_out(&self.file.display().to_string(), &notes) {
            return Ok(BAD_SETUP);
        }
        let Some(format) = SetFormat::of(&path) else {
            return Err(Fault::setup(format!("write {}: name it .yaml, .json or .jsonl", path.display())));
        };
        let text = set.write(format)?;
        write(&path, &text)?;
        let cases = of_these(set.cases.len() as u64, "case");
        let left_out = of_these(notes.len() as u64, "thing");
        print_text(&format!("{}: {cases}, {left_out} left out\n", path.display()))?;
        if let Err(error) = EvalSet::parse(&text, format, &path.display().to_string()) {
            print_text(&format!("to do before it can be run: {error:#}\n"))?;
        }
        Ok(0)
    }
}
