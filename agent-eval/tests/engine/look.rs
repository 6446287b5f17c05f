//! A page for a person, of a run with something of everything.

use std::{num::NonZeroUsize, sync::Arc};

use agent_core::{ChatAgent, ChatAgentOptions, ChatMessage, ToolContext, testing::ScriptedClient, tool_fn};
use agent_eval::{EvalSet, HtmlOptions, Report, ReportOptions, RunLog, RunOptions, Subject, subject_fn};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, evaluate_fn};
use serde_json::{Value, json};

use crate::support::*;

/// Writes a page to be looked at, to the path in `AGENT_EVAL_PAGE`, with JUnit XML and Markdown beside it:
/// `AGENT_EVAL_PAGE=/tmp/page.html cargo test -p agent-eval --test engine -- --ignored a_page_to_look_at`.
#[tokio::test]
#[ignore = "writes a page for a person, to the path in `AGENT_EVAL_PAGE`"]
async fn a_page_to_look_at() {
    let path = std::env::var_os("AGENT_EVAL_PAGE").expect("the path of the page in `AGENT_EVAL_PAGE`");
    let dir = tempfile::tempdir().unwrap();
    let judge = || {
        (0..120).fold(ScriptedClient::new(), |judge, at| {
            let usage = agent_core::Usage { input_tokens: 140, output_tokens: 20, ..Default::default() };
            let said = json!({ "reason": "It names a number, and says where it comes from.", "good": at % 7 != 3 });
            judge.reply(ChatMessage::assistant(said.to_string()), usage)
        })
    };
    let set = sums(24);
    let old = RunOptions { seed: 3, judge: Some(Arc::new(judge())), concurrency: NonZeroUsize::MIN, ..repeats(5) };
    let old = set.run(&adder(1), old).await.unwrap();
    let baseline = agent_eval::Baseline::bless(&old, "set").unwrap();
    let gates = ["pass_rate>=0.9", "cap_hit_rate<=0.5", "regression<=0.02", "hard(long)"];
    let report = ReportOptions {
        gates: gates.map(|gate| gate.parse().unwrap()).into(),
        baselines: vec![baseline],
        ..ReportOptions::default()
    };
    let mut options = RunOptions { log: Some(dir.path().into()), seed: 5, report: report.clone(), ..repeats(5) };
    options.judge = Some(Arc::new(judge()));
    options.concurrency = NonZeroUsize::MIN;
    set.run(&adder(0), options).await.unwrap();
    let run = RunLog::open(dir.path()).unwrap();
    let report = Report::of(&run, report).unwrap();
    let path = std::path::PathBuf::from(path);
    let rules = agent_eval::ExitRules::default();
    std::fs::write(path.with_extension("xml"), report.to_junit(&rules)).unwrap();
    std::fs::write(path.with_extension("md"), report.to_markdown(&rules)).unwrap();
    std::fs::write(&path, report.to_html_with_trials(&run, &HtmlOptions::default()).unwrap()).unwrap();
}

/// Sums to be done with a tool; every sixth case is a conversation.
fn sums(count: u32) -> EvalSet {
    let call = |a: u32, b: u32| json!({ "calls": [{ "name": "add", "arguments": { "a": a, "b": b } }] });
    let case = |at: u32| {
        let (a, b) = (at * 7 % 19, at * 5 % 23);
        let tags = if at.is_multiple_of(4) { json!(["long"]) } else { json!(["short"]) };
        let human = if at % 7 == 3 { "fail" } else { "pass" };
        if at % 6 == 5 {
            return json!({
                "id": format!("case-{at:04}"), "tags": tags, "expected_state": { "sum": a + b },
                "metadata": { "human_verdict": human }, "state": { "unit": "apples" },
                "input": { "turns": [
                    { "say": format!("I have {a} apples and get {b} more."), "checks": [{ "contains": { "any": ["apple", "good"] } }] },
                    { "say": "How many are there now?", "expected": ["good"], "expected_calls": call(a, b) },
                ] },
            });
        }
        json!({
            "id": format!("case-{at:04}"), "tags": tags, "expected": ["good"], "expected_calls": call(a, b),
            "input": { "text": format!("What is {a} + {b}? Use the tool, and then say \"good\".") },
            "metadata": { "human_verdict": human },
            "checks": if at.is_multiple_of(3) { json!([{ "judge": { "rubric": "It names a number." } }]) } else { json!([]) },
        })
    };
    set_with((0..count).map(case))
}

/// A loop around an agent with a tool, better or worse by the case and the repeat.
fn adder(luck: u32) -> impl Subject {
    subject_fn(move |trial| {
        let (at, repeat) = (number(trial), trial.key.repeat);
        let (a, b) = (at * 7 % 19, at * 5 % 23);
        Box::pin(async move {
            let good_at = 1 + (at * 3 + repeat * 5 + at / 5) % 6;
            let good_at = if luck > 0 && at.is_multiple_of(3) { 1 } else { good_at };
            let mut model = ScriptedClient::new();
            for k in 1..=8_u32 {
                let right = k >= good_at;
                let wrong = if k % 2 == 0 { json!({ "a": a }) } else { json!({ "a": a, "b": b + 1 }) };
                if k == good_at.min(2) {
                    let arguments = if right { json!({ "a": a, "b": b }) } else { wrong };
                    model = model.calls(format!("c{k}"), "add", arguments);
                }
                let usage = agent_core::Usage {
                    input_tokens: 300 + 120 * u64::from(k),
                    output_tokens: 24,
                    ..Default::default()
                };
                let text = if right {
                    "good".to_owned()
                } else {
                    format!("I think that it is about {} apples, but let me look again.", a + b + k)
                };
                model = model.reply(ChatMessage::assistant(text), usage);
            }
            let add = tool_fn("add", "Adds.", |args: Value, _: ToolContext| async move {
                match (args["a"].as_u64(), args["b"].as_u64()) {
                    (Some(a), Some(b)) => Ok(json!({ "sum": a + b })),
                    _ => Err("add: `b` is missing; give both numbers".into()),
                }
            });
            let writer = ChatAgent::new("adder", model, ChatAgentOptions::default()).tool(add);
            let is_good = evaluate_fn("is-good", |cx| {
                if cx.last.text() == "good" {
                    LoopEvaluation::Satisfied
                } else {
                    LoopEvaluation::feedback(
                        "The answer is to be \"good\" and nothing else. Look at the sum that the tool gave.",
                    )
                }
            });
            let options = LoopOptions { max_iterations: 4.try_into().unwrap(), ..LoopOptions::default() };
            Ok(Arc::new(LoopAgent::new("refine", writer, options).evaluator(is_good)) as _)
        })
    })
}
