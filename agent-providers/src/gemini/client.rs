//! The client of generateContent.

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

/// A model behind Gemini's generateContent. A clone shares connections.
///
/// - Orders inside the conversation ([`Role::System`](agent_core::Role)) join the instructions: the service takes them
///   nowhere else.
/// - Where the model spoke last, the request has a user's "Continue." behind.
/// - Signatures of thoughts are sent back in their places to the model that made them. Calls by others go to Gemini 3
///   and later with the signature that the service takes for those.
#[derive(Debug, Clone)]
pub struct Gemini {
    http: Http,
    model: String,
}

impl Gemini {
    /// A model of Gemini, or of a compatible service at [`HttpOptions::base_url`] (such as `http://localhost:8080`; the
    /// path begins with `v1beta`).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](agent_core::ErrorKind::Invalid) if the options or the key cannot be used.
    pub fn new(model: impl Into<String>, key: impl Into<Secret>, options: HttpOptions) -> Result<Self> {
        let auth = (HeaderName::from_static("x-goog-api-key"), key.into());
        let http = Http::new(PROVIDER, Some("https://generativelanguage.googleapis.com"), vec![auth], options)?;
        Ok(Self { http, model: model.into() })
    }

    /// The model that the environment names: `GEMINI_MODEL` with `GEMINI_API_KEY`, at `GEMINI_BASE_URL` if that is set.
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
        let model = settings::required(PROVIDER, "GEMINI_MODEL", &look_up)?;
        let key = settings::required(PROVIDER, "GEMINI_API_KEY", &look_up)?;
        Self::new(model, key, settings::http("GEMINI_BASE_URL", &look_up))
    }

    /// The same service, asked for another model.
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }
}

impl ChatClient for Gemini {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some("gcp.gemini")
    }

    fn stream(&self, request: ChatRequest) -> BoxStream<'_, Result<ChatUpdate>> {
        let model = request.options.model.as_ref().unwrap_or(&self.model).clone();
        let call = map::body(&request, &model, self.http.service()).map(|body| Call {
            path: path(&model),
            body,
            model,
            accept: "text/event-stream",
            reader: reader(),
        });
        ask(&self.http, call)
    }
}

/// Models are resources: `models/…`, which goes without saying, or others such as `tunedModels/…`.
fn path(model: &str) -> String {
    let resource = if model.contains('/') { model.to_owned() } else { format!("models/{model}") };
    format!("v1beta/{resource}:streamGenerateContent?alt=sse")
}
