//! F: the evaluators that ship.

use std::time::Duration;

use agent_core::{ChatMessage, Content, Draft, Role, StopReason, ToolCall, Usage};
use agent_loop::{
    CompletionMarker, LoopAgent, LoopEvaluation, LoopEvaluator, Oscillating, Stalled, StateEquals, TimeBudget,
    TokenBudget, UntilEscalated, all_of, any_of, at_most, evaluate_fn, only_while,
};
use serde_json::json;

use crate::support::{
    Log, Passes, asked, cap, digest_of, escalates, fresh, go, never, noted, outcome, says, scripted, spends, tokens,
    until,
};

const SATISFIED: LoopEvaluation = LoopEvaluation::Satisfied;

async fn judged(evaluator: &impl LoopEvaluator, texts: &[&str]) -> LoopEvaluation {
    Passes::of(texts).await.ask(evaluator).await.unwrap()
}

fn feedback(evaluation: LoopEvaluation) -> String {
    match evaluation {
        LoopEvaluation::Continue(Some(text)) => text,
        other => panic!("no feedback, but {other:?}"),
    }
}

fn halt(evaluation: LoopEvaluation) -> String {
    match evaluation {
        LoopEvaluation::Halt(why) => why,
        other => panic!("no halt, but {other:?}"),
    }
}

#[test]
fn names_are_the_types_in_snake_case() {
    let evaluators: [&dyn LoopEvaluator; 7] = [
        &CompletionMarker::new("x"),
        &UntilEscalated,
        &StateEquals::new("k", 1),
        &Stalled::new(2),
        &Oscillating::new(),
        &TokenBudget::new(1),
        &TimeBudget::new(Duration::ZERO),
    ];
    assert_eq!(
        evaluators.map(LoopEvaluator::name),
        [
            "completion_marker",
            "until_escalated",
            "state_equals",
            "stalled",
            "oscillating",
            "token_budget",
            "time_budget"
        ]
    );
}

/// F1
#[tokio::test]
async fn a_marker_anywhere_in_the_answer_satisfies() {
    let marker = CompletionMarker::new("DONE");
    for answer in ["DONE", "all is DONE, I think", "x\nDONE\n"] {
        assert_eq!(judged(&marker, &[answer]).await, SATISFIED, "{answer}");
    }
    assert_eq!(judged(&marker, &["DONE", "done"]).await, judged(&marker, &[""]).await, "earlier answers do not count");
    insta::assert_snapshot!(feedback(judged(&marker, &["done"]).await), @"The work is not done yet: your answer does not contain `DONE`. Go on, and write `DONE` once everything is done.");
}

/// F1
#[tokio::test]
async fn a_marker_may_have_to_be_at_the_end() {
    let marker = CompletionMarker::new("DONE ").at_end();
    for answer in ["DONE", "is DONE", "x\nDONE \n\t"] {
        assert_eq!(judged(&marker, &[answer]).await, SATISFIED, "{answer}");
    }
    for answer in ["DONE soon", "DONE.", ""] {
        assert!(matches!(judged(&marker, &[answer]).await, LoopEvaluation::Continue(Some(_))), "{answer}");
    }
    let marker = CompletionMarker::new("DONE").at_end();
    insta::assert_snapshot!(feedback(judged(&marker, &["DONE soon"]).await), @"The work is not done yet: your answer does not end with `DONE`. Go on, and end your answer with `DONE` once everything is done.");
}

/// F1: values are not expanded again.
#[tokio::test]
async fn the_template_is_filled_in_one_pass() {
    let marker = CompletionMarker::new("{last_response}").template("{x} {marker}: {last_response} {{marker}} {marker");
    insta::assert_snapshot!(feedback(judged(&marker, &["I said {marker}"]).await), @"{x} {last_response}: I said {marker} {{last_response}} {marker");
    let kept = CompletionMarker::new("A").template("mine").at_end();
    assert_eq!(feedback(judged(&kept, &["b"]).await), "mine");
    let blank = CompletionMarker::new("A").template(" \n");
    assert_eq!(judged(&blank, &["b"]).await, LoopEvaluation::again());
}

/// F1: thoughts and calls are no answer.
#[tokio::test]
async fn a_marker_in_a_thought_does_not_count() {
    let thought = Content::Reasoning { text: "DONE".into(), signature: None };
    let message = ChatMessage::new(Role::Assistant, [thought, Content::Text("working".into())]);
    let passes = Passes::default().then(&[message], Draft::default()).await;
    assert!(matches!(passes.ask(&CompletionMarker::new("DONE")).await.unwrap(), LoopEvaluation::Continue(Some(_))));
}

/// F4
#[tokio::test]
async fn until_escalated_waits_for_an_escalation() {
    assert_eq!(judged(&UntilEscalated, &["done"]).await, LoopEvaluation::again());
    let agent = LoopAgent::new("loop", escalates("w", &[3]).0, cap(5)).evaluator(UntilEscalated);
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!(outcome(&session).iterations.len(), 3);
}

/// F5
#[tokio::test]
async fn state_equals_compares_values() {
    let with = async |value: serde_json::Value| Passes::default().then(&[], Draft::state("k", value)).await;
    for (found, wanted) in [
        (json!("a"), json!("a")),
        (json!(1), json!(1.0)),
        (json!([1.0, {"a": 2}]), json!([1, {"a": 2.0}])),
        (json!(null), json!(null)),
        (json!(u64::MAX), json!(u64::MAX)),
    ] {
        let evaluator = StateEquals::new("k", &wanted);
        assert_eq!(with(found.clone()).await.ask(&evaluator).await.unwrap(), SATISFIED, "{found} {wanted}");
    }
    for (found, wanted) in [
        (json!("1"), json!(1)),
        (json!(true), json!("true")),
        (json!([1]), json!([1, 2])),
        (json!({"a": 1}), json!({"b": 1})),
        (json!({"a": 1, "b": 1}), json!({"a": 1})),
        (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        (json!(-1), json!(u64::MAX)),
    ] {
        let evaluator = StateEquals::new("k", &wanted);
        assert_ne!(with(found.clone()).await.ask(&evaluator).await.unwrap(), SATISFIED, "{found} {wanted}");
    }
    let evaluator = StateEquals::new("k", json!({"ok": true}));
    insta::assert_snapshot!(feedback(with(json!("no")).await.ask(&evaluator).await.unwrap()), @r#"`k` is "no"; it must be {"ok":true}."#);
    insta::assert_snapshot!(feedback(judged(&evaluator, &["x"]).await), @r#"`k` is not set; it must be {"ok":true}."#);
}

/// F6
#[tokio::test]
async fn stalled_halts_after_equal_passes_in_a_row() {
    let stalled = Stalled::new(3);
    for texts in [&["a"][..], &["a", "a"], &["a", "a", "b"], &["a", "b", "a"], &["a", "a", "b", "a", "a"]] {
        assert_eq!(judged(&stalled, texts).await, SATISFIED, "{texts:?}");
    }
    insta::assert_snapshot!(halt(judged(&stalled, &["b", "a", "a", "a"]).await), @"the last 3 passes came to the same");
    assert_eq!(judged(&Stalled::new(0), &["a"]).await, SATISFIED, "one pass is no repetition");
}

/// F6: the same words with other calls are something else.
#[tokio::test]
async fn stalled_looks_at_calls_too() {
    let call = |path: &str| {
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments: json!({"path": path}) };
        ChatMessage::new(Role::Assistant, [Content::Text("I read".into()), Content::ToolCall(call)])
    };
    for (second, expected) in [("a", true), ("b", false)] {
        let passes = Passes::default().then(&[call("a")], Draft::default()).await;
        let passes = passes.then(&[call(second)], Draft::default()).await;
        assert_eq!(passes.ask(&Stalled::new(2)).await.unwrap() != SATISFIED, expected);
    }
}

/// F6
#[tokio::test]
async fn oscillating_halts_at_a_return_after_something_else() {
    for texts in [&["a"][..], &["a", "a"], &["a", "b"], &["a", "b", "b"], &["a", "b", "c"]] {
        assert_eq!(judged(&Oscillating::new(), texts).await, SATISFIED, "{texts:?}");
    }
    insta::assert_snapshot!(halt(judged(&Oscillating::new(), &["c", "a", "b", "a"]).await), @"pass 4 came to the same as pass 2, after others in between");
}

/// F6
#[tokio::test]
async fn token_budget_counts_all_passes() {
    for (budget, stop, passes) in
        [(33, StopReason::Halted, 3), (34, StopReason::IterationLimit, 3), (11, StopReason::Halted, 1)]
    {
        let agent =
            LoopAgent::new("loop", spends("w").0, cap(3)).evaluator(TokenBudget::new(budget)).evaluator(never());
        let mut session = asked("go");
        assert_eq!(
            (go(&agent, &mut session).await.stop, outcome(&session).iterations.len()),
            (stop, passes),
            "{budget}"
        );
    }
    let passes = Passes::default().then(&[], Draft::default().usage(tokens(20, 1))).await;
    insta::assert_snapshot!(halt(passes.ask(&TokenBudget::new(20)).await.unwrap()), @"the loop used 21 tokens of 20");
    let most = Usage { input_tokens: u64::MAX, ..Usage::default() };
    let passes = Passes::default().then(&[], Draft::default().usage(most)).await;
    let passes = passes.then(&[], Draft::default().usage(most)).await;
    assert!(matches!(passes.ask(&TokenBudget::new(u64::MAX)).await.unwrap(), LoopEvaluation::Halt(_)));
}

/// F6
#[tokio::test(start_paused = true)]
async fn time_budget_halts_once_the_run_took_so_long() {
    let passes = Passes::of(&["a"]).await;
    let budget = TimeBudget::new(Duration::from_secs(90));
    tokio::time::advance(Duration::from_millis(89_999)).await;
    assert_eq!(passes.ask(&budget).await.unwrap(), SATISFIED);
    tokio::time::advance(Duration::from_millis(1)).await;
    insta::assert_snapshot!(halt(passes.ask(&budget).await.unwrap()), @"the run took 90.0s of 90.0s");
}

/// F8
#[tokio::test]
async fn any_of_objects_as_the_first_that_does() {
    let log = Log::default();
    let make = |a: &LoopEvaluation, b: &LoopEvaluation| {
        let (a, b) = (a.clone(), b.clone());
        let a: Box<dyn LoopEvaluator> = Box::new(noted("a", &log, move |_| a.clone()));
        any_of("any", [a, Box::new(noted("b", &log, move |_| b.clone()))])
    };
    let (fa, fb) = (LoopEvaluation::feedback("A"), LoopEvaluation::Halt("B".into()));
    for (a, b, expected, asked) in
        [(&SATISFIED, &SATISFIED, &SATISFIED, 2), (&fa, &fb, &fa, 1), (&SATISFIED, &fb, &fb, 2)]
    {
        let before = log.get().len();
        assert_eq!(judged(&make(a, b), &["x"]).await, *expected);
        assert_eq!(log.get().len() - before, asked);
    }
    assert_eq!(judged(&any_of::<UntilEscalated>("any", []), &["x"]).await, SATISFIED);
}

/// F8
#[tokio::test]
async fn all_of_objects_only_if_all_do() {
    let make = |evaluations: &[LoopEvaluation]| {
        all_of(
            "all",
            evaluations
                .iter()
                .map(|evaluation| scripted("member", std::slice::from_ref(evaluation)))
                .collect::<Vec<_>>(),
        )
    };
    let (fa, fb, stop) =
        (LoopEvaluation::feedback("A"), LoopEvaluation::feedback("B"), LoopEvaluation::Halt("h".into()));
    for (members, expected) in [
        (vec![fa.clone(), fb.clone()], fa.clone()),
        (vec![fa.clone(), SATISFIED, fb.clone()], SATISFIED),
        (vec![SATISFIED, fa.clone()], SATISFIED),
        (vec![fa.clone(), stop.clone()], stop),
        (vec![LoopEvaluation::again(), fb], LoopEvaluation::again()),
        (vec![], SATISFIED),
    ] {
        assert_eq!(judged(&make(&members), &["x"]).await, expected, "{members:?}");
    }
}

/// F8
#[tokio::test]
async fn at_most_is_satisfied_unasked_after_n_objections() {
    for options in [cap(9), fresh(9)] {
        let log = Log::default();
        let limited = at_most(2, noted("picky", &log, |_| LoopEvaluation::feedback("p")));
        assert_eq!(limited.name(), "picky");
        let agent = LoopAgent::new("loop", says("w").0, options).evaluator(limited).evaluator(until(5));
        let mut session = asked("go");
        assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
        let by: Vec<_> = outcome(&session).iterations.into_iter().map(|record| record.by).collect();
        assert_eq!(
            by,
            [Some("picky"), Some("picky"), Some("until"), Some("until"), None].map(|by| by.map(str::to_owned))
        );
        assert_eq!(log.get(), ["picky#1", "picky#2"]);
    }
    assert_eq!(judged(&at_most(0, UntilEscalated), &["x"]).await, SATISFIED);
    let passes = Passes::of(&["a", "b"]).await.objected(&["until_escalated"]);
    assert_eq!(passes.ask(&at_most(1, UntilEscalated)).await.unwrap(), SATISFIED);
    assert_eq!(passes.ask(&at_most(2, UntilEscalated)).await.unwrap(), LoopEvaluation::again());
}

/// F8
#[tokio::test]
async fn only_while_asks_while_its_condition_holds() {
    let log = Log::default();
    let early = only_while(|cx| cx.iteration < 3, noted("e", &log, |_| LoopEvaluation::feedback("f")));
    assert_eq!(early.name(), "e");
    let agent = LoopAgent::new("loop", says("w").0, cap(9)).evaluator(early);
    let mut session = asked("go");
    assert_eq!(go(&agent, &mut session).await.stop, StopReason::Completed);
    assert_eq!((outcome(&session).iterations.len(), log.get()), (3, vec!["e#1".to_owned(), "e#2".into()]));
}

/// A digest is stored, and compared on other machines: its value is part of the format.
#[tokio::test]
async fn a_digest_is_the_same_everywhere() {
    let contents = || {
        let call =
            ToolCall { id: "1".into(), name: "read".into(), arguments: json!({"a": 1, "b": {"c": [true], "d": null}}) };
        [Content::Text("I read".into()), Content::ToolCall(call)]
    };
    insta::assert_snapshot!(digest_of([]).await, @"0");
    insta::assert_snapshot!(digest_of([Content::Text("hello".into())]).await, @"17693675405125597761");
    insta::assert_snapshot!(digest_of(contents()).await, @"9173416610045628409");
}

#[tokio::test]
async fn a_digest_does_not_depend_on_ids_thoughts_or_the_order_of_keys() {
    let call = |id: &str, arguments: &str| {
        let arguments = serde_json::from_str(arguments).unwrap();
        Content::ToolCall(ToolCall { id: id.into(), name: "read".into(), arguments })
    };
    let one = digest_of([call("1", r#"{"a": 1, "b": {"c": 2, "d": 3}}"#)]).await;
    let two = digest_of([call("2", r#"{"b": {"d": 3, "c": 2}, "a": 1}"#)]).await;
    assert_eq!(one, two);
    let thought = Content::Reasoning { text: "hm".into(), signature: Some("s".into()) };
    assert_eq!(one, digest_of([thought, call("3", r#"{"a": 1, "b": {"c": 2, "d": 3}}"#)]).await);
    assert_ne!(one, digest_of([call("1", r#"{"a": 1, "b": {"c": 2, "d": 4}}"#)]).await);
    let texts = |texts: &[&str]| texts.iter().map(|text| Content::Text((*text).to_owned())).collect::<Vec<_>>();
    assert_ne!(digest_of(texts(&["ab", "c"])).await, digest_of(texts(&["a", "bc"])).await);
}

/// What a tool answers and the caller says is not what the pass said.
#[tokio::test]
async fn a_digest_is_of_what_the_assistant_said() {
    let said = ChatMessage::assistant("x");
    let result = agent_core::ToolResult { call_id: "1".into(), contents: vec![], is_error: false };
    let more = [said.clone(), ChatMessage::new(Role::Tool, [Content::ToolResult(result)]), ChatMessage::user("hm")];
    let digest = Passes::default().then(&more, Draft::default()).await.digest();
    assert_eq!(digest, Passes::default().then(&[said], Draft::default()).await.digest());
}

/// F7, E5: a function is an evaluator, shared or boxed.
#[tokio::test]
async fn an_evaluator_may_be_shared() {
    let shared: std::sync::Arc<dyn LoopEvaluator> =
        std::sync::Arc::new(evaluate_fn("e", |cx| if cx.iteration < 2 { LoopEvaluation::again() } else { SATISFIED }));
    for _ in 0..2 {
        let agent = LoopAgent::new("loop", says("w").0, cap(3)).evaluators([shared.clone(), shared.clone()]);
        let mut session = asked("go");
        go(&agent, &mut session).await;
        assert_eq!(outcome(&session).iterations[0].by.as_deref(), Some("e"));
    }
}
