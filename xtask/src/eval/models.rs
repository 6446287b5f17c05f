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
pub(crate) struct Models {
    live: Option<Arc<dyn ChatClient>>,
    cassette: Option<Recorded>,
}

impl Models {
    pub(crate) fn new(source: &ModelSource) -> Result<Self> {
        let live = source.model.as_deref().map(|model| client_for(model, source.base_url.as_deref())).transpose()?;
        let path = source.dir.join(CASSETTE);
        if source.cassettes == CassetteMode::Replay && !path.exists() {
            let context = format!(
                "replay {}: it is not there; record it with `--record --model PROVIDER:NAME`, or ask with `--live`",
                path.display()
            );
            return Err(Error::new(ErrorKind::Invalid, context));
        }
        let cassette = match source.cassettes {
            CassetteMode::Live => None,
            // What is there stays: a recording that was broken off goes on, and one case can be added.
            CassetteMode::Record => Some(Recorded::open(path, agent_providers::CassetteMode::RecordMissing)?),
            CassetteMode::Replay => Some(Recorded::open(path, agent_providers::CassetteMode::Replay)?),
        };
        if live.is_none() && source.cassettes != CassetteMode::Replay {
            let context = "ask a model: none is named; add `--model PROVIDER:NAME`, set AGENT_MODEL, or replay what was recorded";
            return Err(Error::new(ErrorKind::Invalid, context));
        }
        Ok(Self { live, cassette })
    }

    /// The model's name, for the fingerprint: the one that is asked, or else the one that was recorded.
    pub(crate) fn name(&self) -> Option<String> {
        match (&self.live, &self.cassette) {
            (Some(client), _) => Some(client.model().to_owned()),
            (None, Some(cassette)) => Some(cassette.models().into_iter().collect::<Vec<_>>().join(", ")),
            (None, None) => None,
        }
    }

    /// The client of one trial.
    pub(crate) fn client(&self, trial: &TrialSpec<'_>) -> Result<Arc<dyn ChatClient>> {
        let case = trial.key.case.clone();
        match (&self.cassette, &self.live) {
            (None, Some(live)) => Ok(live.clone()),
            (Some(cassette), Some(live)) if trial.cassettes == CassetteMode::Record => {
                Ok(Arc::new(cassette.trial(case, trial.key.repeat, live.clone())))
            }
            (Some(cassette), Some(live)) => {
                let client = cassette.trial(case, trial.key.repeat, live.clone());
                Ok(Arc::new(Counted { client, hits: trial.cassette_hits.clone() }))
            }
            (Some(cassette), None) => {
                let client = cassette.replay_trial(case, trial.key.repeat);
                Ok(Arc::new(Counted { client, hits: trial.cassette_hits.clone() }))
            }
            (None, None) => Err(Error::new(ErrorKind::Contract, "make the client of a trial: there is no model")),
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
