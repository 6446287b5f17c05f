//! What is evaluated.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU32},
};

use agent_core::{Agent, Result};
use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CassetteMode, Check, EvalCase, TrialKey};

/// Makes the agent of each trial, so that each has its own clients, cassettes and files.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The agent of one trial.
    ///
    /// # Errors
    /// What keeps it from being made; the trial is then an infrastructure error.
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>>;

    /// What the agents are made of (models, options, versions), for the manifest; it must hold no secret.
    fn fingerprint(&self) -> Value {
        Value::Null
    }

    /// The loop whose iterations are judged; if none is named, the outermost one. Of a loop that runs several times in
    /// a trial, the iterations are one list, and those of a turn that is not the last do not count.
    fn loop_name(&self) -> Option<&str> {
        None
    }

    /// A check of the subject's own, named in a set's file as `custom`. `None`: there is none of this name.
    ///
    /// # Errors
    /// Why the arguments do not do.
    fn check(&self, name: &str, args: &Value) -> Result<Option<Arc<dyn Check>>> {
        let _ = (name, args);
        Ok(None)
    }
}

/// What is wrong with how a trial was set up, and is neither its agent's fault nor a service's: an answer that was not
/// recorded. Among the causes of a trial's error it makes the run one that cannot be judged
/// ([`RunVerdict::BadSetup`](crate::RunVerdict::BadSetup)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError(String);

impl SetupError {
    /// What is wrong, and what to do.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// One trial that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct TrialSpec<'a> {
    /// Which trial.
    pub key: &'a TrialKey,
    /// The case.
    pub case: &'a EvalCase,
    /// Derived from the run's seed and the key: the same for the same trial in every run.
    pub seed: u64,
    /// Where the answers of its models come from.
    pub cassettes: CassetteMode,
    /// To be raised by one for each answer that came from a cassette.
    pub cassette_hits: &'a Arc<AtomicU32>,
}

/// A subject from a function.
///
/// The function makes the agent of one trial.
pub fn subject_fn<F>(f: F) -> impl Subject
where
    F: for<'a> Fn(&'a TrialSpec<'a>) -> BoxFuture<'a, Result<Arc<dyn Agent>>> + Send + Sync,
{
    SubjectFn(f)
}

struct SubjectFn<F>(F);

#[async_trait]
impl<F> Subject for SubjectFn<F>
where
    F: for<'a> Fn(&'a TrialSpec<'a>) -> BoxFuture<'a, Result<Arc<dyn Agent>>> + Send + Sync,
{
    async fn agent(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn Agent>> {
        (self.0)(trial).await
    }
}
