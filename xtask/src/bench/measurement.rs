//! What was measured, as rows of a table and as JSON.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// What one case costs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measurement {
    /// The program, the function and its arguments, separated by `/`.
    pub(crate) case: String,
    /// How much.
    pub(crate) cost: f64,
    /// Of what, for what: `ns / iteration`.
    pub(crate) unit: String,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Measurements(Vec<Measurement>);

/// Cases that are compared with another one of the same arguments: what one would have without this project.
const BASES: [(&str, &str); 6] = [
    ("loops/shared", "loops/bare"),
    ("loops/fresh", "loops/bare"),
    ("loops/deltas/0", "loops/deltas_bare"),
    ("loops/deltas/1", "loops/deltas_bare"),
    ("sessions/write_session", "sessions/write_plain"),
    ("sessions/read_session", "sessions/read_plain"),
];

impl Measurements {
    pub(crate) fn push(&mut self, measurement: Measurement) {
        self.0.push(measurement);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn head() -> String {
        format!("{:<46} {:>14} {:<22} {:>8} {:>8}", "case", "cost", "unit", "x base", "x before")
    }

    /// A row of the table: beside the cost, how many times that of its base it is, and that of the same case before.
    pub(crate) fn row(&self, measurement: &Measurement, before: Option<&Self>) -> String {
        let Measurement { case, cost, unit } = measurement;
        let base = BASES.iter().find_map(|(of, base)| Some(format!("{base}{}", case.strip_prefix(of)?)));
        let times = |other: Option<f64>| other.map_or_else(String::new, |other| format!("{:.2}", cost / other));
        let (base, before) =
            (base.and_then(|base| self.cost(&base, unit)), before.and_then(|all| all.cost(case, unit)));
        let cost = if *cost < 100.0 { format!("{cost:.2}") } else { format!("{cost:.0}") };
        format!("{case:<46} {cost:>14} {unit:<22} {:>8} {:>8}", times(base), times(before)).trim_end().to_owned()
    }

    fn cost(&self, case: &str, unit: &str) -> Option<f64> {
        self.0.iter().find(|known| known.case == case && known.unit == unit).map(|known| known.cost)
    }

    pub(crate) fn to_json(&self) -> String {
        let rows =
            self.0.iter().map(|Measurement { case, cost, unit }| json!({ "case": case, "cost": cost, "unit": unit }));
        format!("{:#}\n", Value::Array(rows.collect()))
    }

    pub(crate) fn read(path: impl AsRef<Path>) -> Result<Self, String> {
        let path = path.as_ref();
        let failed = |what: &str| format!("read baseline `{}`: {what}", path.display());
        let text = fs::read_to_string(path)
            .map_err(|error| failed(&format!("{error}; name a file that `cargo xtask bench --json FILE` wrote")))?;
        let foreign = "it is not what `cargo xtask bench --json FILE` writes; name a file that is";
        Self::parse(&text).ok_or_else(|| failed(foreign))
    }

    fn parse(text: &str) -> Option<Self> {
        let rows: Vec<Value> = serde_json::from_str(text).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let row = |row: &Value| {
            Some(Measurement { case: text(&row["case"])?, cost: row["cost"].as_f64()?, unit: text(&row["unit"])? })
        };
        rows.iter().map(row).collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Measurement, Measurements};

    fn measured(case: &str, cost: f64) -> Measurement {
        Measurement { case: case.into(), cost, unit: "ns".into() }
    }

    #[test]
    fn a_row_has_the_ratios_to_its_base_and_to_another_run() {
        let all = Measurements(vec![measured("loops/bare/100/10", 200.0)]);
        let before = Measurements(vec![measured("loops/shared/100/10", 1000.0)]);
        insta::assert_snapshot!(all.row(&measured("loops/shared/100/10", 500.0), Some(&before)), @"loops/shared/100/10                                       500 ns                         2.50     0.50");
        insta::assert_snapshot!(all.row(&measured("loops/shared/100/99", 1.5), None), @"loops/shared/100/99                                      1.50 ns");
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let all = Measurements(vec![measured("a/b", 1.25), measured("c", 3.0)]);
        assert_eq!(Measurements::parse(&all.to_json()), Some(all));
        assert_eq!(Measurements::parse("[{}]"), None);
    }
}
