//! How fast the engine is beside its agents: trials per second of an agent that answers at once. `cargo xtask bench`
//! prints it beside everything else; `cargo bench -p agent-eval --bench trials` prints it alone.

use std::sync::Arc;

use agent_core::{ChatMessage, Draft, StopReason, agent_fn};
use agent_eval::{EvalSet, RunOptions, subject_fn};
use divan::{Bencher, counter::ItemsCount};

fn main() {
    divan::main();
}

#[divan::bench(args = [100, 1000, 10_000], sample_count = 10)]
fn trials(bencher: Bencher<'_, '_>, cases: usize) {
    let case = |id| serde_json::json!({ "id": format!("case-{id}"), "input": { "text": "go" }, "checks": [{ "contains": { "all": ["DONE"] } }] });
    let set = serde_json::json!({ "schema": "agent-eval/1", "name": "set", "cases": (0..cases).map(case).collect::<Vec<_>>() });
    let set: EvalSet = serde_json::from_value(set).expect("a set");
    let subject = subject_fn(|_| {
        let agent = agent_fn("writer", |session, out| {
            Box::pin(async move {
                out.record(session, Draft::message(ChatMessage::assistant("DONE"))).await;
                Ok(StopReason::Completed)
            })
        });
        Box::pin(async { Ok(Arc::new(agent) as _) })
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    bencher.counter(ItemsCount::new(cases)).bench_local(|| {
        let report = runtime.block_on(set.run(&subject, RunOptions::default())).expect("a report");
        assert_eq!(report.sets[0].total.passed, cases as u64);
    });
}
