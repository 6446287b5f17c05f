use std::{sync::Mutex, thread, time::Duration};

use agent_core::{Format, Limits, LoopStep, RunContext, Spent, StopReason, Usage};
use futures::FutureExt;
use tokio::time::{Instant, advance};
use uuid::Uuid;

use crate::support::{limited, tokens};

const EXHAUSTED: Result<(), StopReason> = Err(StopReason::BudgetExhausted);

fn no_limits() -> Limits {
    Limits { model_calls: None, ..Limits::default() }
}

#[test]
fn a_run_may_call_its_model_a_hundred_times_unless_told_otherwise() {
    let expected = Limits { model_calls: Some(100), tool_calls: None, tokens: None, wall: None };
    assert_eq!(*RunContext::default().limits(), expected);
}

#[test]
fn calls_are_counted_exactly_by_any_number_of_threads() {
    let cx = limited(Limits { model_calls: Some(777), tool_calls: Some(333), ..no_limits() });
    let won: (usize, usize) = thread::scope(|scope| {
        let take = || {
            let model = (0..500).filter(|_| cx.take_model_call().is_ok()).count();
            (model, (0..500).filter(|_| cx.take_tool_call().is_ok()).count())
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).fold((0, 0), |sum, won| (sum.0 + won.0, sum.1 + won.1))
    });
    assert_eq!(won, (777, 333));
    let Spent { model_calls, tool_calls, .. } = cx.spent();
    assert_eq!((model_calls, tool_calls), (777, 333));
    assert_eq!((cx.take_model_call(), cx.take_tool_call()), (EXHAUSTED, EXHAUSTED));
}

#[test]
fn no_calls_at_all_can_be_allowed() {
    let cx = limited(Limits { model_calls: Some(0), tool_calls: Some(0), ..no_limits() });
    assert_eq!((cx.take_model_call(), cx.take_tool_call(), cx.check()), (EXHAUSTED, EXHAUSTED, Ok(())));
}

#[test]
fn tokens_are_used_up_once_the_line_is_reached() {
    let cx = limited(Limits { tokens: Some(10), ..no_limits() });
    cx.spend(Usage { cached_input_tokens: 100, reasoning_tokens: 100, ..tokens(5, 4) });
    assert_eq!((cx.check(), cx.spent().tokens), (Ok(()), 9));
    cx.clone().enter(LoopStep { name: "loop".into(), iteration: 1 }).in_branch().spend(tokens(0, 1));
    assert_eq!((cx.check(), cx.take_model_call(), cx.spent().model_calls), (EXHAUSTED, EXHAUSTED, 0));
    assert_eq!(cx.take_tool_call(), Ok(()), "tokens are looked at before a model call only");
}

#[test]
fn tokens_do_not_wrap_to_a_fresh_budget() {
    let cx = limited(Limits { tokens: Some(10), ..no_limits() });
    cx.spend(tokens(u64::MAX, 0));
    cx.spend(tokens(5, 0));
    assert_eq!((cx.check(), cx.spent().tokens), (EXHAUSTED, u64::MAX));
}

#[tokio::test(start_paused = true)]
async fn the_wall_is_measured_from_the_contexts_making() {
    let cx = limited(Limits { wall: Some(Duration::from_secs(10)), ..no_limits() });
    advance(Duration::from_millis(9_999)).await;
    assert_eq!(cx.check(), Ok(()));
    advance(Duration::from_millis(1)).await;
    assert_eq!((cx.check(), cx.take_model_call()), (EXHAUSTED, EXHAUSTED));
    assert_eq!(cx.spent().wall, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_interrupted_when_its_time_is_over() {
    let cx = limited(Limits { wall: Some(Duration::from_secs(10)), ..no_limits() });
    advance(Duration::from_secs(4)).await;
    let start = Instant::now();
    assert_eq!(cx.interrupted().await, StopReason::BudgetExhausted);
    let waited = start.elapsed();
    assert!((6_000..6_010).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(cx.interrupted().now_or_never(), Some(StopReason::BudgetExhausted), "and stays so");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_interrupted_when_it_is_cancelled_from_any_clone() {
    for wall in [None, Some(Duration::from_secs(10)), Some(Duration::MAX)] {
        let cx = limited(Limits { wall, ..no_limits() });
        let mut interrupted = Box::pin(cx.interrupted());
        assert_eq!((&mut interrupted).now_or_never(), None);
        cx.in_branch().with_format(Format::Text).cancel().cancel();
        assert_eq!(interrupted.await, StopReason::Cancelled);
        assert_eq!((cx.check(), cx.take_model_call()), (Err(StopReason::Cancelled), Err(StopReason::Cancelled)));
        advance(Duration::from_secs(20)).await;
        assert_eq!(cx.interrupted().await, StopReason::Cancelled, "cancellation goes before time");
        assert_eq!(cx.check(), Err(StopReason::Cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_without_a_wall_is_not_interrupted_by_time() {
    let cx = RunContext::default();
    assert!(tokio::time::timeout(Duration::from_secs(1_000_000), cx.interrupted()).await.is_err());
}

#[test]
fn a_bill_is_spent_at_once_and_taken_once() {
    let cx = RunContext::default();
    assert_eq!(cx.take_bill(), None);
    cx.bill(tokens(1, 2));
    cx.clone().bill(tokens(3, 4));
    assert_eq!(cx.spent().tokens, 10);
    assert_eq!(cx.enter(LoopStep { name: "l".into(), iteration: 1 }).take_bill(), Some(tokens(4, 6)));
    assert_eq!((cx.take_bill(), cx.spent().tokens), (None, 10));
    cx.spend(tokens(1, 1));
    assert_eq!(cx.take_bill(), None, "what an event reports is no bill");
}

#[test]
fn a_branch_has_bills_of_its_own_and_leaves_what_nobody_took() {
    let cx = RunContext::default();
    let (a, b) = (cx.in_branch(), cx.in_branch());
    cx.bill(tokens(1, 0));
    a.bill(tokens(2, 0));
    b.clone().bill(tokens(4, 0));
    assert_eq!((a.take_bill(), a.take_bill()), (Some(tokens(2, 0)), None));
    let inner = b.in_branch();
    inner.bill(tokens(8, 0));
    assert_eq!(cx.spent().tokens, 15);
    drop(b);
    drop(inner);
    assert_eq!(cx.take_bill(), Some(tokens(13, 0)));
    drop(a);
    assert_eq!(cx.take_bill(), None);
}

#[test]
fn scratch_is_one_value_for_each_key_and_run() {
    let (cx, key) = (RunContext::default(), Uuid::now_v7());
    cx.scratch::<Mutex<u32>>(key).lock().unwrap().clone_from(&7);
    let branch = cx.in_branch().enter(LoopStep { name: "l".into(), iteration: 1 });
    assert_eq!(*branch.scratch::<Mutex<u32>>(key).lock().unwrap(), 7);
    assert_eq!(*cx.scratch::<Mutex<u32>>(Uuid::now_v7()).lock().unwrap(), 0);
    assert_eq!(*RunContext::default().scratch::<Mutex<u32>>(key).lock().unwrap(), 0);
    assert_eq!(*cx.scratch::<Mutex<String>>(key).lock().unwrap(), "");
    assert_eq!(*cx.scratch::<Mutex<u32>>(key).lock().unwrap(), 7);
}

#[test]
fn a_part_of_a_run_differs_in_its_place_only() {
    let cx = RunContext::default();
    let step = |name: &str, iteration| LoopStep { name: name.into(), iteration };
    let inner = cx.enter(step("outer", 2)).in_branch().with_format(Format::of::<u32>()).enter(step("inner", 1));
    assert_eq!(**inner.path(), [step("outer", 2), step("inner", 1)]);
    assert_eq!((inner.is_branch(), inner.format()), (true, Some(&Format::of::<u32>())));
    assert_eq!((cx.is_branch(), cx.format(), cx.path().len()), (false, None, 0));
    assert_eq!(inner.id(), cx.id());
    assert_ne!(cx.id(), RunContext::default().id());
    assert_eq!(inner.with_format(Format::Text).format(), Some(&Format::Text));
}

#[test]
fn a_format_of_a_type_is_its_schema() {
    let Format::JsonSchema { name, schema } = Format::of::<Vec<bool>>() else { panic!("a schema") };
    assert_eq!(
        (name.as_str(), &schema["type"], &schema["items"]["type"]),
        ("Array_of_boolean", &"array".into(), &"boolean".into())
    );
}

#[tokio::test]
async fn a_run_whose_time_is_up_is_interrupted_though_nobody_waited() {
    let cx = RunContext::new(Limits { wall: Some(Duration::from_millis(1)), ..Limits::default() });
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(cx.interrupted().now_or_never(), Some(StopReason::BudgetExhausted));
    cx.cancel().cancel();
    assert_eq!(cx.interrupted().now_or_never(), Some(StopReason::Cancelled));
}
