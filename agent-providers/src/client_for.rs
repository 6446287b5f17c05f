//! Clients by name, for command lines.

use std::sync::Arc;

use agent_core::{ChatClient, Error, ErrorKind, Result};

use crate::{Anthropic, Gemini, HttpOptions, Ollama, OpenAi, OpenAiResponses, Retry, RetryOptions, Secret, settings};

/// What a name may begin with.
const SERVICES: [&str; 6] = ["openai", "openai-responses", "openai-compatible", "anthropic", "gemini", "ollama"];

/// The client of a name such as `openai:gpt-5` or `openai-compatible:qwen`, set up by the environment (see the crate's
/// table of variables). `base_url` wins over the variable. Calls are [retried](Retry) as by default.
///
/// # Errors
/// [`ErrorKind::Invalid`] if the name is unknown (the known ones are listed) or a variable is missing.
pub fn client_for(name: &str, base_url: Option<&str>) -> Result<Arc<dyn ChatClient>> {
    client_from_vars(name, base_url, settings::env)
}

/// As [`client_for`], with another place to look variables up.
///
/// # Errors
/// As [`client_for`].
pub fn client_from_vars(
    name: &str,
    base_url: Option<&str>,
    look_up: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn ChatClient>> {
    let unknown = || {
        let known = SERVICES.map(|service| format!("`{service}:MODEL`")).join(", ");
        Error::new(
            ErrorKind::Invalid,
            format!("find the model `{name}`: name a service and a model; there are: {known}"),
        )
    };
    let (service, model) = name.split_once(':').filter(|(_, model)| !model.is_empty()).ok_or_else(unknown)?;
    let options = |variable: &str| HttpOptions {
        base_url: base_url.map(str::to_owned).or_else(|| settings::optional(variable, &look_up)),
        ..HttpOptions::default()
    };
    match service {
        "openai" => {
            let key = settings::required(service, "OPENAI_API_KEY", &look_up)?;
            Ok(retried(OpenAi::new(model, key, options("OPENAI_BASE_URL"))?))
        }
        "openai-responses" => {
            let key = settings::required(service, "OPENAI_API_KEY", &look_up)?;
            Ok(retried(OpenAiResponses::new(model, key, options("OPENAI_BASE_URL"))?))
        }
        "openai-compatible" => {
            let key = settings::optional("OPENAI_COMPATIBLE_API_KEY", &look_up).map(Secret::from);
            let base_url = match base_url {
                Some(url) => url.to_owned(),
                None => settings::required(service, "OPENAI_COMPATIBLE_BASE_URL", &look_up)
                    .map_err(|_| no_base_url(service))?,
            };
            Ok(retried(OpenAi::compatible(model, &base_url, key, HttpOptions::default())?))
        }
        "anthropic" => {
            let key = settings::required(service, "ANTHROPIC_API_KEY", &look_up)?;
            Ok(retried(Anthropic::new(model, key, options("ANTHROPIC_BASE_URL"))?))
        }
        "gemini" => {
            let key = settings::required(service, "GEMINI_API_KEY", &look_up)?;
            Ok(retried(Gemini::new(model, key, options("GEMINI_BASE_URL"))?))
        }
        "ollama" => {
            let key = settings::optional("OLLAMA_API_KEY", &look_up).map(Secret::from);
            Ok(retried(Ollama::new(model, key, options("OLLAMA_BASE_URL"))?))
        }
        _ => Err(unknown()),
    }
}

fn retried(client: impl ChatClient + 'static) -> Arc<dyn ChatClient> {
    Arc::new(Retry::new(client, RetryOptions::default()))
}

fn no_base_url(service: &str) -> Error {
    let context = format!("connect to {service}: give a base URL, or set the variable OPENAI_COMPATIBLE_BASE_URL");
    Error::new(ErrorKind::Invalid, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(set: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>();
        move |name| set.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn a_name_and_the_environment_make_a_client() {
        const HERE: &str = "http://localhost:8080/v1";
        let set = vars(&[
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_BASE_URL", HERE),
            ("OPENAI_COMPATIBLE_BASE_URL", HERE),
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", HERE),
            ("GEMINI_API_KEY", "k"),
            ("GEMINI_BASE_URL", HERE),
        ]);
        for (name, provider, model) in [
            ("openai:gpt-test", "openai", "gpt-test"),
            ("openai-responses:gpt-test", "openai", "gpt-test"),
            ("openai-compatible:org/model:free", "openai", "org/model:free"),
            ("anthropic:claude-test", "anthropic", "claude-test"),
            ("gemini:gemini-test", "gcp.gemini", "gemini-test"),
            ("ollama:qwen3:0.6b", "ollama", "qwen3:0.6b"),
        ] {
            let client = client_from_vars(name, None, &set).unwrap();
            assert_eq!((client.provider(), client.model()), (Some(provider), model));
        }
    }

    #[test]
    fn what_is_wrong_with_a_name_or_the_environment_is_said() {
        let set = vars(&[("OPENAI_API_KEY", " ")]);
        let errors = [
            ("gpt-test", None),
            ("openai:", None),
            ("closedai:gpt-test", None),
            ("openai:gpt-test", None),
            ("anthropic:m", None),
            ("gemini:m", None),
            ("openai-compatible:m", None),
            ("openai-compatible:m", Some("localhost:8080")),
            ("openai-compatible:m", Some("http://me:secret@localhost/v1")),
            ("openai-compatible:m", Some("nonsense")),
        ]
        .map(|(name, base_url)| match client_from_vars(name, base_url, &set) {
            Ok(client) => panic!("{name} is {}", client.model()),
            Err(error) => error.to_string(),
        });
        insta::assert_snapshot!(errors.join("\n"));
    }
}
