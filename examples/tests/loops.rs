//! The examples about loops and agents in agents, offline: what each prints, and that the README shows it.

mod support;

use support::{example, transcript};

/// What an example prints; the README has to show it.
fn shown(program: &str) -> String {
    let printed = String::from_utf8(example(program).output().unwrap().stdout).unwrap();
    assert!(include_str!("../README.md").contains(printed.trim_end()), "not in README.md:\n{printed}");
    transcript(&mut example(program))
}

#[test]
fn judge_loop_asks_the_judge_only_after_the_floor() {
    insta::assert_snapshot!(shown(env!("CARGO_BIN_EXE_judge_loop")));
}

#[test]
fn todo_loop_does_not_end_while_a_todo_is_open() {
    insta::assert_snapshot!(shown(env!("CARGO_BIN_EXE_todo_loop")));
}

#[test]
fn fresh_context_sends_less_in_each_iteration() {
    insta::assert_snapshot!(shown(env!("CARGO_BIN_EXE_fresh_context")));
}

#[test]
fn nested_loops_name_the_iterations_of_both() {
    insta::assert_snapshot!(shown(env!("CARGO_BIN_EXE_nested_loops")));
}

#[test]
fn parallel_drafts_are_picked_in_the_same_order_in_every_run() {
    insta::assert_snapshot!(shown(env!("CARGO_BIN_EXE_parallel_drafts")));
}

#[test]
fn agent_as_tool_counts_the_calls_of_both() {
    insta::assert_snapshot!(shown(env!("CARGO_BIN_EXE_agent_as_tool")));
}

#[test]
fn a_budget_that_ends_inside_the_specialist_ends_the_run() {
    let printed = transcript(example(env!("CARGO_BIN_EXE_agent_as_tool")).args(["--model-calls", "2"]));
    insta::assert_snapshot!(printed);
}

#[test]
fn another_judge_needs_a_model_to_judge() {
    let said = transcript(example(env!("CARGO_BIN_EXE_judge_loop")).args(["--judge", "openai:gpt-5"]));
    insta::assert_snapshot!(said);
}
