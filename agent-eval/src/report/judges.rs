//! How far the judges can be trusted.

use agent_core::Usage;

use super::labels::{Labels, is_of_answer};
use crate::{
    CheckOutcome, Confusion, JudgeReport, Outcome, Trial, Verdict,
    stats::{cohen_kappa, krippendorff_nominal, rogan_gladen},
};

/// What a judge said of a trial, and what people said of the same answer.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    passed: bool,
    votes: Vec<bool>,
    /// Whether it is about the answer, of which labels are.
    is_of_answer: bool,
    labels: Vec<bool>,
}

impl Judged {
    pub(super) fn all(trial: &Trial, labels: &Labels) -> Vec<Self> {
        let judged = |whole: &CheckOutcome, judged: &CheckOutcome| {
            let is_of_answer = is_of_answer(whole, trial);
            let labels = || if is_of_answer { labels.of(trial, &judged.check) } else { Vec::new() };
            Self::of(&judged.outcome).map(|judged| Self { is_of_answer, labels: labels(), ..judged })
        };
        let of = |whole| CheckOutcome::judgments(whole).filter_map(move |judgment| judged(whole, judgment));
        trial.outcomes.iter().flat_map(of).collect()
    }

    /// None for what no judge said, and for one that could not.
    fn of(outcome: &Outcome) -> Option<Self> {
        let passed = match outcome.verdict {
            Verdict::Pass => true,
            Verdict::Fail => false,
            Verdict::Unscored | Verdict::Error => return None,
        };
        let votes = outcome.votes.clone();
        (!votes.is_empty()).then_some(Self { passed, votes, is_of_answer: true, labels: Vec::new() })
    }
}

/// The judges of a set; each outcome comes with what the case's metadata say of its answer, if they do: where
/// no label says it. None without outcomes.
pub(super) fn judge_report<'a>(
    judged: impl Iterator<Item = (&'a Judged, Option<bool>)>,
    usage: Usage,
) -> Option<JudgeReport> {
    let mut units = Vec::new();
    let (mut outcomes, mut passed, mut repeats) = (0_u64, 0_u64, 0);
    let mut against = Confusion::default();
    for (Judged { passed: pass, votes, is_of_answer, labels }, of_case) in judged {
        outcomes += 1;
        passed += u64::from(*pass);
        repeats = repeats.max(u32::try_from(votes.len()).unwrap_or(u32::MAX));
        units.push(votes.iter().map(|vote| u32::from(*vote)).collect::<Vec<u32>>());
        let of_case = of_case.filter(|_| *is_of_answer && labels.is_empty());
        for label in labels.iter().copied().chain(of_case) {
            against.add(*pass, label);
        }
    }
    let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
    let observed = share(passed, outcomes)?;
    let Confusion { accepted_good, accepted_bad, rejected_good, rejected_bad } = against;
    let (sensitivity, specificity) = (against.recall(), against.false_accepts().map(|share| 1.0 - share));
    Some(JudgeReport {
        outcomes,
        repeats,
        usage,
        labels: against,
        alpha: krippendorff_nominal(&units),
        kappa: cohen_kappa(accepted_good, accepted_bad, rejected_good, rejected_bad),
        sensitivity,
        specificity,
        observed_rate: Some(observed),
        corrected_rate: sensitivity.zip(specificity).and_then(|(sens, spec)| rogan_gladen(observed, sens, spec)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(passed: bool, votes: [bool; 2]) -> Judged {
        let verdict = Outcome::of(passed, String::new).with_votes(votes);
        Judged::of(&verdict).expect("a judge's outcome")
    }

    #[test]
    fn a_judge_is_measured_against_people_and_against_itself() {
        let (yes, no) = (judged(true, [true, true]), judged(false, [false, false]));
        let kinds = [(&yes, true, 40), (&yes, false, 10), (&no, true, 5), (&no, false, 45)];
        let all = kinds.iter().flat_map(|(judged, label, count)| std::iter::repeat_n((*judged, Some(*label)), *count));
        let report = judge_report(all, Usage::default()).expect("outcomes");
        let near = |value: Option<f64>, expected: f64| assert!((value.expect("defined") - expected).abs() < 1e-12);
        near(report.kappa, 0.7);
        near(report.alpha, 1.0);
        near(report.sensitivity, 40.0 / 45.0);
        near(report.specificity, 45.0 / 55.0);
        near(report.corrected_rate, 0.45); // measured on the same labels, the correction gives their share back
        assert_eq!(report.labels.all(), 100);
    }

    #[test]
    fn votes_that_differ_lower_alpha() {
        let all = [
            judged(true, [true, true]),
            judged(true, [true, false]),
            judged(false, [false, false]),
            judged(true, [true, true]),
        ];
        let report = judge_report(all.iter().map(|judged| (judged, None)), Usage::default()).expect("outcomes");
        assert!((report.alpha.expect("defined") - 8.0 / 15.0).abs() < 1e-12);
        assert_eq!((report.kappa, report.corrected_rate, report.repeats), (None, None, 2));
    }

    #[test]
    fn checks_and_crashed_judges_are_no_judgments() {
        assert!(Judged::of(&Outcome::pass()).is_none());
        assert!(Judged::of(&Outcome::error("crashed").with_votes([true])).is_none());
    }
}
