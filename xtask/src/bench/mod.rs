//! `cargo xtask bench`: what things cost, as one table.

mod measurement;
mod valgrind;
mod wall;

use std::{fs, path::PathBuf};

use clap::Args;

use self::measurement::{Measurement, Measurements};

/// Measure the workspace and print one table: the loop in instructions and allocations (where valgrind is installed), and
/// everything in wall time, best of many. Ratios are within one run.
///
/// Instructions are repeatable for the same binary, whatever else the machine does; wall time is not.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Only these cases: a program, or one of its functions, such as `loops` or `sessions/rewind`.
    filter: Option<String>,
    /// Where to write the results as JSON.
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    json: PathBuf,
    /// Results of another run: the table shows how many times as much each case costs now.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<(), String> {
        let baseline = self.baseline.as_ref().map(Measurements::read).transpose()?;
        let filter = self.filter.as_deref().unwrap_or_default();
        let mut all = Measurements::default();
        let mut show = |measurement: Measurement| {
            println!("{}", all.row(&measurement, baseline.as_ref()));
            all.push(measurement);
        };
        println!("{}", Measurements::head());
        valgrind::measure(filter, &mut show)?;
        wall::measure(filter, &mut show)?;
        if let Some(dir) = self.json.parent() {
            fs::create_dir_all(dir).map_err(|error| format!("create `{}`: {error}", dir.display()))?;
        }
        fs::write(&self.json, all.to_json()).map_err(|error| format!("write `{}`: {error}", self.json.display()))?;
        println!("\nwritten to {}; compare another run with --baseline FILE", self.json.display());
        Ok(())
    }
}
