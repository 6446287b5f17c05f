//! `cargo xtask bench`: what the loop itself costs, in instructions.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use serde_json::Value;

use crate::command::Cargo;

/// Count the instructions of the loop alone with valgrind, and print them as one table.
///
/// Instructions are repeatable for the same binary, whatever else the machine does; ratios are within one run.
#[derive(Debug, Args)]
pub(crate) struct Bench;

/// One measured case: how many units of work it does at each size.
struct Case {
    name: &'static str,
    unit: &'static str,
    sizes: &'static [u32],
    /// Whether the size is the number of units; otherwise each run does a thousand, whatever the size.
    grows: bool,
}

const CASES: [Case; 3] = [
    Case { name: "shared", unit: "iteration", sizes: &[10, 100, 1000], grows: true },
    Case { name: "fresh", unit: "iteration", sizes: &[10, 100, 1000], grows: true },
    Case { name: "clone", unit: "clone", sizes: &[10, 1000, 10_000], grows: false },
];
const CLONES: f64 = 1000.0;

impl Bench {
    pub(crate) fn run() -> Result<(), String> {
        let program = build()?;
        println!("{:<10} {:>8} {:>24} {:>8}", "case", "size", "instructions", "ratio");
        for case in &CASES {
            let mut first = None;
            for size in case.sizes {
                let cost = case.cost(&program, *size)?;
                let ratio = cost / *first.get_or_insert(cost);
                let per_unit = format!("{cost:.0} / {}", case.unit);
                println!("{:<10} {size:>8} {per_unit:>24} {ratio:>8.3}", case.name);
            }
        }
        Ok(())
    }
}

impl Case {
    /// Instructions of one unit of work, without those of setting up.
    fn cost(&self, program: &Path, size: u32) -> Result<f64, String> {
        if self.grows {
            let (one, all) = (count(program, &[self.name, "1"])?, count(program, &[self.name, &size.to_string()])?);
            return Ok((all - one) / f64::from(size - 1));
        }
        let size = size.to_string();
        let (without, with) = (count(program, &["setup", &size])?, count(program, &[self.name, &size])?);
        Ok((with - without) / CLONES)
    }
}

/// Builds the measured program and says where it is.
fn build() -> Result<PathBuf, String> {
    let args = "build --profile bench -p agent-loop --bench loop_overhead --message-format json-render-diagnostics";
    let output = Cargo::new(args).output()?;
    let messages = output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let executable = messages.rev().find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.ok_or_else(|| format!("`cargo {args}` named no executable"))
}

fn count(program: &Path, args: &[&str]) -> Result<f64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(args)
        .output()
        .map_err(|error| format!("start valgrind: {error}; install it, it counts the instructions"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let total = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    total.ok_or_else(|| format!("count the instructions of {} {args:?}: valgrind said: {said}", program.display()))
}
