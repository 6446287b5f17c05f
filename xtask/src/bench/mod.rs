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
        if all.is_empty() {
            return Err(format!(
                "measure `{filter}`: no case is so named; the programs are {}; without a name, all cases are measured",
                [&[valgrind::NAME], &wall::names()[..]].concat().join(", ")
            ));
        }
        if let Some(dir) = self.json.parent() {
            fs::create_dir_all(dir).map_err(|error| format!("create `{}`: {error}", dir.display()))?;
        }
        fs::write(&self.json, all.to_json()).map_err(|error| format!("write `{}`: {error}", self.json.display()))?;
        println!("\nwritten to {}; compare another run with --baseline FILE", self.json.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Bench;

    #[test]
    fn a_name_that_no_case_has_is_an_error_and_writes_nothing() {
        let json = std::env::temp_dir().join("agent-loop-bench-of-nothing.json");
        let bench = Bench { filter: Some("lops".into()), json: json.clone(), baseline: None };
        insta::assert_snapshot!(bench.run().unwrap_err(), @"measure `lops`: no case is so named; the programs are loop_overhead, loops, sessions, stores, decoding, trials; without a name, all cases are measured");
        assert!(!json.exists());
    }
}
