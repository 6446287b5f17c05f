//! Settings from the environment.

use agent_core::{Error, ErrorKind, Result};

use crate::HttpOptions;

/// Looks a variable up in the process's environment.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A variable that is set and not blank.
pub(crate) fn optional(name: &str, look_up: &impl Fn(&str) -> Option<String>) -> Option<String> {
    look_up(name).filter(|value| !value.trim().is_empty())
}

/// A variable that has to be set.
pub(crate) fn required(provider: &str, name: &str, look_up: &impl Fn(&str) -> Option<String>) -> Result<String> {
    let missing = || Error::new(ErrorKind::Invalid, format!("connect to {provider}: set the variable {name}"));
    optional(name, look_up).ok_or_else(missing)
}

/// Default options, at the base URL that a variable may name.
pub(crate) fn http(base_url: &str, look_up: &impl Fn(&str) -> Option<String>) -> HttpOptions {
    HttpOptions { base_url: optional(base_url, look_up), ..HttpOptions::default() }
}
