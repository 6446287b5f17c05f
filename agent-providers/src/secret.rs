//! Keys that never print.

use std::{fmt, sync::Arc};

/// A key, a token or another header value that no log may show: its `Debug` says nothing, and it has no `Display`.
///
/// ```
/// let key = agent_providers::Secret::from("sk-very-secret");
/// assert_eq!(format!("{key:?}"), "Secret(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The value, for the header that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The key as the value of an `Authorization` header (RFC 6750).
    pub(crate) fn bearer(&self) -> Self {
        Self(format!("Bearer {}", self.0).into())
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.trim().into())
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::from(value.as_str())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
