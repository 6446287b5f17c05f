//! How to reach a service.

use std::time::Duration;

use crate::Secret;

/// How to reach a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where the service is, up to the path that its protocol adds, such as `https://api.openai.com/v1`. None: the
    /// service's own.
    pub base_url: Option<String>,
    /// Headers to send with each request, name and value; they replace the client's own of the same name.
    pub headers: Vec<(String, Secret)>,
    /// How long to wait for what.
    pub time_outs: TimeOuts,
}

/// How long to wait for what. The defaults bear models that think for minutes; lower them where an answer is quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOuts {
    /// For a connection: 10 seconds.
    pub connect: Duration,
    /// From the request to the response's head: 5 minutes.
    pub head: Duration,
    /// Between any two pieces of the response: 5 minutes.
    pub idle: Duration,
    /// For the whole call, retries not included: 30 minutes.
    pub whole: Duration,
}

impl Default for TimeOuts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_mins(5),
            idle: Duration::from_mins(5),
            whole: Duration::from_mins(30),
        }
    }
}
