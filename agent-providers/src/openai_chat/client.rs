//! The client of Chat Completions.

use agent_core::{ChatClient, ChatRequest, ChatUpdate, Result};
use futures::stream::BoxStream;
use reqwest::header::AUTHORIZATION;

use super::{
    map::{self, Flavor},
    reader,
};
use crate::{
    HttpOptions, Secret, settings,
    transport::{Call, Http, ask},
};

/// A model behind OpenAI's Chat Completions, or behind a service that is compatible with them: llama.cpp, vLLM,
/// OpenRouter, Groq, Mistral, and many more. A clone shares connections.
#[derive(Debug, Clone)]
pub struct OpenAi {
    http: Http,
    model: String,
    flavor: Flavor,
}

impl OpenAi {
    /// A model of OpenAI.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](agent_core::ErrorKind::Invalid) if the options or the key cannot be used.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>, options: HttpOptions) -> Result<Self> {
        Self::with(Flavor::OpenAi, model.into(), Some(key.into()), options)
    }

    /// A model of a compatible service at `base_url`, such as `http://localhost:8080/v1`; a local one needs no key.
    ///
    /// Other than OpenAI's own, it gets the limit of the answer as `max_tokens`, and JSON Schemas as they are. Where
    /// agents spoke last, the request has a user's "Continue." behind.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn compatible(
        model: impl Into<String>,
        base_url: &str,
        key: Option<Secret>,
        options: HttpOptions,
    ) -> Result<Self> {
        let options = HttpOptions { base_url: Some(base_url.to_owned()), ..options };
        Self::with(Flavor::Compatible, model.into(), key, options)
    }

    /// The model that the environment names: `OPENAI_MODEL` with `OPENAI_API_KEY`, at `OPENAI_BASE_URL` if that is set.
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
        let model = settings::required("openai", "OPENAI_MODEL", &look_up)?;
        let key = settings::required("openai", "OPENAI_API_KEY", &look_up)?;
        Self::new(model, key, settings::http("OPENAI_BASE_URL", &look_up))
    }

    /// The same service, asked for another model.
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    fn with(flavor: Flavor, model: String, key: Option<Secret>, options: HttpOptions) -> Result<Self> {
        let auth = key.map(|key| (AUTHORIZATION, key.bearer()));
        let http = Http::new(flavor.provider(), flavor.place(), auth.into_iter().collect(), options)?;
        Ok(Self { http, model, flavor })
    }
}

impl ChatClient for OpenAi {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some("openai")
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let model = request.options.model.as_ref().unwrap_or(&self.model).clone();
        let call = map::body(&request, &model, self.flavor, self.http.service()).map(|body| Call {
            path: "chat/completions".into(),
            body,
            model,
            accept: "text/event-stream",
            reader: reader(),
        });
        ask(&self.http, call)
    }
}
