//! The models of a set's trials: live, recorded, or replayed from the set's cassette.

use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use agent_core::{ChatClient, ChatRequest, ChatUpdate, Error, ErrorKind, Result};
use agent_eval::{CassetteMode, ModelSource, SetupError, TrialSpec};
use agent_providers::{NotRecorded, Recorded, client_for};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};

/// The cassette of a set: in a folder beside its file, since every other JSON Lines file there holds cases.
pub(crate) const CASSETTE: &str = "cassettes/answers.jsonl";

/// Where the clients of trials come from. A clone is the same.
#[derive(Clone)]
pub(crate) enum Models {
    Live(Arc<dyn ChatClient>),
    Record(Recorded, Arc<dyn ChatClient>),
    /// Of this model, or of whichever was recorded.
    Replay(Recorded, Option<Arc<dyn ChatClient>>),
}

impl Models {
    pub(crate) fn new(source: &ModelSource) -> Result<Self> {
        let model = source.model.as_deref().map(|model| client_for(model, source.base_url.as_deref())).transpose()?;
        let path = source.dir.join(CASSETTE);
        let invalid = |context: String| Error::new(ErrorKind::Invalid, context);
        let named = || {
            let context = "ask a model: none is named; add `--model PROVIDER:NAME`, set AGENT_MODEL, or replay what was \
                           recorded";
            model.clone().ok_or_else(|| invalid(context.to_owned()))
        };
        match source.cassettes {
            CassetteMode::Live => Ok(Self::Live(named()?)),
            CassetteMode::Record => {
                let model = named()?;
                // What is there stays: a recording that was broken off goes on, and one case can be added.
                Ok(Self::Record(Recorded::open(path, agent_providers::CassetteMode::RecordMissing)?, model))
            }
            CassetteMode::Replay if !path.exists() => Err(invalid(format!(
                "replay {}: it is not there; record it with `--record --model PROVIDER:NAME`, or ask with `--live`",
                path.display()
            ))),
            CassetteMode::Replay => {
                Ok(Self::Replay(Recorded::open(path, agent_providers::CassetteMode::Replay)?, model))
            }
        }
    }

    /// The model's name, for the fingerprint: the one that is asked, or else the one that was recorded.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Live(model) | Self::Record(_, model) | Self::Replay(_, Some(model)) => model.model().to_owned(),
            Self::Replay(cassette, None) => cassette.models().into_iter().collect::<Vec<_>>().join(", "),
        }
    }

    /// The client of one trial.
    pub(crate) fn client(&self, trial: &TrialSpec<'_>) -> Arc<dyn ChatClient> {
        let (case, repeat) = (trial.key.case.clone(), trial.key.repeat);
        let counted = |client| Arc::new(Counted { client, hits: trial.cassette_hits.clone() });
        match self {
            Self::Live(model) => model.clone(),
            Self::Record(cassette, model) => Arc::new(cassette.trial(case, repeat, model.clone())),
            Self::Replay(cassette, Some(model)) => counted(cassette.trial(case, repeat, model.clone())),
            Self::Replay(cassette, None) => counted(cassette.replay_trial(case, repeat)),
        }
    }
}

/// Counts the answers that come from a cassette.
struct Counted<C> {
    client: C,
    hits: Arc<AtomicU32>,
}

impl<C: ChatClient> ChatClient for Counted<C> {
    fn model(&self) -> &str {
        self.client.model()
    }

    fn provider(&self) -> Option<&str> {
        self.client.provider()
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        self.hits.fetch_add(1, Ordering::Relaxed);
        self.client.stream(request).map_err(as_setup).boxed()
    }
}

/// An answer that was not recorded is neither the agent's fault nor a service's.
fn as_setup(error: Error) -> Error {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    match causes.into_iter().find(|cause| cause.is::<NotRecorded>()) {
        Some(why) => {
            let why = SetupError::new(format!("{why} (`--record` does)"));
            Error::new(ErrorKind::Invalid, error.to_string()).with_source(why)
        }
        None => error,
    }
}
