//! `cargo xtask bench`: what things cost, as one table.

#[path = "../../../agent-eval/src/file.rs"]
mod file;
mod measurement;
mod results;
mod valgrind;
mod wall;

use std::path::PathBuf;

use clap::Args;

use self::{
    measurement::{Measurement, Measurements},
    results::Results,
};

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
        let results = Results::at(&self.json)?;
        let filter = self.filter.as_deref().unwrap_or_default();
        let mut all = Measurements::default();
        let mut show = |measurement: Measurement| {
            anstream::println!("{}", all.row(&measurement, baseline.as_ref()));
            all.push(measurement);
        };
        anstream::println!("{}", Measurements::head());
        valgrind::measure(filter, &mut show)?;
        wall::measure(filter, &mut show)?;
        if all.is_empty() {
            return Err(no_case(filter));
        }
        results.write(&all.to_json())?;
        anstream::println!("\nwritten to {}; compare another run with --baseline FILE", self.json.display());
        Ok(())
    }
}

/// What to do where no case has this name.
fn no_case(filter: &str) -> String {
    let programs = [&[valgrind::NAME], &wall::names()[..]].concat();
    let remedy = match filter.split_once('/') {
        Some((program, _)) if programs.contains(&program) => format!("`{program}` alone measures all that it has"),
        Some(_) | None => {
            format!("the programs are {}; without a name, all cases are measured", programs.join(", "))
        }
    };
    format!("measure `{filter}`: no case is so named; {remedy}")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::Bench;

    fn refused(filter: &str, json: &Path, baseline: Option<&Path>) -> String {
        let bench =
            Bench { filter: Some(filter.into()), json: json.to_owned(), baseline: baseline.map(Path::to_owned) };
        bench.run().unwrap_err()
    }

    #[test]
    fn a_name_that_no_case_has_is_an_error_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("folder/bench.json");
        insta::assert_snapshot!(refused("loop_overhead/lops", &json, None), @"measure `loop_overhead/lops`: no case is so named; `loop_overhead` alone measures all that it has");
        insta::assert_snapshot!(refused("lops", &json, None), @"measure `lops`: no case is so named; the programs are loop_overhead, loops, sessions, stores, decoding, trials; without a name, all cases are measured");
        assert_eq!(fs::read_dir(dir.path().join("folder")).unwrap().count(), 0);
    }

    #[test]
    fn a_place_where_nothing_can_be_written_is_refused_before_anything_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let told =
            [dir.path().to_owned(), file.join("bench.json"), "".into()].map(|json| refused("loops", &json, None));
        let told = told.join("\n").replace(&dir.path().display().to_string(), "DIR");
        insta::assert_snapshot!(told, @r"
        write results to `DIR`: it is a folder; name a file in it, such as `--json DIR/bench.json`
        write results to `DIR/file/bench.json`: Not a directory (os error 20); name another file with `--json FILE`
        write results to ``: No such file or directory (os error 2); name another file with `--json FILE`
        ");
    }

    #[test]
    fn what_is_no_result_of_another_run_is_refused_before_anything_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let (json, report) = (dir.path().join("bench.json"), dir.path().join("report.json"));
        fs::write(&report, "{}").unwrap();
        let told = [dir.path(), &report, &dir.path().join("gone.json")].map(|path| refused("loops", &json, Some(path)));
        let told = told.join("\n").replace(&dir.path().display().to_string(), "DIR");
        insta::assert_snapshot!(told, @r"
        read baseline `DIR`: Is a directory (os error 21); name a file that `cargo xtask bench --json FILE` wrote
        read baseline `DIR/report.json`: it is not what `cargo xtask bench --json FILE` writes; name a file that is
        read baseline `DIR/gone.json`: No such file or directory (os error 2); name a file that `cargo xtask bench --json FILE` wrote
        ");
    }
}
