//! What a program tells the command about itself.

use std::{path::PathBuf, sync::Arc};

use agent_core::{ChatClient, Result};

use crate::{CassetteMode, EvalSet, Subject};

/// A program's subjects and models, for the command that evaluates them.
pub trait Project: Send + Sync {
    /// The names of the subjects, for listings and errors. A set names its subject; its own name stands for it if not.
    fn subjects(&self) -> Vec<&str>;

    /// The subject of this name; `None` if there is none. Making it asks no model.
    ///
    /// # Errors
    /// What keeps it from being made: an unknown model, a missing cassette.
    fn subject(&self, name: &str, set: &EvalSet, source: &ModelSource) -> Result<Option<Box<dyn Subject>>>;

    /// The client of a model by its name on the command line, `PROVIDER:NAME`, for judges.
    ///
    /// # Errors
    /// If the name or its settings do not do; the error lists the known ones.
    fn client(&self, model: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>>;
}

/// Where the answers of a subject's models come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSource {
    /// The model to ask, `PROVIDER:NAME`; the subject's own if absent.
    pub model: Option<String>,
    /// Where the model's service is.
    pub base_url: Option<String>,
    /// Whether models are asked, or their recorded answers replayed.
    pub cassettes: CassetteMode,
    /// The folder of the set's file; its cassette is in it.
    pub dir: PathBuf,
}
