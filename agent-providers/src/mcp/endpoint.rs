//! A server that is reached over HTTP.

use std::fmt;

use agent_core::{Error, ErrorKind, Result};
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};

use crate::{
    Secret,
    transport::{self, TimeOuts},
};

/// A server that is reached over MCP's streamable HTTP.
///
/// What is sent beside the messages is never shown: neither headers nor the URL's query.
///
/// ```
/// use agent_providers::McpEndpoint;
///
/// let server = McpEndpoint::new("https://mcp.example/mcp?tenant=7").bearer("a-token").header("x-team", "blue");
/// assert_eq!(server.to_string(), "https://mcp.example/mcp");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpEndpoint {
    url: Secret,
    headers: Vec<(String, Secret)>,
}

impl McpEndpoint {
    /// The server at this URL, its path included.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into().into(), headers: Vec::new() }
    }

    /// Sends a token in the header `Authorization` (RFC 6750).
    pub fn bearer(self, token: impl Into<Secret>) -> Self {
        let token = token.into().bearer();
        self.header(AUTHORIZATION.as_str(), token)
    }

    /// Sends a header with each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// A client that sends the headers, and the URL to send to.
    pub(super) fn to_client(&self) -> Result<(Client, String)> {
        let url = transport::read_base_url(&format!("the MCP server at {self}"), self.url.expose())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let invalid = |_| {
                let context = format!("connect to the MCP server at {self}: {name:?} is no header name");
                Error::new(ErrorKind::Invalid, context)
            };
            let name = HeaderName::try_from(name).map_err(invalid)?;
            headers.insert(name, self.header_value(value)?);
        }
        // Redirects could carry the token elsewhere. A connection whose last answer was not read to its end is not
        // used again.
        let client = Client::builder()
            .tls_backend_preconfigured(transport::tls_config(url.scheme() == "https")?)
            .redirect(Policy::none())
            .connect_timeout(TimeOuts::default().connect)
            .pool_max_idle_per_host(0)
            .user_agent(concat!("agent-providers/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .build()
            .map_err(|error| {
                let context = format!("set up HTTP for the MCP server at {self}");
                Error::new(ErrorKind::Invalid, context).with_source(error.without_url())
            })?;
        Ok((client, url.into()))
    }

    fn header_value(&self, value: &Secret) -> Result<HeaderValue> {
        transport::header_value(&format!("the MCP server at {self}"), value)
    }

    /// A text with every secret blotted out that was sent.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = text.replace(self.url.expose(), &self.to_string());
        if let Ok(url) = Url::parse(self.url.expose()) {
            text = text.replace(url.as_str(), &self.to_string());
            url.query_pairs().for_each(|(_, value)| transport::blot_out_words(&mut text, &value));
        }
        self.headers.iter().for_each(|(_, value)| transport::blot_out_words(&mut text, value.expose()));
        text
    }
}

impl From<&str> for McpEndpoint {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<String> for McpEndpoint {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

/// The URL without its query, and without a password.
impl fmt::Display for McpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.expose();
        let shown = url.split(['?', '#']).next().unwrap_or(url);
        let (scheme, rest) = shown.split_at(shown.find("://").map_or(0, |at| at + 3));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        write!(f, "{scheme}{}{path}", host.rsplit('@').next().unwrap_or(host))
    }
}

#[cfg(test)]
mod tests {
    use super::McpEndpoint;

    #[test]
    fn a_password_in_the_url_is_refused_and_not_told() {
        let endpoint = McpEndpoint::new("https://ada:lovelace@mcp.example/@a/mcp?key=babbage");
        let error = endpoint.to_client().unwrap_err();
        insta::assert_snapshot!(format!("{error:#} {endpoint:?}"), @"connect to the MCP server at https://mcp.example/@a/mcp: the base URL must not hold a password; send it as a header McpEndpoint { url: Secret(…), headers: [] }");
    }

    #[test]
    fn secrets_are_blotted_out_of_what_others_say() {
        let endpoint = McpEndpoint::new("https://mcp.example/mcp?key=charles-babbage").bearer("ada-lovelace");
        let said =
            "error for url (https://mcp.example/mcp?key=charles-babbage): ada-lovelace may not, charles-babbage may";
        insta::assert_snapshot!(endpoint.redact(said), @"error for url (https://mcp.example/mcp): [key] may not, [key] may");
    }
}
