//! Reports as JSON.

use agent_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExitRules, REPORT_SCHEMA, Report, RunVerdict};

/// A report with the verdict that was made of it, for readers that do not know the rules.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Judged<'a> {
    /// The one verdict on the run.
    verdict: RunVerdict,
    /// The exit code of a process with this verdict.
    exit_code: u8,
    #[serde(flatten)]
    report: &'a Report,
}

impl Report {
    /// As JSON, pretty and with a line feed at the end: the report's fields (version [`REPORT_SCHEMA`]) beside
    /// `verdict` and `exit_code`. Equal reports give equal texts.
    #[expect(clippy::missing_panics_doc, reason = "a report is always JSON")]
    pub fn to_json(&self, rules: &ExitRules) -> String {
        let verdict = self.verdict(rules);
        let judged = Judged { exit_code: verdict.exit_code(), verdict, report: self };
        let mut text = serde_json::to_string_pretty(&judged).expect("a report has string keys only");
        text.push('\n');
        text
    }

    /// Reads what [`to_json`](Self::to_json) wrote. The verdict is not read: it is made anew of the report.
    ///
    /// # Errors
    /// If it is no report, or one of another version.
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            schema: Option<String>,
        }
        let failed = |error| Error::new(ErrorKind::Invalid, "parse a report").with_source(error);
        let Version { schema } = serde_json::from_str(text).map_err(failed)?;
        if schema.as_deref() != Some(REPORT_SCHEMA) {
            let found = schema.map_or("it has no `schema`".to_owned(), |schema| format!("it is `{schema}`"));
            let context = format!("parse a report: {found}, not `{REPORT_SCHEMA}`; make it anew from its run");
            return Err(Error::new(ErrorKind::Invalid, context));
        }
        serde_json::from_str(text).map_err(failed)
    }
}
