//! Trials of a run, by name.

use std::collections::BTreeMap;

use super::{
    codes::{Fault, Outcome},
    place::name_of,
};
use crate::{RunLog, Trial, TrialKey, text::nearest};

/// The trials that a name means, in order: `[set::]case` all of a case, `[set::]case#repeat` one.
pub(super) fn named(log: &RunLog, name: &str) -> Outcome<Vec<Trial>> {
    let (case, repeat) = case_of(log, name)?;
    let mut found: BTreeMap<TrialKey, Trial> = BTreeMap::new();
    for trial in log.trials()? {
        let trial = trial?;
        let is_case = (trial.key.set.as_str(), trial.key.case.as_str()) == (case.0.as_str(), case.1.as_str());
        if is_case && repeat.is_none_or(|repeat| repeat == trial.key.repeat) {
            found.insert(trial.key.clone(), trial);
        }
    }
    if found.is_empty() {
        return Err(Fault::setup(format!(
            "find trial `{name}`: the run `{}` has no such trial; without `#N` all of a case are meant, and `--resume` runs what is missing",
            name_of(log.dir())
        )));
    }
    Ok(found.into_values().collect())
}

type Case = (String, String);

/// The case, and which repeat.
fn case_of(log: &RunLog, name: &str) -> Outcome<(Case, Option<u32>)> {
    let cases: Vec<Case> = log
        .sets()
        .iter()
        .flat_map(|set| set.cases.iter().map(move |case| (set.name.clone(), case.id.clone())))
        .collect();
    let find = |name: &str| {
        let is_it = |(set, case): &&Case| case == name || format!("{set}::{case}") == name;
        cases.iter().filter(is_it).cloned().collect::<Vec<_>>()
    };
    let numbered = name.rsplit_once('#').and_then(|(case, repeat)| Some((case, repeat.parse::<u32>().ok()?)));
    let (found, repeat) = match (find(name), numbered) {
        (found, None) => (found, None),
        (found, Some(_)) if !found.is_empty() => (found, None),
        (_, Some((case, repeat))) => (find(case), Some(repeat)),
    };
    match found.as_slice() {
        [case] => Ok((case.clone(), repeat)),
        [] => {
            let whole: Vec<String> = cases.iter().map(|(set, case)| format!("{set}::{case}")).collect();
            let ids = cases.iter().map(|(_, case)| case.as_str());
            let hint =
                match nearest(numbered.map_or(name, |(case, _)| case), ids.chain(whole.iter().map(String::as_str))) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "`report RUN` shows its cases".to_owned(),
                };
            let run = name_of(log.dir());
            Err(Fault::setup(format!("find case `{name}`: the run `{run}` has none of this name; {hint}")))
        }
        [(set, case), ..] => {
            let what = format!("find case `{name}`: several sets have it; write `{set}::{case}`");
            Err(Fault::setup(what))
        }
    }
}
