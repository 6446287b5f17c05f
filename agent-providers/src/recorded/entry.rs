//! One recorded call: a line of a cassette.

use agent_core::{ChatResponse, ChatUpdate, Delta};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redact;

/// One recorded call. The first five fields are its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) case: String,
    pub(super) repeat: u32,
    /// Counts equal requests of one trial, from 0.
    pub(super) ordinal: u32,
    /// The model that was asked.
    pub(super) model: String,
    /// The request in its normal form.
    pub(super) request: Value,
    /// The pieces for display, in order.
    pub(super) deltas: Vec<Piece>,
    pub(super) response: ChatResponse,
}

/// A [`Delta`] in a file; the commonest is a bare string.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Piece {
    Text(String),
    Reasoning { reasoning: String },
    Arguments { call: String, arguments: String },
}

impl Entry {
    /// What a client of this answer sees.
    pub(super) fn updates(&self) -> Vec<ChatUpdate> {
        let deltas = self.deltas.iter().cloned().map(|piece| ChatUpdate::Delta(piece.into()));
        deltas.chain([ChatUpdate::Done(self.response.clone())]).collect()
    }

    /// The entry as its line, without anything that looks like a key.
    pub(super) fn line(&self) -> serde_json::Result<String> {
        let Self { case, repeat, ordinal, model, request, deltas, response } = self;
        let mut response = serde_json::to_value(response)?;
        redact::strings(&mut response);
        let response = ChatResponse::deserialize(response)?;
        let (case, model, request) = (case.clone(), model.clone(), request.clone());
        let deltas = redact::pieces(deltas);
        let entry = Self { case, repeat: *repeat, ordinal: *ordinal, model, request, deltas, response };
        Ok(serde_json::to_string(&entry)? + "\n")
    }
}

impl From<Delta> for Piece {
    fn from(delta: Delta) -> Self {
        match delta {
            Delta::Text(text) => Self::Text(text),
            Delta::Reasoning(reasoning) => Self::Reasoning { reasoning },
            Delta::ToolArguments { call_id, json } => Self::Arguments { call: call_id, arguments: json },
        }
    }
}

impl From<Piece> for Delta {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Text(text) => Self::Text(text),
            Piece::Reasoning { reasoning } => Self::Reasoning(reasoning),
            Piece::Arguments { call, arguments } => Self::ToolArguments { call_id: call, json: arguments },
        }
    }
}

impl Piece {
    /// Whether both are pieces of the same thing.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(_), Self::Text(_)) | (Self::Reasoning { .. }, Self::Reasoning { .. }) => true,
            (Self::Arguments { call: a, .. }, Self::Arguments { call: b, .. }) => a == b,
            _ => false,
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Reasoning { reasoning: text } | Self::Arguments { arguments: text, .. } => text,
        }
    }

    pub(super) fn with_text(&self, text: String) -> Self {
        match self {
            Self::Text(_) => Self::Text(text),
            Self::Reasoning { .. } => Self::Reasoning { reasoning: text },
            Self::Arguments { call, .. } => Self::Arguments { call: call.clone(), arguments: text },
        }
    }
}
