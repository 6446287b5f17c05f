//! A task: what a case says about a function that is to be written.

use agent_core::{Error, ErrorKind, Result};
use agent_eval::{EvalCase, Input};

/// What a call must come to, as Rust expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) call: String,
    pub(super) expected: String,
}

/// A function that is to be written, and its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) id: String,
    /// How the function begins, as the case says it.
    pub(super) signature: String,
    /// The tests whose failures the writer is told.
    pub(super) visible: Vec<Example>,
    /// The tests that only judge.
    pub(super) hidden: Vec<Example>,
}

impl Task {
    /// The task of a case: `metadata` lists its tests as `CALL => EXPECTED`.
    pub(super) fn of(case: &EvalCase) -> Result<Self> {
        let Input::Text(text) = &case.input else { return Err(invalid(case, "its input is not a text")) };
        let signature = text.lines().next().unwrap_or_default().to_owned();
        Ok(Self {
            id: case.id.clone(),
            signature,
            visible: examples(case, "visible")?,
            hidden: examples(case, "hidden")?,
        })
    }

    /// The function's name.
    pub(super) fn function(&self) -> &str {
        let name = self.signature.trim_start_matches("fn ");
        name.split(['(', '<']).next().unwrap_or_default()
    }
}

fn examples(case: &EvalCase, which: &str) -> Result<Vec<Example>> {
    let list = case.metadata.get(which).and_then(|list| list.as_array()).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| invalid(case, &format!("list its tests in `metadata.{which}`")))?;
    list.iter()
        .map(|example| {
            let (call, expected) = example.as_str().and_then(|text| text.rsplit_once(" => ")).ok_or_else(|| {
                invalid(case, &format!("write the test {example} of `metadata.{which}` as `CALL => EXPECTED`"))
            })?;
            Ok(Example { call: call.to_owned(), expected: expected.to_owned() })
        })
        .collect()
}

fn invalid(case: &EvalCase, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("read the task of case `{}`: {what}", case.id))
}
