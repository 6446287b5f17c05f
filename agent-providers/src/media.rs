//! Bytes as services take them.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Standard base64 with padding.
pub(crate) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}

/// A `data:` URL (RFC 2397).
pub(crate) fn data_url(mime_type: &str, data: &[u8]) -> String {
    format!("data:{mime_type};base64,{}", base64(data))
}
