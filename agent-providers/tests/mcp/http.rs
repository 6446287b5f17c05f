//! Servers over streamable HTTP.
