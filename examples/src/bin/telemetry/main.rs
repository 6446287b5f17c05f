//! The spans of a run, sent to an OpenTelemetry collector, or shown as a tree.

mod tree;

use std::{
    env,
    process::ExitCode,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use agent_core::{
    AgentResponse, BoxError, ChatAgent, ChatAgentOptions, ChatMessage, Error, ErrorKind, MemoryStore, Result,
    RunContext, Runner, StopReason, Tool, ToolContext, ToolOutput, tool_fn,
};
use agent_examples::{ModelArgs, repeatable};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use anstream::{print, println};
use clap::Parser;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use serde_json::Value;
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::tree::Tree;

/// Runs a loop, and sends its spans to the collector at `OTEL_EXPORTER_OTLP_ENDPOINT`, such as
/// `http://127.0.0.1:4318`. Without one it shows them as a tree.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
    /// Put what is said into the spans, too: prompts, answers, arguments and results.
    #[arg(long)]
    content: bool,
}

/// A tool that does not work at first, as those behind networks do.
fn almanac() -> impl Tool {
    let asked = AtomicU32::new(0);
    tool_fn("almanac", "Tells when a lighthouse was built.", move |_: Value, _: ToolContext| {
        let first = asked.fetch_add(1, Relaxed) == 0;
        async move { if first { Err(BoxError::from("the almanac is closed")) } else { Ok(ToolOutput::text("1823")) } }
    })
}

async fn run(cli: &Cli) -> Result<StopReason> {
    let model = cli.model.scripted(include_str!("script.jsonl"), "telemetry")?;
    let options = ChatAgentOptions {
        instructions: "Look things up in the almanac. Answer in one sentence.".into(),
        chat: repeatable(),
        ..Default::default()
    };
    let writer = ChatAgent::new("writer", model, options).tool(almanac());
    let has_year = evaluate_fn("has_year", |cx| {
        if cx.last.text().contains("18") {
            LoopEvaluation::Satisfied
        } else {
            LoopEvaluation::feedback("Name the year. Try the almanac once more.")
        }
    });
    let agent = LoopAgent::new("research", writer, LoopOptions::default()).evaluator(has_year);

    let cx = RunContext::default();
    let cx = if cli.content { cx.with_content_in_spans() } else { cx };
    let question = ChatMessage::user("When was the lighthouse of Skarven built?");
    let response = AgentResponse::collect(Runner::new(agent, MemoryStore::new()).run("demo", question, cx)).await?;
    println!("{}\n\nstop: {}", response.text(), response.stop);
    Ok(response.stop)
}

/// The spans' way out: to a collector, if there is one.
fn exporter(builder: opentelemetry_sdk::trace::TracerProviderBuilder, tree: &Tree) -> Result<SdkTracerProvider> {
    // These are the variables that OpenTelemetry defines; the exporter reads them.
    let collector = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    if !collector.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(builder.with_simple_exporter(tree.clone()).build());
    }
    // Fails only if the process has chosen its cryptography already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let otlp = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build();
    let otlp = otlp.map_err(|error| Error::new(ErrorKind::Invalid, "set up the OTLP exporter").with_source(error))?;
    Ok(builder.with_batch_exporter(otlp).build())
}

fn observed(cli: &Cli) -> Result<StopReason> {
    let tree = Tree::default();
    let resource = Resource::builder().with_service_name("agent-examples").build();
    let provider = exporter(SdkTracerProvider::builder().with_resource(resource), &tree)?;
    let spans = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("agent-examples"))
        .with_location(false)
        .with_target(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    // The exporter has spans of its own, which would be exported with spans of their own …
    let ours = Targets::new().with_targets(["agent_core", "agent_loop"].map(|name| (name, tracing::Level::INFO)));
    tracing_subscriber::registry().with(spans.with_filter(ours)).init();

    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| Error::new(ErrorKind::Invalid, "start a runtime").with_source(error))?;
    let end = runtime.block_on(run(cli));
    let sent = provider.force_flush().and_then(|()| provider.shutdown());
    sent.map_err(|error| Error::new(ErrorKind::Invalid, "send the spans to the collector").with_source(error))?;
    print!("{tree}");
    end
}

fn main() -> ExitCode {
    agent_examples::exit(observed(&Cli::parse()))
}
