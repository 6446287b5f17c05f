//! What a run was asked for: it is kept with the run, which goes on with the same.

use std::path::{Path, PathBuf};

use agent_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{
    codes::{Fault, Outcome},
    place::{ASKED, name_of},
    sets::Which,
    settings::{Settings, Verdicts},
};
use crate::{CassetteMode, ModelSource, Project, RunOptions, file::write_whole};

/// What was asked for, kept with the run: it goes on with the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) substrings: Vec<String>,
    pub(super) filters: Vec<String>,
    pub(super) partition: Option<String>,
    pub(super) settings: Settings,
    pub(super) verdicts: Verdicts,
    /// What was asked for, too, and is not kept, for it may have a secret in it: the options' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) withheld: Vec<String>,
}

const BASE_URL: &str = "--base-url";
const JUDGE_BASE_URL: &str = "--judge-base-url";

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
        let judge = settings.judge.as_ref().map(|judge| project.client(judge, settings.judge_base_url.as_deref()));
        Ok(RunOptions {
            repeats: settings.repeats()?,
            concurrency: settings.jobs()?.unwrap_or(default.concurrency),
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

    pub(super) fn keep(&self, dir: &Path) -> Result<()> {
        let mut kept = self.clone();
        // What stands before an `@` may be a password, and a query may have a key.
        let is_secret = |url: &mut String| url.contains(['@', '?']);
        let Settings { base_url, judge_base_url, .. } = &mut kept.settings;
        let urls = [(BASE_URL, base_url), (JUDGE_BASE_URL, judge_base_url)];
        let withheld = urls.into_iter().filter_map(|(name, url)| url.take_if(is_secret).map(|_| name.to_owned()));
        kept.withheld = withheld.collect();
        let path = dir.join(ASKED);
        let failed = |error| Error::new(ErrorKind::Store, format!("write {}", path.display())).with_source(error);
        let text = serde_json::to_string_pretty(&kept).map_err(|error| failed(error.into()))?;
        write_whole(&path, &(text + "\n")).map_err(failed)
    }

    /// The same with these settings, for a run that goes on. What was withheld must be among them: without it, another
    /// service would be asked.
    pub(super) fn with(self, settings: Settings, verdicts: Verdicts, dir: &Path) -> Outcome<Self> {
        let given = [(BASE_URL, &settings.base_url), (JUDGE_BASE_URL, &settings.judge_base_url)];
        let mut lost = given.iter().filter(|(name, url)| url.is_none() && self.withheld.iter().any(|of| of == name));
        if let Some((name, _)) = lost.next() {
            let what = format!("its `{name}` may have a secret in it, and was not kept; give it again");
            return Err(Fault::setup(format!("go on with run `{}`: {what}", name_of(dir))));
        }
        Ok(Self { settings: settings.or(self.settings), verdicts: verdicts.or(self.verdicts), ..self })
    }

    pub(super) fn of(dir: &Path) -> Outcome<Self> {
        let path = dir.join(ASKED);
        let failed = |error: &dyn std::fmt::Display| {
            Fault::setup(format!(
                "go on with run `{}`: read {}: {error}; begin a new run",
                name_of(dir),
                path.display()
            ))
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
