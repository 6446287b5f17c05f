//! The client of Ollama's chat.

use agent_core::{ChatClient, ChatRequest, ChatUpdate, Result};
use futures::stream::BoxStream;
use reqwest::header::AUTHORIZATION;

use super::{
    map::{self, PROVIDER},
    reader,
};
use crate::{
    HttpOptions, Secret, settings,
    transport::{Call, Http, ask},
};

/// A model behind Ollama's own protocol; by default that of this machine. A clone shares connections.
///
/// Settings of Ollama's go into `extra`, such as `{"keep_alive": "1h", "options": {"num_ctx": 8192}}`.
///
/// A conversation that is longer than the model's context is an error, where the service by itself would leave out its
/// beginning; `{"truncate": true, "shift": true}` in `extra` gives that back. Versions before 0.12 know no error.
#[derive(Debug, Clone)]
pub struct Ollama {
    http: Http,
    model: String,
}

impl Ollama {
    /// A model of the service at [`HttpOptions::base_url`]; one on this machine needs no key.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](agent_core::ErrorKind::Invalid) if the options or the key cannot be used.
    pub fn new(model: impl Into<String>, key: Option<Secret>, options: HttpOptions) -> Result<Self> {
        let auth = key.map(|key| (AUTHORIZATION, key.bearer()));
        let http = Http::new(PROVIDER, Some("http://127.0.0.1:11434"), auth.into_iter().collect(), options)?;
        Ok(Self { http, model: model.into() })
    }

    /// The model that the environment names: `OLLAMA_MODEL`, with `OLLAMA_API_KEY` and at `OLLAMA_BASE_URL` if those are
    /// set.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](agent_core::ErrorKind::Invalid) if a variable is missing or cannot be used; the message
    /// names it.
    pub fn from_env() -> Result<Self> {
        Self::from_vars(settings::env)
    }

    /// As [`from_env`](Self::from_env), with another place to look variables up.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn from_vars(look_up: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let model = settings::required(PROVIDER, "OLLAMA_MODEL", &look_up)?;
        let key = settings::optional("OLLAMA_API_KEY", &look_up).map(Secret::from);
        Self::new(model, key, settings::http("OLLAMA_BASE_URL", &look_up))
    }

    /// The same service, asked for another model.
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }
}

impl ChatClient for Ollama {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some(PROVIDER)
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let model = request.options.model.as_ref().unwrap_or(&self.model).clone();
        let call = map::body(&request, &model).map(|body| Call {
            path: "api/chat".into(),
            body,
            model,
            accept: "application/x-ndjson",
            reader: reader(),
        });
        ask(&self.http, call)
    }
}
