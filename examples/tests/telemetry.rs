//! The example `telemetry`: what it shows, and what a collector gets from it.

mod support;

use std::{
    env,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use support::{example, transcript};

const TELEMETRY: &str = env!("CARGO_BIN_EXE_telemetry");

fn telemetry() -> Command {
    let mut command = example(TELEMETRY);
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command
}

#[test]
fn the_spans_are_a_tree_without_words() {
    insta::assert_snapshot!(transcript(&mut telemetry()), @"
    The lighthouse of Skarven was built in 1823.

    stop: completed

    spans:
      run research  gen_ai.conversation.id=demo  agent.stop_reason=Completed
        invoke_agent research  agent.stop_reason=Completed
          iteration research#1  agent.stop_reason=Completed  agent.loop.decided_by=has_year
            invoke_agent writer  agent.stop_reason=Completed
              chat hand-written script  agent.step=1  gen_ai.response.finish_reasons=tool_call
              execute_tool almanac  gen_ai.tool.call.id=call_1_1  error.type=tool_error
              chat hand-written script  agent.step=2  gen_ai.response.finish_reasons=stop
            evaluate has_year  gen_ai.evaluation.score.label=continue
          iteration research#2  agent.stop_reason=Completed
            invoke_agent writer  agent.stop_reason=Completed
              chat hand-written script  agent.step=1  gen_ai.response.finish_reasons=tool_call
              execute_tool almanac  gen_ai.tool.call.id=call_1_1
              chat hand-written script  agent.step=2  gen_ai.response.finish_reasons=stop
            evaluate has_year  gen_ai.evaluation.score.label=satisfied
    --- code 0
    ");
}

#[test]
fn the_readme_shows_what_it_prints() {
    let printed = String::from_utf8(telemetry().output().unwrap().stdout).unwrap();
    assert!(include_str!("../README.md").contains(&printed), "not in README.md:\n{printed}");
}

#[test]
fn the_spans_have_the_words_if_asked() {
    let printed = transcript(telemetry().arg("--content"));
    let said = [
        "Look things up",
        "When was the lighthouse",
        "the almanac is closed",
        "Name the year",
        "{\"lighthouse\":\"Skarven\"}",
    ];
    let (_, spans) = printed.split_once("\nspans:\n").unwrap();
    let missing: Vec<&&str> = said.iter().filter(|text| !spans.contains(**text)).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "{spans}");
}

#[test]
fn a_collector_that_is_not_there_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = telemetry().env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("error: send the spans to the collector"), "{said}");
}

/// A collector of another make understands what is sent. It is `oteltap`, a Python package.
#[test]
fn a_collector_gets_the_spans() {
    let Some(oteltap) = oteltap() else {
        println!("skipped: there is no oteltap on PATH, and OTELTAP names none");
        return;
    };
    for span in ["^run research$", "^iteration research#2$", "^chat hand-written script$", "^execute_tool almanac$"] {
        let collector = Collector::start(&oteltap, span);
        let sent = transcript(telemetry().env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint));
        assert_eq!(sent, "The lighthouse of Skarven was built in 1823.\n\nstop: completed\n--- code 0\n");
        collector.awaited();
    }
}

fn oteltap() -> Option<PathBuf> {
    if let Some(named) = env::var_os("OTELTAP") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join("oteltap")).find(|program| program.is_file())
}

/// A collector that ends well once a span of this name came. It is stopped when this is dropped.
struct Collector {
    process: Child,
    endpoint: String,
}

impl Collector {
    fn start(oteltap: &Path, span: &str) -> Self {
        // The port is free now, and nobody else asks for one in a moment.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(oteltap);
        command.args(["--port", &port.to_string(), "--await-span", span]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut collector = Self { process, endpoint: format!("http://127.0.0.1:{port}") };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert_eq!(collector.process.try_wait().unwrap(), None, "the collector did not start");
            thread::sleep(Duration::from_millis(20));
        }
        collector
    }

    /// Ends once the span came; nextest ends a test that waits for ever.
    fn awaited(mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
