//! Answers as values.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Agent, AgentExt, AgentResponse, Error, ErrorKind, Format, Result, RunContext, Session, unfenced};

/// A run's answer as a value, and the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed<T> {
    /// The answer.
    pub value: T,
    /// The run that gave it.
    pub response: AgentResponse,
}

/// Runs an agent that is to answer with a `T` as JSON, and reads its last text as one.
///
/// A [`ChatAgent`](crate::ChatAgent) sends the schema of `T` to its model; other agents find it in
/// [`RunContext::format`].
///
/// # Errors
/// The run's; [`ErrorKind::Invalid`] if it ended with anything but [`Completed`](crate::StopReason::Completed) (the
/// source is an [`Unfinished`](crate::Unfinished) with the response) or if its text is no `T`.
pub async fn run_typed<T: JsonSchema + DeserializeOwned>(
    agent: &(impl Agent + ?Sized),
    session: &mut Session,
    cx: &RunContext,
) -> Result<Typed<T>> {
    let response = agent.complete(session, &cx.with_format(Format::of::<T>())).await?.accepted()?;
    let text = response.text();
    let value = serde_json::from_str(unfenced(&text)).map_err(|source| {
        let context = format!("read the answer of `{}` as {}: {}", agent.info().name, T::schema_name(), excerpt(&text));
        Error::new(ErrorKind::Invalid, context).with_source(source)
    })?;
    Ok(Typed { value, response })
}

fn excerpt(text: &str) -> String {
    const LONGEST: usize = 200; // characters; enough to recognize an answer in a log line
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
