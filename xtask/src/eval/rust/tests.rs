use agent_eval::{EvalCase, EvalSet};
use futures::future::join_all;

use super::{
    grader::{Grade, Grader},
    task::Task,
};

fn set() -> EvalSet {
    EvalSet::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../evals/rust")).expect("the set loads")
}

fn task(id: &str) -> Task {
    let set = set();
    let case = set.cases.iter().find(|case| case.id == id).expect("a known case");
    Task::of(case).expect("a task")
}

fn solution(case: &EvalCase) -> &str {
    case.metadata["solution"].as_str().expect("a text")
}

async fn feedback(id: &str, draft: &str) -> String {
    let grade = Grader::new().expect("a compiler").grade(&task(id), draft).await.expect("a grade");
    grade.feedback.unwrap_or_else(|| "nothing to object".to_owned())
}

#[tokio::test]
async fn every_solution_passes_its_own_tests() {
    let grader = Grader::new().expect("a compiler");
    let grader = &grader;
    let set = set();
    let grades = join_all(set.cases.iter().map(|case| async move {
        let grade = grader.grade(&Task::of(case).expect("a task"), solution(case)).await.expect("a grade");
        (case.id.as_str(), grade)
    }));
    let good = Grade { feedback: None, failure: None };
    let bad: Vec<_> = grades.await.into_iter().filter(|(_, grade)| *grade != good).collect();
    assert_eq!(bad, []);
    assert_eq!(set.cases.len(), 30);
}

#[tokio::test]
async fn the_first_errors_of_the_compiler_are_told_without_places() {
    let draft = "fn digit_sum(n: u64) -> u64 { let mut sum = 0; while n > 0 { sum += n % 10; n /= 10; } sum + totl }";
    insta::assert_snapshot!(feedback("digit_sum", draft).await, @r"
    It does not compile.

    error[E0425]: cannot find value `totl` in this scope
        fn digit_sum(n: u64) -> u64 { let mut sum = 0; while n > 0 { sum += n % 10; n /= 10; } sum + totl }
        not found in this scope

    Write the whole function again.
    ");
}

#[tokio::test]
async fn a_wrong_signature_is_told_by_a_visible_test() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: &str) -> u64 { 0 }").await, @r"
    It does not compile.

    error[E0308]: mismatched types
        digit_sum(0), 0
        expected `&str`, found integer

    error[E0308]: mismatched types
        digit_sum(407), 11
        expected `&str`, found integer

    Write the whole function again.
    ");
}

#[tokio::test]
async fn an_unclosed_block_is_told() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: u64) -> u64 { if n > 0 { 1 }").await, @r"
    It does not compile.

    error: this file contains an unclosed delimiter

    Write the whole function again.
    ");
}

#[tokio::test]
async fn a_wrong_result_is_told_with_what_it_is() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: u64) -> u64 { n % 10 }").await, @r"
    It compiles.

    `digit_sum(407)` should be `11`, but it is `7`.

    Write the whole function again.
    ");
}

#[tokio::test]
async fn a_panic_is_told_with_its_message() {
    let draft = "fn digit_sum(n: u64) -> u64 { println!(\"left: 1 panicked at\"); 0 - n - 1 }";
    insta::assert_snapshot!(feedback("digit_sum", draft).await, @r"
    It compiles.

    `digit_sum(0)` should be `0`, but it panicked: attempt to subtract with overflow.
    `digit_sum(407)` should be `11`, but it panicked: attempt to subtract with overflow.

    Write the whole function again.
    ");
}

#[tokio::test]
async fn an_endless_loop_is_told() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: u64) -> u64 { loop {} }").await, @r"
    It compiles.

    `digit_sum(0)` should be `0`, but it was stopped: an endless loop, or too much memory.

    Write the whole function again.
    ");
    let hog = "fn digit_sum(n: u64) -> u64 { let mut v = vec![0_u64; 1 << 20]; loop { v.extend_from_within(..); } }";
    let deep = "fn digit_sum(n: u64) -> u64 { digit_sum(n) + 1 }";
    assert_eq!(feedback("digit_sum", hog).await, feedback("digit_sum", deep).await);
}

#[tokio::test]
async fn a_program_that_ends_early_has_not_passed() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(_: u64) -> u64 { std::process::exit(0) }").await, @r"
    It compiles.

    `digit_sum(0)` should be `0`, but the program ended before.

    Write the whole function again.
    ");
}
