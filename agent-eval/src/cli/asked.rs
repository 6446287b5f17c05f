//! What a run was asked for: it is kept with the run, which goes on with the same.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    codes::{Fault, Outcome},
    place::{ASKED, name_of, write},
    sets::Which,
    settings::{Settings, Verdicts},
};
use crate::{CassetteMode, ModelSource, Project, RunLog, RunOptions};

/// What was asked for, kept with the run: it goes on with the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) substrings: Vec<String>,
    pub(super) filters: Vec<String>,
    pub(super) partition: Option<String>,
    pub(super) settings: Settings,
    pub(super) verdicts: Verdicts,
}

impl Asked {
    pub(super) fn which(&self) -> Which {
        let Self { substrings, filters, partition, .. } = self.clone();
        Which { substrings, filters, partition }
    }

    pub(super) fn source(&self) -> ModelSource {
        let Settings { model, base_url, .. } = self.settings.clone();
        ModelSource { model, base_url, cassettes: self.settings.mode(), dir: PathBuf::new() }
    }

    /// All that follows from what was asked for alone.
    pub(super) fn options(&self, project: &dyn Project) -> Outcome<RunOptions> {
        let settings = &self.settings;
        let default = RunOptions::default();
        let jobs = match settings.jobs {
            None => default.concurrency,
            Some(jobs) => NonZeroUsize::new(jobs)
                .ok_or_else(|| Fault::setup("run 0 trials at once: nothing would be run; give at least 1"))?,
        };
        let judge = settings.judge.as_ref().map(|judge| project.client(judge, settings.judge_base_url.as_deref()));
        Ok(RunOptions {
            repeats: settings.repeats()?,
            concurrency: jobs,
            seed: settings.seed.unwrap_or(default.seed),
            retries: settings.retries.unwrap_or(default.retries),
            timeout: settings.timeout()?,
            max_tokens: settings.max_tokens,
            fail_fast: settings.fail_fast.unwrap_or(default.fail_fast),
            gold_scorers: settings.gold_scorers.unwrap_or(default.gold_scorers),
            judge: judge.transpose()?,
            judge_repeats: settings.judge_repeats.unwrap_or(default.judge_repeats),
            cassettes: settings.mode(),
            ..default
        })
    }

    pub(super) fn keep(&self, dir: &Path) -> Outcome<()> {
        let mut kept = self.clone();
        // What stands before an `@` may be a password.
        let is_safe = |url: &String| !url.contains('@');
        kept.settings.base_url = kept.settings.base_url.filter(is_safe);
        kept.settings.judge_base_url = kept.settings.judge_base_url.filter(is_safe);
        if RunLog::open(dir).is_ok() {
            let what = "there is one of this name; `--resume` it, or take another name";
            return Err(Fault::setup(format!("begin run `{}`: {what}", name_of(dir))));
        }
        let text = serde_json::to_string_pretty(&kept).map_err(|error| Fault::setup(error.to_string()))?;
        write(&dir.join(ASKED), &(text + "\n"))
    }

    pub(super) fn of(dir: &Path) -> Outcome<Self> {
        let path = dir.join(ASKED);
        let failed = |error: &dyn std::fmt::Display| {
            Fault::setup(format!("go on with run `{}`: read {}: {error}", name_of(dir), path.display()))
        };
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        serde_json::from_str(&text).map_err(|error| failed(&error))
    }
}

/// `AGENT_MODEL` names the model that is asked. It changes no replay: what is replayed is what was recorded.
pub(super) fn with_model(settings: Settings) -> Settings {
    let named = || std::env::var("AGENT_MODEL").ok().filter(|model| !model.is_empty());
    let model = match settings.mode() {
        CassetteMode::Replay => settings.model,
        CassetteMode::Live | CassetteMode::Record => settings.model.or_else(named),
    };
    Settings { model, ..settings }
}
