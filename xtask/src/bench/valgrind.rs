//! Instructions and allocations of the loop alone, counted by valgrind; and many loops at once.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::command::Cargo;

use super::measurement::Measurement;

/// One measured case of `loop_overhead`.
struct Case {
    name: &'static str,
    unit: &'static str,
    sizes: &'static [u32],
    /// Whether the size is the number of units; otherwise each run does a thousand, whatever the size.
    grows: bool,
}

const CASES: [Case; 4] = [
    Case { name: "shared", unit: "iteration", sizes: &[10, 100, 1000], grows: true },
    Case { name: "streamed", unit: "iteration", sizes: &[10, 100, 1000], grows: true },
    Case { name: "fresh", unit: "iteration", sizes: &[10, 100, 1000], grows: true },
    Case { name: "clone", unit: "clone", sizes: &[10, 1000, 10_000], grows: false },
];
const CLONES: f64 = 1000.0;
pub(super) const NAME: &str = "loop_overhead";

pub(crate) fn measure(filter: &str, show: &mut impl FnMut(Measurement)) -> Result<(), String> {
    let (counted, concurrent) = (counted(filter), concurrent(filter));
    if counted.is_empty() && concurrent.is_empty() {
        return Ok(());
    }
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind && concurrent.is_empty() {
        return Err(format!("count the instructions of `{filter}`: valgrind is not installed; install it"));
    }
    if !has_valgrind && !counted.is_empty() {
        anstream::println!("valgrind is not installed: instructions and allocations are left out");
    }
    let program = build()?;
    for (case, size) in counted.into_iter().filter(|_| has_valgrind) {
        for count in [Count::Instructions, Count::Allocations, Count::Bytes] {
            let cost = case.cost(&program, size, count)?;
            let unit = format!("{} / {}", count.unit(), case.unit);
            show(Measurement { case: name(case.name, size), cost, unit });
        }
    }
    for case in concurrent {
        at_once(&program, case)?.into_iter().for_each(&mut *show);
    }
    Ok(())
}

/// The cases whose name begins so.
fn counted(filter: &str) -> Vec<(&'static Case, u32)> {
    let all = CASES.iter().flat_map(|case| case.sizes.iter().map(move |size| (case, *size)));
    all.filter(|(case, size)| name(case.name, *size).starts_with(filter)).collect()
}

/// The same of many loops at once.
fn concurrent(filter: &str) -> Vec<Concurrent> {
    MANY.into_iter().filter(|(case, size, _)| name(case, *size).starts_with(filter)).collect()
}

fn name(case: &str, size: u32) -> String {
    format!("{NAME}/{case}/{size}")
}

impl Case {
    /// The cost of one unit of work, without that of setting up.
    fn cost(&self, program: &Path, size: u32, count: Count) -> Result<f64, String> {
        if self.grows {
            let all = count.of(program, self.name, size)? - count.of(program, self.name, 1)?;
            return Ok(all / f64::from(size - 1));
        }
        Ok((count.of(program, self.name, size)? - count.of(program, "setup", size)?) / CLONES)
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
enum Count {
    Instructions,
    Allocations,
    Bytes,
}

impl Count {
    fn unit(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Allocations => "allocations",
            Self::Bytes => "B allocated",
        }
    }

    fn of(self, program: &Path, case: &str, size: u32) -> Result<f64, String> {
        let tool: &[&str] = match self {
            Self::Instructions => &["--tool=callgrind", "--callgrind-out-file=/dev/null"],
            Self::Allocations | Self::Bytes => &["--tool=memcheck"],
        };
        let mut valgrind = Command::new("valgrind");
        valgrind.args(tool).arg(program).args([case, &size.to_string()]);
        let output = valgrind.output().map_err(|error| format!("start valgrind: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        self.read(&said).ok_or_else(|| format!("count the {} of {case} {size}: valgrind said: {said}", self.unit()))
    }

    /// The number in what valgrind says at the end.
    fn read(self, said: &str) -> Option<f64> {
        let (before, unit) = match self {
            Self::Instructions => ("Collected : ", ""),
            Self::Allocations => ("total heap usage: ", " allocs"),
            Self::Bytes => (" frees, ", " bytes allocated"),
        };
        let number = said.lines().find_map(|line| line.split_once(before)?.1.split(' ').next()?.trim().into());
        number.filter(|_| said.contains(unit))?.replace(',', "").parse().ok()
    }
}

/// A case of many loops at once: what the program prints of it, in which units.
type Concurrent = (&'static str, u32, &'static [&'static str]);
const MANY: [Concurrent; 5] = [
    ("concurrent", 1000, &["s", "KiB at most"]),
    ("concurrent", 10_000, &["s", "KiB at most"]),
    ("concurrent_streamed", 1000, &["s", "KiB at most"]),
    ("concurrent_streamed", 10_000, &["s", "KiB at most"]),
    ("waiting", 10_000, &["B / loop"]),
];

fn at_once(program: &Path, (case, size, units): Concurrent) -> Result<Vec<Measurement>, String> {
    let output = Command::new(program).args([case, &size.to_string()]).output();
    let output = output.map_err(|error| format!("start {}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    if numbers.len() != units.len() {
        let (end, why) = (output.status, String::from_utf8_lossy(&output.stderr));
        return Err(format!("measure {case} {size}: the program ended with {end} and said: {said}{why}"));
    }
    let row = |(cost, unit): (_, &&str)| Measurement { case: name(case, size), cost, unit: (*unit).into() };
    Ok(numbers.into_iter().zip(units).map(row).collect())
}

/// Builds the measured program and says where it is.
fn build() -> Result<PathBuf, String> {
    let args = "build --profile bench -p agent-loop --bench loop_overhead --message-format json-render-diagnostics";
    let output = Cargo::new(args).output()?;
    let messages = output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let executable = messages.rev().find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.ok_or_else(|| format!("`cargo {args}` named no executable"))
}

#[cfg(test)]
mod tests {
    use super::{Count, concurrent, counted};

    #[test]
    fn a_case_is_chosen_by_its_name_in_the_table_or_by_how_that_begins() {
        let chosen = ["loop_overhead/clone/1000", "loop_overhead/waiting/10000", "loop_overhead/concurrent", "loops"];
        let chosen = chosen.map(|filter| (counted(filter).len(), concurrent(filter).len()));
        assert_eq!(chosen, [(2, 0), (0, 1), (0, 4), (0, 0)]);
    }

    #[test]
    fn the_numbers_that_valgrind_says_at_the_end_are_read() {
        let said = "==7== Collected : 2656424\n==7==   total heap usage: 33,162 allocs, 33,160 frees, 3,803,220 bytes allocated\n";
        let read = [Count::Instructions, Count::Allocations, Count::Bytes].map(|count| count.read(said));
        assert_eq!(read, [Some(2_656_424.0), Some(33_162.0), Some(3_803_220.0)]);
        assert_eq!(Count::Bytes.read("nothing"), None);
    }
}
