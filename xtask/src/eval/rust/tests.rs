use agent_eval::{EvalCase, EvalSet, ModelSource};
use futures::future::join_all;

use super::{
    super::{
        models::CASSETTE,
        tests::{folder, load},
    },
    RustTasks, forbidden,
    grader::{Grade, Grader, code_of},
    task::Task,
};

fn task(id: &str) -> Task {
    let set = load("rust");
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
    let set = load("rust");
    let each = join_all(set.cases.iter().map(|case| async move {
        let grade = grader.grade(&Task::of(case).expect("a task"), solution(case)).await.expect("a grade");
        (case.id.as_str(), grade)
    }));
    let good = Grade { feedback: None, failure: None };
    let bad: Vec<_> = each.await.into_iter().filter(|(_, grade)| *grade != good).collect();
    assert_eq!(bad, []);
}

#[tokio::test]
async fn the_first_errors_of_the_compiler_are_told_without_places() {
    let draft = "fn digit_sum(n: u64) -> u64 { let mut sum = 0; while n > 0 { sum += n % 10; n /= 10; } sum + totl }";
    insta::assert_snapshot!(feedback("digit_sum", draft).await, @r"
    An earlier draft did not compile.

    error[E0425]: cannot find value `totl` in this scope
        fn digit_sum(n: u64) -> u64 { let mut sum = 0; while n > 0 { sum += n % 10; n /= 10; } sum + totl }
        not found in this scope
    ");
}

#[tokio::test]
async fn a_wrong_signature_is_told_by_a_visible_test() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: &str) -> u64 { 0 }").await, @r"
    An earlier draft did not compile.

    error[E0308]: mismatched types
        digit_sum(0), 0
        expected `&str`, found integer

    error[E0308]: mismatched types
        digit_sum(407), 11
        expected `&str`, found integer
    ");
}

#[tokio::test]
async fn an_unclosed_block_is_told() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: u64) -> u64 { if n > 0 { 1 }").await, @r"
    An earlier draft did not compile.

    error: this file contains an unclosed delimiter
    ");
}

#[tokio::test]
async fn a_wrong_result_is_told_with_what_it_is() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: u64) -> u64 { n % 10 }").await, @r"
    An earlier draft compiled, but its results were wrong.

    `digit_sum(407)` should be `11`, but it is `7`.
    ");
}

#[tokio::test]
async fn a_panic_is_told_with_its_message() {
    let draft = "fn digit_sum(n: u64) -> u64 { println!(\"left: 1 panicked at\"); 0 - n - 1 }";
    insta::assert_snapshot!(feedback("digit_sum", draft).await, @r"
    An earlier draft compiled, but its results were wrong.

    `digit_sum(0)` should be `0`, but it panicked: attempt to subtract with overflow.
    `digit_sum(407)` should be `11`, but it panicked: attempt to subtract with overflow.
    ");
}

#[tokio::test]
async fn an_endless_loop_is_told() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(n: u64) -> u64 { loop {} }").await, @r"
    An earlier draft compiled, but its results were wrong.

    `digit_sum(0)` should be `0`, but it was stopped: an endless loop, or too much memory.
    ");
    let hog = "fn digit_sum(n: u64) -> u64 { let mut v = vec![0_u64; 1 << 20]; loop { v.extend_from_within(..); } }";
    let deep = "fn digit_sum(n: u64) -> u64 { digit_sum(n) + 1 }";
    assert_eq!(feedback("digit_sum", hog).await, feedback("digit_sum", deep).await);
}

#[tokio::test]
async fn a_program_that_ends_early_has_not_passed() {
    insta::assert_snapshot!(feedback("digit_sum", "fn digit_sum(_: u64) -> u64 { std::process::exit(0) }").await, @r"
    An earlier draft compiled, but its results were wrong.

    `digit_sum(0)` should be `0`, but the program ended before.
    ");
}

#[tokio::test]
async fn a_hidden_test_is_not_told() {
    // Right for the visible tests alone.
    let draft = "fn digit_sum(n: u64) -> u64 { if n > 0 { 11 } else { 0 } }";
    let grade = Grader::new().expect("a compiler").grade(&task("digit_sum"), draft).await.expect("a grade");
    let failure = "the visible tests pass; a hidden one does not: `digit_sum(9)` should be `9`, but it is `11`. \
                   `digit_sum(1_000_000)` should be `1`, but it is `11`.";
    assert_eq!(grade, Grade { feedback: None, failure: Some(failure.to_owned()) });
    // Types that only the hidden tests do not meet.
    let text =
        feedback("clamp_all", "fn clamp_all<const N: usize>(n: &[i32; N], _: i32, _: i32) -> [i32; N] { *n }").await;
    assert!(!text.contains("Vec"), "{text}");
}

#[tokio::test]
async fn two_graders_say_the_same() {
    // It depends on the order of a hash map, and writes where it is.
    let draft = "fn first_seen(numbers: &[i32]) -> Vec<i32> {
        let seen: std::collections::HashSet<i32> = (0..20).chain(numbers.iter().copied()).collect();
        println!(\"{:?} {:?}\", std::env::current_dir(), std::thread::current().id());
        seen.into_iter().collect()
    }";
    assert_eq!(feedback("first_seen", draft).await, feedback("first_seen", draft).await);
    // A closure's type is named after its place.
    let draft = "fn digit_sum(n: u64) -> u64 { let f = |x: u64| x; f }";
    let text = feedback("digit_sum", draft).await;
    assert_eq!(text, feedback("digit_sum", draft).await);
    assert!(text.contains("closure") && !text.contains("sandbox-"), "{text}");
}

#[tokio::test]
async fn a_draft_that_makes_the_compiler_read_files_is_not_allowed() {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "a secret that is no Rust").expect("written");
    let place = secret.path().display();
    let draft = format!("fn digit_sum(n: u64) -> u64 {{ include!({place:?}) }}");
    let grade = Grader::new().expect("a compiler").grade(&task("digit_sum"), &draft).await.expect("a grade");
    let told = Some("not allowed: `include`; write the function without it.".to_owned());
    assert_eq!(grade, Grade { feedback: told.clone(), failure: told });
}

#[test]
fn what_reads_files_is_found_under_any_name() {
    let found = |draft: &str| forbidden::found_in(draft).unwrap_or_default();
    let cases = [
        ("fn f() -> &'static str { include_str!(\"/etc/passwd\") }", "`include_str`"),
        ("use std::include_bytes as x; fn f() { x!(\"/etc/passwd\"); }", "`include_bytes`"),
        ("fn f() { r#include ! [\"/etc/passwd\"] }", "`include`"),
        ("/* a\n// */ fn f() { include!(\"x\") }", "`include`"),
        ("const A: &str = \"\n// \"; fn f() { include!(\"x\") }", "`include`"),
        ("fn f() -> &'static str { env!(\"HOME\") }", "`env!`"),
        ("use std::env as e; fn f() -> &'static str { e!(\"HOME\") }", "`env!`"),
        ("use std::env as\ne; fn f() -> &'static str { e!(\"HOME\") }", "`env!`"),
        ("fn f() -> &'static str { env /**/ !(\"HOME\") }", "`env!`"),
        ("fn f() { option_env!(\"HOME\"); }", "`option_env`"),
        ("std::arch::global_asm!(\".incbin \\\"/etc/passwd\\\"\");", "`global_asm`"),
        ("#[path = \"/etc/passwd\"] mod a;", "a module in another file"),
        ("mod a /* { */ ;", "a module in another file"),
        ("mod/**/a;", "a module in another file"),
        ("macro_rules! m { ($p:ident $m:tt) => { #[$p = \"/etc/passwd\"] $m a; } }", "`macro_rules`"),
        ("extern crate proc_macro;", "`proc_macro`"),
    ];
    for (draft, what) in cases {
        assert_eq!(found(draft), format!("{what}; write the function without it."), "{draft}");
    }
    let fine = [
        "fn f() { let path = std::env::args(); } // It does not include the last one.",
        "/// Words to include\nfn including(included: bool) -> bool { included }",
        "mod a { pub fn f() {} }\nfn f(model: u8) -> u8 { model }",
    ];
    assert_eq!(fine.map(found), ["", "", ""]);
}

#[test]
fn no_recorded_draft_is_forbidden() {
    let text = std::fs::read_to_string(folder("rust").join(CASSETTE)).expect("a cassette");
    let answers = text.lines().map(|line| {
        let entry: serde_json::Value = serde_json::from_str(line).expect("an entry");
        entry["response"]["message"]["contents"][0]["text"].as_str().expect("an answer").to_owned()
    });
    let answers: Vec<String> = answers.collect();
    assert!(answers.len() > 200);
    let bad: Vec<_> = answers.iter().filter_map(|answer| Some((answer, forbidden::found_in(answer)?))).collect();
    assert_eq!(bad, []);
}

/// What is suspended on a thread must not keep a check from ending that blocks it.
#[test]
fn a_check_does_not_wait_for_what_is_suspended_on_its_thread() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (grader, task) = (Grader::new().expect("a compiler"), task("digit_sum"));
            let draft = "fn digit_sum(n: u64) -> u64 { n % 10 }";
            let mut suspended = Box::pin(grader.grade(&task, draft));
            assert!(futures::poll!(&mut suspended).is_pending());
            let checked = grader.grade_blocking(&task, draft).expect("a grade");
            done.send((suspended.await.expect("a grade"), checked)).expect("awaited");
        });
    });
    let (suspended, checked) = ended.recv_timeout(std::time::Duration::from_mins(1)).expect("no deadlock");
    assert_eq!(suspended, checked);
}

#[test]
fn the_code_of_an_answer_is_the_block_with_the_function() {
    let cases = [
        ("fn f() {}", "fn f() {}"),
        ("```rust\nfn f() {}\n```\nThat was it.", "fn f() {}"),
        ("Use it so:\n```\nf();\n```\nand:\n```rust\nfn f() {}\n```", "fn f() {}"),
        ("```rust\nfn f() {\n    1", "fn f() {\n    1"),
        ("```rust\nfn g() {}\n```", "fn g() {}"),
        ("", ""),
    ];
    for (answer, code) in cases {
        assert_eq!(code_of(answer, "f"), code, "{answer}");
    }
}

#[test]
fn a_set_that_does_not_allow_programs_is_refused() {
    let set = EvalSet { allow_exec: false, ..load("rust") };
    let error = RustTasks::new(&set, &ModelSource::default()).err().expect("an error");
    let what = "compile what a model writes for set `rust`: write `allow_exec: true` in the set";
    assert_eq!(error.to_string(), what);
}
