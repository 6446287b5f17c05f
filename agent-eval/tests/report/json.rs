//! Reports that are written and read.

use agent_eval::{ExitRules, Report};

use crate::sample::{rich, tolerated};

#[test]
fn a_report_is_read_as_it_was_written() {
    for report in [rich(), tolerated()] {
        let text = report.to_json(&ExitRules::default());
        let read = Report::from_json(&text).unwrap();
        assert_eq!(read, report);
        assert_eq!(read.to_json(&ExitRules::default()), text);
    }
}

#[test]
fn the_json_of_a_run() {
    insta::assert_snapshot!(tolerated().to_json(&ExitRules::default()));
}

#[test]
fn what_is_no_report_of_this_version_is_refused() {
    let texts = ["", "[]", "{}", r#"{"schema":"agent-eval-report/9"}"#, r#"{"schema":"agent-eval-report/1"}"#];
    let errors = texts.map(|text| format!("{:#}", Report::from_json(text).unwrap_err()));
    insta::assert_snapshot!(errors.join("\n"), @"
    parse a report: EOF while parsing a value at line 1 column 0
    parse a report: invalid length 0, expected struct Version with 1 element at line 1 column 2
    parse a report: it has no `schema`, not `agent-eval-report/1`; make it anew from its run
    parse a report: it is `agent-eval-report/9`, not `agent-eval-report/1`; make it anew from its run
    parse a report: missing field `manifest` at line 1 column 32
    ");
}
