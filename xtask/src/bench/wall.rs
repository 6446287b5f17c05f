//! Wall time: the programs in the crates' `benches/`, and the tables that they print.

use crate::command::Cargo;

use super::measurement::Measurement;

/// A measured program.
struct Program {
    package: &'static str,
    name: &'static str,
    /// What one item of its counters is.
    item: &'static str,
    features: &'static str,
}

const PROGRAMS: [Program; 5] = [
    Program { package: "agent-loop", name: "loops", item: "iteration", features: "" },
    Program { package: "agent-core", name: "sessions", item: "", features: "" },
    Program { package: "agent-providers", name: "stores", item: "event", features: " --features postgres,sqlite" },
    Program { package: "agent-providers", name: "decoding", item: "", features: "" },
    Program { package: "agent-eval", name: "trials", item: "trial", features: "" },
];

/// The programs' names.
pub(crate) fn names() -> [&'static str; PROGRAMS.len()] {
    PROGRAMS.map(|program| program.name)
}

/// Runs the programs that have such a case.
pub(crate) fn measure(filter: &str, show: &mut impl FnMut(Measurement)) -> Result<(), String> {
    for program in &PROGRAMS {
        let Program { package, name, features, .. } = program;
        let mut parts = filter.split('/');
        if parts.next().is_some_and(|of| !of.is_empty() && of != *name) {
            continue;
        }
        let function =
            parts.next().filter(|function| !function.is_empty()).map_or_else(String::new, |f| format!(" {f}"));
        let output = Cargo::new(&format!("bench -q -p {package} --bench {name}{features} --{function}")).output()?;
        let table = String::from_utf8_lossy(&output);
        program.read(&table).into_iter().filter(|row| row.case.contains(filter)).for_each(&mut *show);
    }
    Ok(())
}

impl Program {
    /// What a table of divan's says.
    fn read(&self, table: &str) -> Vec<Measurement> {
        let mut rows = Vec::<Measurement>::new();
        let mut path = Vec::<&str>::new();
        for line in table.lines() {
            let cells: Vec<&str> = line.rsplitn(6, '│').collect();
            let [.., first] = cells[..] else { continue };
            // Behind the lines of the tree: the name, and how long the fastest run took.
            if let Some((tree, node)) = first.split_once("─ ") {
                path.truncate(tree.chars().count() / 3);
                let (name, cost) = node.split_once("  ").unwrap_or((node, ""));
                path.push(name);
                if let Some(cost) = nanoseconds(cost.trim()) {
                    let case = [&[self.name], &path[..]].concat().join("/");
                    rows.push(Measurement { case, cost, unit: "ns".into() });
                }
            } else if let (Some(rate), Some(row)) = (rate(first.trim_start_matches(['│', ' ']).trim()), rows.last_mut())
            {
                (row.cost, row.unit) = match rate {
                    Rate::Items(rate) => (1e9 / rate, format!("ns / {}", self.item)),
                    Rate::Bytes(rate) => (1e9 / rate, "ns / B".into()),
                };
            }
        }
        rows
    }
}

enum Rate {
    Items(f64),
    Bytes(f64),
}

fn nanoseconds(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let scale = match unit {
        "ps" => 1e-3,
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

fn rate(text: &str) -> Option<Rate> {
    let (number, unit) = text.split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    let scale = |prefix| match prefix {
        "" => Some(1.0),
        "K" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        _ => None,
    };
    if let Some(prefix) = unit.strip_suffix("item/s") {
        return Some(Rate::Items(number * scale(prefix)?));
    }
    Some(Rate::Bytes(number * scale(unit.strip_suffix("B/s")?)?))
}

#[cfg(test)]
mod tests {
    use super::{Measurement, Program};

    #[test]
    fn a_table_of_nested_cases_is_read_with_its_rates() {
        let table = "\
Timer precision: 20 ns
loops            fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ bare                        │               │               │               │         │
│  ├─ 100                      │               │               │               │         │
│  │  ╰─ 10      2 µs          │ 1 ms          │ 3 µs          │ 3 µs          │ 100     │ 3200
│  │             5 Mitem/s     │ 1 Kitem/s     │ 3 Mitem/s     │ 3 Mitem/s     │         │
├─ one           1.5 ns        │ 2 ns          │ 2 ns          │ 2 ns          │ 100     │ 3200
╰─ write                       │               │               │               │         │
   ╰─ 10         20 ns         │ 2 ns          │ 2 ns          │ 2 ns          │ 100     │ 3200
                 500 MB/s      │ 1 MB/s        │ 1 MB/s        │ 1 MB/s        │         │
";
        let program = Program { package: "p", name: "loops", item: "iteration", features: "" };
        let row = |case: &str, cost, unit: &str| Measurement { case: case.into(), cost, unit: unit.into() };
        assert_eq!(
            program.read(table),
            [
                row("loops/bare/100/10", 200.0, "ns / iteration"),
                row("loops/one", 1.5, "ns"),
                row("loops/write/10", 2.0, "ns / B"),
            ]
        );
    }
}
