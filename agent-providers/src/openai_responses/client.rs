//! The client of Responses.

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

/// A model behind OpenAI's Responses, whose thoughts are encrypted and come back to it with the next request. Nothing
/// is stored at the service. A clone shares connections.
#[derive(Debug, Clone)]
pub struct OpenAiResponses {
    http: Http,
    model: String,
}

impl OpenAiResponses {
    /// A model of OpenAI, or of a compatible service at [`HttpOptions::base_url`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](agent_core::ErrorKind::Invalid) if the options or the key cannot be used.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>, options: HttpOptions) -> Result<Self> {
        let auth = (AUTHORIZATION, key.into().bearer());
        let http = Http::new(PROVIDER, Some("https://api.openai.com/v1"), vec![auth], options)?;
        Ok(Self { http, model: model.into() })
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
        let model = settings::required(PROVIDER, "OPENAI_MODEL", &look_up)?;
        let key = settings::required(PROVIDER, "OPENAI_API_KEY", &look_up)?;
        Self::new(model, key, settings::http("OPENAI_BASE_URL", &look_up))
    }

    /// The same service, asked for another model.
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }
}

impl ChatClient for OpenAiResponses {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some("openai")
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let model = request.options.model.as_ref().unwrap_or(&self.model).clone();
        let call = map::body(&request, &model, self.http.service()).map(|body| Call {
            path: "responses".into(),
            body,
            model,
            accept: "text/event-stream",
            reader: reader(),
        });
        ask(&self.http, call)
    }
}
