//! The client of Messages.

use agent_core::{ChatClient, ChatRequest, ChatUpdate, Result};
use futures::stream::BoxStream;
use reqwest::header::HeaderName;

use super::{
    map::{self, PROVIDER},
    reader,
};
use crate::{
    HttpOptions, Secret, settings,
    transport::{Call, Http, ask},
};

/// A model behind Anthropic's Messages, or behind a service that is compatible with them. A clone shares connections.
///
/// - The service demands a limit of the answer: without [`max_output_tokens`](agent_core::ChatOptions) it is 16384
///   tokens, and the thoughts' budget on top.
/// - Orders inside the conversation ([`Role::System`](agent_core::Role)) join the instructions, because not every model
///   takes them elsewhere.
/// - Where the model speaks twice in a row, and where it spoke last, the request has a user's "Continue." between or
///   behind: not every model goes on with its own words.
/// - Signed thoughts are sent back as they came. Some models refuse them once anything before them has changed; their
///   option `thinking.block_binding` (with the header that it needs) goes into `extra`.
#[derive(Debug, Clone)]
pub struct Anthropic {
    http: Http,
    model: String,
}

impl Anthropic {
    /// A model of Anthropic, or of a compatible service at [`HttpOptions::base_url`] (such as
    /// `http://localhost:8080`; the path begins with `v1`).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](agent_core::ErrorKind::Invalid) if the options or the key cannot be used.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>, options: HttpOptions) -> Result<Self> {
        let auth = vec![
            (HeaderName::from_static("x-api-key"), key.into()),
            (HeaderName::from_static("anthropic-version"), Secret::from("2023-06-01")),
        ];
        let http = Http::new(PROVIDER, Some("https://api.anthropic.com"), auth, options)?;
        Ok(Self { http, model: model.into() })
    }

    /// The model that the environment names: `ANTHROPIC_MODEL` with `ANTHROPIC_API_KEY`, at `ANTHROPIC_BASE_URL` if
    /// that is set.
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
        let model = settings::required(PROVIDER, "ANTHROPIC_MODEL", &look_up)?;
        let key = settings::required(PROVIDER, "ANTHROPIC_API_KEY", &look_up)?;
        Self::new(model, key, settings::http("ANTHROPIC_BASE_URL", &look_up))
    }

    /// The same service, asked for another model.
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }
}

impl ChatClient for Anthropic {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some(PROVIDER)
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let model = request.options.model.as_ref().unwrap_or(&self.model).clone();
        let call = map::body(&request, &model, self.http.service()).map(|body| Call {
            path: "v1/messages".into(),
            body,
            model,
            accept: "text/event-stream",
            reader: reader(),
        });
        ask(&self.http, call)
    }
}
