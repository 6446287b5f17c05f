//! Reports as JUnit XML, for CI servers.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::words::{CaseVerdict, SameFailure, one_line, passed, percent_of, printable, verdict_word};
use crate::{CaseReport, ExitRules, GateVerdict, Report, RunVerdict, SetReport};

impl Report {
    /// As JUnit XML: a suite for each set, with its cases and its gates as tests, and the suite `agent-eval` with the
    /// verdict as the only test.
    ///
    /// It has failures or errors if and only if the exit code is not 0: while the verdict is [`RunVerdict::Passed`],
    /// cases that did not pass in all trials are skipped tests that say so. Cases in quarantine are always skipped.
    /// Characters that XML cannot hold are written as escapes.
    #[expect(clippy::missing_panics_doc, reason = "memory takes all that is written")]
    pub fn to_junit(&self, rules: &ExitRules) -> String {
        let verdict = self.verdict(rules);
        let tolerated = matches!(verdict, RunVerdict::Passed(_));
        let mut document = Document::new("agent-eval");
        for set in &self.sets {
            document.add_test_suite(suite(set, tolerated));
        }
        let mut overall = TestSuite::new("agent-eval");
        let status = if tolerated { TestCaseStatus::success() } else { failure(&verdict.to_string(), "verdict") };
        overall.add_test_case(test("verdict", "agent-eval", status));
        document.add_test_suite(overall);
        without_total_of_skipped(&document.to_string().expect("XML is written to memory"))
    }
}

/// Jenkins' schema (`junit-10.xsd`) has the number of skipped tests at suites, and not at the root.
fn without_total_of_skipped(xml: &str) -> String {
    let parts = || {
        let (head, rest) = xml.split_once("<testsuites")?;
        let (root, rest) = rest.split_once('>')?;
        let (before, after) = root.split_once(" skipped=\"")?;
        let (_, after) = after.split_once('"')?;
        Some(format!("{head}<testsuites{before}{after}>{rest}"))
    };
    parts().unwrap_or_else(|| xml.to_owned())
}

fn suite(set: &SetReport, tolerated: bool) -> TestSuite {
    let name = one_line(&set.name);
    let mut suite = TestSuite::new(name.as_str());
    suite.set_time(Duration::from_millis(set.total.wall_ms));
    for case in &set.cases {
        let mut test = test(&case.id, &name, status(case, tolerated));
        test.set_time(Duration::from_millis(case.tally.wall_ms));
        suite.add_test_case(test);
    }
    for gate in &set.gates {
        let status = match gate.verdict {
            GateVerdict::Passed => TestCaseStatus::success(),
            GateVerdict::Failed => failure(&gate.detail, "gate"),
            GateVerdict::Inconclusive => skipped(&format!("inconclusive: {}", gate.detail)),
        };
        suite.add_test_case(test(&format!("gate: {}", gate.gate), &name, status));
    }
    suite
}

fn test(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut test = TestCase::new(one_line(name), status);
    test.set_classname(class);
    test
}

fn status(case: &CaseReport, tolerated: bool) -> TestCaseStatus {
    let rate = format!("{} trials passed ({})", passed(&case.tally), percent_of(case.tally.rate));
    let verdict = CaseVerdict::of(case);
    let mut status = match (&case.quarantine, verdict) {
        (Some(why), _) => skipped(&format!("in quarantine: {why}; {rate}")),
        (None, CaseVerdict::Pass) => return TestCaseStatus::success(),
        (None, CaseVerdict::NotRun) => return skipped("no trial was run"),
        (None, _) if tolerated => skipped(&format!("{rate}; the run's gates allow it")),
        (None, CaseVerdict::Mixed | CaseVerdict::Fail | CaseVerdict::Unscored) => failure(&rate, verdict.word()),
        (None, CaseVerdict::Error) => problem(NonSuccessKind::Error, &rate, verdict.word()),
    };
    if !case.failures.is_empty() {
        status.set_description(describe(case));
    }
    status
}

/// What did not pass, as text.
fn describe(case: &CaseReport) -> String {
    let mut text = String::new();
    for same in SameFailure::all(case) {
        let mut lines = vec![format!("{}:", same.repeats())];
        lines.extend(same.failure.error.iter().map(|error| format!("error: {error}")));
        for check in &same.failure.checks {
            let reason = &check.outcome.reason;
            lines.push(format!("{}: {}: {reason}", verdict_word(check.outcome.verdict), check.check));
            lines.extend(check.outcome.diff.clone());
        }
        if !same.failure.answer.is_empty() {
            lines.push(format!("answer: {}", same.failure.answer));
        }
        text.push_str(&printable(&lines.join("\n")));
        text.push('\n');
    }
    text
}

fn failure(message: &str, kind: &str) -> TestCaseStatus {
    problem(NonSuccessKind::Failure, message, kind)
}

fn problem(kind: NonSuccessKind, message: &str, ty: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(one_line(message)).set_type(ty);
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(one_line(message));
    status
}
