//! What the agent can look at.

use agent_core::{BoxError, Tool, ToolContext, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

const LOG: &str = include_str!("log.txt");
const METRICS: &str = include_str!("metrics.txt");
const DEPLOYS: &str = include_str!("deploys.txt");

/// A result this long is enough for a model to read.
const MAX_LINES: usize = 6;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Service {
    Checkout,
    Payments,
    Catalog,
}

impl Service {
    /// As the data spell it.
    fn name(self) -> &'static str {
        match self {
            Self::Checkout => "checkout",
            Self::Payments => "payments",
            Self::Catalog => "catalog",
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    service: Service,
    /// What the lines have in them, such as `ERROR`; all lines if it is empty.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Read {
    service: Service,
    /// `errors_pct`, `p95_ms` or `db_connections`.
    metric: String,
}

#[derive(Deserialize, JsonSchema)]
struct Deploys {
    service: Service,
}

pub(super) fn search_log() -> impl Tool {
    let description = "Finds lines in a service's log, the newest last.";
    tool_fn("search_log", description, |Search { service, text }: Search, _: ToolContext| async move {
        let found: Vec<&str> = of(LOG, service).filter(|line| line.contains(&text)).collect();
        let newest = &found[found.len().saturating_sub(MAX_LINES)..];
        let cut = if newest.len() < found.len() {
            format!("({} older lines)\n", found.len() - newest.len())
        } else {
            String::new()
        };
        if found.is_empty() { Err(BoxError::from("no such line")) } else { Ok(cut + &newest.join("\n")) }
    })
}

pub(super) fn read_metric() -> impl Tool {
    let description = "Reads a service's metric, minute by minute.";
    tool_fn("read_metric", description, |Read { service, metric }: Read, _: ToolContext| async move {
        let minutes = METRICS.lines().next().unwrap_or_default();
        let known = || of(METRICS, service).filter_map(|line| line.split_whitespace().nth(1));
        let line = of(METRICS, service).find(|line| line.split_whitespace().nth(1) == Some(metric.as_str()));
        line.map(|line| format!("{minutes}\n{line}")).ok_or_else(|| {
            let known = known().collect::<Vec<_>>().join(", ");
            BoxError::from(format!("{} has no metric `{metric}`; it has: {known}", service.name()))
        })
    })
}

pub(super) fn list_deploys() -> impl Tool {
    let description = "Lists a service's latest deploys, and what changed.";
    tool_fn("list_deploys", description, |Deploys { service }: Deploys, _: ToolContext| async move {
        Ok(of(DEPLOYS, service).collect::<Vec<_>>().join("\n"))
    })
}

/// The lines about a service: those that begin with its name.
fn of(data: &'static str, service: Service) -> impl Iterator<Item = &'static str> {
    data.lines().filter(move |line| line.starts_with(service.name()))
}
