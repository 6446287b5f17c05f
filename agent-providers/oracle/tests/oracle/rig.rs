//! The other clients.

use std::sync::Arc;

use rig_core::{
    ProviderError,
    completion::{CompletionRequest, CompletionResponse},
    providers::{anthropic::AnthropicConfig, gemini::GeminiConfig, ollama::OllamaConfig, openai::OpenAIConfig},
};
use rig_reqwest::ReqwestClient;
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::protocols::KEY;

/// What rig's client of a protocol makes of the answer at `url`.
pub(crate) async fn ask(protocol: &str, url: &str) -> Result<CompletionResponse, ProviderError> {
    // Anthropic's protocol demands a limit.
    let request = CompletionRequest::new("Add twice.").max_tokens(1000);
    let stream = match protocol {
        "openai-chat" => OpenAIConfig::new(KEY).with_base_url(url).connect(http()).chat("gpt-test").stream(request),
        "openai-responses" => {
            OpenAIConfig::new(KEY).with_base_url(url).connect(http()).responses("gpt-test").stream(request)
        }
        "anthropic" => {
            AnthropicConfig::new(KEY).with_base_url(url).connect(http()).completion("claude-test").stream(request)
        }
        "gemini" => GeminiConfig::new(KEY).with_base_url(url).connect(http()).completion("gemini-test").stream(request),
        "ollama" => {
            OllamaConfig::new().with_base_url(url).connect(http()).native_completion("qwen-test").stream(request)
        }
        _ => panic!("{protocol}: name rig's client of this protocol"),
    };
    stream?.finish().await
}

/// HTTP without a look at the system's certificates, which may be missing.
fn http() -> ReqwestClient {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap().into()
}
