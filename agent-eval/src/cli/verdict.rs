//! What is judged of a run: gates and baselines.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    codes::{Fault, Outcome},
    place::Place,
    settings::Verdicts,
};
use crate::{
    Baseline, ExitRules, Gate, Label, Report, ReportOptions, RunLog, TextOptions,
    text::{listed, nearest},
};

impl Verdicts {
    /// What the verdict looks at beside the report.
    pub(super) fn rules(&self) -> Outcome<ExitRules> {
        let default = ExitRules::default();
        let most = self.max_infrastructure_errors.unwrap_or(default.max_infrastructure_errors);
        if !(0.0..=1.0).contains(&most) {
            return Err(Fault::setup(format!("allow a share of {most} infrastructure errors: give one from 0 to 1")));
        }
        let require_evidence = self.require_evidence.unwrap_or(default.require_evidence);
        Ok(ExitRules { max_infrastructure_errors: most, require_evidence })
    }

    /// How reports of these sets are built. A gate may be for any set that the project has.
    pub(super) fn report(&self, place: &Place, sets: &[&str], known: &[&str]) -> Outcome<ReportOptions> {
        let mut options = ReportOptions {
            baselines: self.baselines(place, sets)?,
            labels: self.labels(place, sets)?,
            ..ReportOptions::default()
        };
        for text in &self.gates {
            match gate_of(text, known)? {
                (None, gate) => options.gates.push(gate),
                (Some(set), gate) => options.set_gates.entry(set.to_owned()).or_default().push(gate),
            }
        }
        Ok(options)
    }

    fn labels(&self, place: &Place, sets: &[&str]) -> Outcome<Vec<Label>> {
        if let Some(path) = &self.labels {
            return Ok(Label::read(path)?);
        }
        let dir = place.sets().join("labels");
        let paths = sets.iter().map(|set| dir.join(format!("{set}.jsonl"))).filter(|path| path.is_file());
        Ok(paths.map(Label::read).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Those of these sets, from where they are to be.
    pub(super) fn baselines(&self, place: &Place, sets: &[&str]) -> Outcome<Vec<Baseline>> {
        match self.baseline.as_deref() {
            Some("none") => Ok(Vec::new()),
            None => in_folder(&place.baselines(), sets),
            Some(what) => {
                let path = PathBuf::from(what);
                if path.is_file() {
                    return Ok(vec![Baseline::read(&path)?]);
                }
                if path.is_dir() && !path.join("trials.jsonl").exists() {
                    return in_folder(&path, sets);
                }
                let dir = place.run(what).map_err(|fault| {
                    Fault::setup(format!("compare with `{what}`: no file and no folder is there; {fault}"))
                })?;
                let log = RunLog::open(dir)?;
                Ok(Baseline::all(&Report::of(&log, ReportOptions::default())?))
            }
        }
    }
}

/// The gate, and the set that it is for, if it is for one of those that are known.
pub(super) fn gate_of<'a>(text: &'a str, known: &[&str]) -> Outcome<(Option<&'a str>, Gate)> {
    let Some((set, gate)) = of_set(text) else { return Ok((None, text.parse()?)) };
    let gate: Gate = gate.parse()?;
    if !known.contains(&set) {
        let hint = match nearest(set, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known are {}", listed(known)),
        };
        return Err(Fault::setup(format!("read gate `{text}`: there is no set `{set}`; {hint}")));
    }
    Ok((Some(set), gate))
}

/// The set and the gate, if it is for one set.
fn of_set(text: &str) -> Option<(&str, &str)> {
    let (set, gate) = text.split_once(':')?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let set = set.trim();
    (!set.is_empty() && set.chars().all(is_name)).then_some((set, gate.trim()))
}

/// Those of these sets that are there.
fn in_folder(dir: &Path, sets: &[&str]) -> Outcome<Vec<Baseline>> {
    let files: BTreeMap<_, _> = sets.iter().map(|set| (*set, dir.join(format!("{set}.json")))).collect();
    let there = files.into_iter().filter(|(_, path)| path.is_file());
    there
        .map(|(set, path)| {
            let baseline = Baseline::read(&path)?;
            if baseline.set != set {
                let what = format!("{}: it is the baseline of set `{}`; bless anew", path.display(), baseline.set);
                return Err(Fault::setup(what));
            }
            Ok(baseline)
        })
        .collect()
}

/// As wide as the terminal; colors are taken out where there is none.
pub(super) fn text_options(rules: ExitRules) -> TextOptions {
    let width = terminal_size::terminal_size().map_or(TextOptions::default().width, |(width, _)| width.0.into());
    TextOptions { width, color: true, rules }
}
