//! A word that says "done".

use agent_core::Result;
use async_trait::async_trait;

use crate::{LoopContext, LoopEvaluation, LoopEvaluator};

/// `completion_marker`: satisfied when the answer's text contains a marker. The agent's instructions have to ask for
/// it; the feedback reminds of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionMarker {
    marker: String,
    at_end: bool,
    template: String,
}

const TEMPLATE: &str = "The work is not done yet: your answer does not contain `{marker}`. Go on, and write `{marker}` \
                        once everything is done.";
const TEMPLATE_AT_END: &str = "The work is not done yet: your answer does not end with `{marker}`. Go on, and end your \
                               answer with `{marker}` once everything is done.";

impl CompletionMarker {
    /// Satisfied by an answer that contains this text. An empty marker is in every answer.
    pub fn new(marker: impl Into<String>) -> Self {
        Self { marker: marker.into(), at_end: false, template: TEMPLATE.to_owned() }
    }

    /// The answer must end with the marker, white space apart: prose about the marker does not count.
    pub fn at_end(mut self) -> Self {
        self.at_end = true;
        if self.template == TEMPLATE {
            TEMPLATE_AT_END.clone_into(&mut self.template);
        }
        self
    }

    /// The feedback; `{marker}` and `{last_response}` in it are filled in, once.
    pub fn template(mut self, text: impl Into<String>) -> Self {
        self.template = text.into();
        self
    }

    fn feedback(&self, answer: &str) -> String {
        let mut text = String::new();
        let mut rest = self.template.as_str();
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let fills = [("{marker}", self.marker.as_str()), ("{last_response}", answer)];
            if let Some((name, value)) = fills.into_iter().find(|(name, _)| rest.starts_with(name)) {
                text.push_str(value);
                rest = &rest[name.len()..];
            } else {
                text.push('{');
                rest = &rest[1..];
            }
        }
        text.push_str(rest);
        text
    }
}

#[async_trait]
impl LoopEvaluator for CompletionMarker {
    fn name(&self) -> &'static str {
        "completion_marker"
    }

    async fn evaluate(&self, cx: &LoopContext<'_>) -> Result<LoopEvaluation> {
        let answer = cx.last.text();
        let found = if self.at_end {
            answer.trim_end().ends_with(self.marker.trim_end())
        } else {
            answer.contains(&self.marker)
        };
        Ok(if found { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback(self.feedback(&answer)) })
    }
}
