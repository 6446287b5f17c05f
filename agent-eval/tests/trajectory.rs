//! Tool calls that were made against those that are expected.

use agent_core::ToolCall;
use agent_eval::{CallMatcher, ExpectedCalls, Outcome, Verdict, stats::lcs_f1};
use proptest::prelude::*;
use serde_json::{Value, json};

fn made(calls: &[(&str, Value)]) -> Vec<ToolCall> {
    let call = |(name, arguments): &(&str, Value)| ToolCall {
        id: "id".to_owned(),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    calls.iter().map(call).collect()
}

fn judged(expected: Value, calls: &[(&str, Value)]) -> Outcome {
    let expected: ExpectedCalls = serde_json::from_value(expected).unwrap();
    CallMatcher::new(&expected).unwrap().check(&made(calls))
}

fn passes(expected: Value, calls: &[(&str, Value)]) -> bool {
    judged(expected, calls).verdict == Verdict::Pass
}

/// Expected calls of these tools in a mode, whatever their arguments.
fn names(mode: &Value, names: &str) -> Value {
    let calls: Vec<Value> = names.chars().map(|name| json!({ "name": name.to_string() })).collect();
    json!({ "mode": mode, "arguments": "ignore", "calls": calls })
}

fn of_names(mode: &Value, expected: &str, actual: &str) -> bool {
    let actual: Vec<String> = actual.chars().map(String::from).collect();
    let actual: Vec<(&str, Value)> = actual.iter().map(|name| (name.as_str(), json!({}))).collect();
    passes(names(mode, expected), &actual)
}

#[test]
fn each_mode_wants_what_it_says() {
    let rows = ["exact", "in_order", "any_order", "subset", "superset"].map(|mode| {
        let mode = json!(mode);
        let pairs = [
            ("ab", "ab"),
            ("ab", "ba"),
            ("ab", "axb"),
            ("ab", "bxa"),
            ("ab", "a"),
            ("ab", "abb"),
            ("aab", "ab"),
            ("ab", ""),
        ];
        let row: String =
            pairs.map(|(expected, actual)| if of_names(&mode, expected, actual) { '+' } else { '-' }).iter().collect();
        format!("{:9} {row}", mode.as_str().unwrap())
    });
    insta::assert_snapshot!(rows.join("\n"), @r#"
exact     +-------
in_order  +-+--+--
any_order ++------
subset    ++--+-++
superset  ++++-+--
"#);
}

#[test]
fn no_expected_calls_mean_that_none_may_be_made() {
    for mode in ["exact", "any_order", "subset"].map(|mode| json!(mode)) {
        assert_eq!((of_names(&mode, "", ""), of_names(&mode, "", "a")), (true, false), "{mode}");
    }
}

#[test]
fn the_f1_is_that_of_the_longest_common_subsequence() {
    assert!(of_names(&json!({ "f1": 0.75 }), "abca", "adca"));
    assert!(!of_names(&json!({ "f1": 0.76 }), "abca", "adca"));
    assert!(of_names(&json!({ "f1": 1.0 }), "", ""));
    let outcome = judged(
        names(&json!({ "f1": 0.9 }), "so"),
        &[("s", json!({})), ("s", json!({})), ("o", json!({})), ("a", json!({})), ("l", json!({}))],
    );
    assert_eq!(outcome.value, Some(4.0 / 7.0));
}

#[test]
fn partial_arguments_are_paired_as_well_as_can_be() {
    let expected = json!({ "mode": "any_order", "arguments": "subset", "calls": [
        { "name": "search" }, { "name": "search", "arguments": { "q": 1 } },
    ] });
    assert!(passes(expected, &[("search", json!({ "q": 1 })), ("search", json!({ "z": 2 }))]));
}

#[test]
fn a_duplicate_call_stands_once() {
    let search = json!({ "name": "search", "arguments": { "q": 1 } });
    for mode in ["exact", "any_order", "subset"] {
        let expected = json!({ "mode": mode, "calls": [search] });
        assert!(!passes(expected, &[("search", json!({ "q": 1 })), ("search", json!({ "q": 1 }))]), "{mode}");
    }
    let twice = json!({ "mode": "superset", "calls": [search, search] });
    assert!(!passes(twice, &[("search", json!({ "q": 1 }))]));
}

#[test]
fn arguments_are_compared_by_their_mode() {
    let fits = |mode: Value, expected: Value, actual: Value| {
        passes(json!({ "arguments": mode, "calls": [{ "name": "t", "arguments": expected }] }), &[("t", actual)])
    };
    assert!(fits(
        json!("exact"),
        json!({ "a": 1, "b": { "c": [1, 2.0] } }),
        json!({ "b": { "c": [1.0, 2] }, "a": 1.0 })
    ));
    assert!(!fits(json!("exact"), json!({ "a": 1 }), json!({ "a": 1, "b": 2 })));
    assert!(!fits(
        json!("exact"),
        json!({ "a": 9_007_199_254_740_993_i64 }),
        json!({ "a": 9_007_199_254_740_992_i64 })
    ));
    assert!(!fits(json!("exact"), json!({ "a": 1 }), json!({ "a": "1" })));
    assert!(fits(json!("subset"), json!({ "b": { "c": 1 } }), json!({ "a": 0, "b": { "c": 1.0, "d": 2 } })));
    assert!(!fits(json!("subset"), json!({ "b": [1] }), json!({ "b": [1, 2] })));
    assert!(fits(json!("ignore"), json!({ "a": 1 }), json!(null)));
    assert!(fits(json!({ "keys": ["/b/c"] }), json!({ "b": { "c": 1 }, "x": 1 }), json!({ "b": { "c": 1 }, "y": 2 })));
    assert!(!fits(json!({ "keys": ["/b/c"] }), json!({ "b": { "c": 1 } }), json!({ "b": {} })));
    assert!(fits(json!({ "keys": ["/none"] }), json!({}), json!({})));
}

#[test]
fn a_call_may_say_its_own_mode_and_match_single_fields() {
    let fits = |fields: Value, actual: Value| {
        let call = json!({ "name": "t", "arguments": { "a": 1 }, "mode": "exact", "fields": fields });
        passes(json!({ "arguments": "ignore", "calls": [call] }), &[("t", actual)])
    };
    assert!(fits(json!({ "/b": "any" }), json!({ "a": 1, "b": null })));
    assert!(!fits(json!({ "/b": "any" }), json!({ "a": 1 })));
    assert!(!fits(json!({ "/b": "any" }), json!({ "a": 2, "b": 1 })));
    assert!(!fits(json!({ "/b": "any" }), json!({ "a": 1, "b": 1, "c": 1 })));
    assert!(fits(json!({ "/a": { "near": { "value": 3, "tolerance": 0.5 } } }), json!({ "a": 3.5 })));
    assert!(!fits(json!({ "/a": { "near": { "value": 3, "tolerance": 0.5 } } }), json!({ "a": 3.6 })));
    assert!(fits(json!({ "/b/c~1d": { "regex": "^x+$" } }), json!({ "a": 1, "b": { "c/d": "xx" } })));
    assert!(!fits(json!({ "/b": { "regex": "^x+$" } }), json!({ "a": 1, "b": 7 })));
    assert!(fits(json!({ "/b": { "one_of": [1, "x"] } }), json!({ "a": 1, "b": 1.0 })));
    assert!(!fits(json!({ "/b": { "one_of": [1, "x"] } }), json!({ "a": 1, "b": 2 })));
}

#[test]
fn a_failure_shows_both_lists() {
    let shown = |expected: Value, calls: &[(&str, Value)]| {
        let outcome = judged(expected, calls);
        assert_eq!(outcome.verdict, Verdict::Fail);
        format!("{}\n{}", outcome.reason, outcome.diff.unwrap())
    };
    let calls =
        [("search", json!({ "q": "a" })), ("log", json!({})), ("open", json!({ "id": 2 })), ("answer", json!({}))];
    let expected = |mode: Value| {
        json!({ "mode": mode, "calls": [
            { "name": "search", "arguments": { "q": "a" } },
            { "name": "open", "mode": "subset", "fields": { "/id": { "near": { "value": 1, "tolerance": 0.5 } } } },
            { "name": "answer", "mode": "ignore" },
            { "name": "close", "mode": { "keys": ["/id"] }, "arguments": { "id": 1 }, "fields": { "/why": { "regex": "^x" }, "/how": { "one_of": [1] }, "/who": "any" } },
        ] })
    };
    insta::assert_snapshot!(shown(expected(json!("exact")), &calls), @r#"
2 of 4 expected calls not made, 2 of 4 calls not expected (in this order, and no others)
  search {"q":"a"}
- open {} (or more), /id is 1 ± 0.5
+ log {}
+ open {"id":2}
  answer {}
- close {"id":1} (at /id), /how is one of [1], /who is there, /why matches /^x/
"#);
    insta::assert_snapshot!(shown(expected(json!("in_order")), &calls), @r#"
2 of 4 expected calls not made (in this order)
  search {"q":"a"}
- open {} (or more), /id is 1 ± 0.5
  (also made) log {}
  (also made) open {"id":2}
  answer {}
- close {"id":1} (at /id), /how is one of [1], /who is there, /why matches /^x/
"#);
    insta::assert_snapshot!(shown(expected(json!("any_order")), &calls), @r#"
2 of 4 expected calls not made, 2 of 4 calls not expected (in any order, and no others)
  search {"q":"a"}
- open {} (or more), /id is 1 ± 0.5
  answer {}
- close {"id":1} (at /id), /how is one of [1], /who is there, /why matches /^x/
+ log {}
+ open {"id":2}
"#);
    insta::assert_snapshot!(shown(expected(json!("subset")), &calls), @r#"
2 of 4 calls not expected (only expected calls)
  search {"q":"a"}
  (not made) open {} (or more), /id is 1 ± 0.5
  answer {}
  (not made) close {"id":1} (at /id), /how is one of [1], /who is there, /why matches /^x/
+ log {}
+ open {"id":2}
"#);
    insta::assert_snapshot!(shown(expected(json!("superset")), &calls), @r#"
2 of 4 expected calls not made (all expected calls)
  search {"q":"a"}
- open {} (or more), /id is 1 ± 0.5
  answer {}
- close {"id":1} (at /id), /how is one of [1], /who is there, /why matches /^x/
  (also made) log {}
  (also made) open {"id":2}
"#);
    insta::assert_snapshot!(shown(expected(json!({ "f1": 0.9 })), &calls), @r#"
2 of 4 expected calls not made, 2 of 4 calls not expected (F1 0.500 is below 0.9)
  search {"q":"a"}
- open {} (or more), /id is 1 ± 0.5
+ log {}
+ open {"id":2}
  answer {}
- close {"id":1} (at /id), /how is one of [1], /who is there, /why matches /^x/
"#);
    insta::assert_snapshot!(shown(json!({ "calls": [] }), &calls[..1]), @r#"
1 of 1 call not expected (in this order, and no others)
+ search {"q":"a"}
"#);
}

#[test]
fn an_expectation_that_cannot_be_used_is_refused() {
    let refused =
        |expected: Value| CallMatcher::new(&serde_json::from_value(expected).unwrap()).unwrap_err().to_string();
    let field = |field: Value| json!({ "calls": [{ "name": "t", "fields": { "/a": field } }] });
    insta::assert_snapshot!(refused(json!({ "mode": "superset", "calls": [] })), @"expect no calls where others may be made: everything passes; list calls, or use the mode `exact`");
    insta::assert_snapshot!(refused(json!({ "mode": { "f1": 0.0 }, "calls": [] })), @"expect an F1 of 0; it must be above 0, and 1 at most");
    insta::assert_snapshot!(refused(json!({ "calls": [{ "name": "" }] })), @"expect a call without a name");
    insta::assert_snapshot!(refused(json!({ "arguments": { "keys": [] }, "calls": [{ "name": "t" }] })), @"expect a call of `t`: compare no keys; list JSON pointers, or use the mode `ignore`");
    insta::assert_snapshot!(refused(json!({ "arguments": { "keys": ["a"] }, "calls": [{ "name": "t" }] })), @"expect a call of `t`: `a` is no JSON pointer (RFC 6901); write `/a`");
    insta::assert_snapshot!(refused(json!({ "calls": [{ "name": "t", "fields": { "a": "any" } }] })), @"expect a call of `t`: `a` is no JSON pointer (RFC 6901); write `/a`");
    insta::assert_snapshot!(refused(field(json!({ "near": { "value": 1, "tolerance": -1 } }))), @"expect a call of `t`: match `/a`: the tolerance -1 is negative");
    insta::assert_snapshot!(refused(field(json!({ "one_of": [] }))), @"expect a call of `t`: match `/a`: `one_of` has no values");
    assert!(refused(field(json!({ "regex": "(" }))).starts_with("expect a call of `t`: match `/a`: regex parse error"));
}

/// The most pairs there are, by trying all of them.
fn most_pairs(expected: &[Vec<bool>], free: &mut Vec<bool>) -> usize {
    let Some((first, rest)) = expected.split_first() else { return 0 };
    let mut best = most_pairs(rest, free);
    for at in 0..free.len() {
        if free[at] && first[at] {
            free[at] = false;
            best = best.max(1 + most_pairs(rest, free));
            free[at] = true;
        }
    }
    best
}

/// Up to 7 calls whose arguments are some of three fields, each 0 or 1.
fn calls() -> impl Strategy<Value = Vec<Value>> {
    let field = || prop::option::of(0..2_u8);
    let arguments = (field(), field(), field()).prop_map(|(a, b, c)| {
        let fields = [("a", a), ("b", b), ("c", c)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
        Value::Object(fields.collect())
    });
    prop::collection::vec(arguments, 0..=7)
}

proptest! {
    #[test]
    fn as_many_calls_are_paired_as_by_trying_all(expected in calls(), actual in calls()) {
        let within = |part: &Value, whole: &Value| {
            part.as_object().unwrap().iter().all(|(key, value)| whole.get(key) == Some(value))
        };
        let fits: Vec<Vec<bool>> =
            expected.iter().map(|part| actual.iter().map(|whole| within(part, whole)).collect()).collect();
        let most = most_pairs(&fits, &mut vec![true; actual.len()]);
        let patterns: Vec<Value> = expected.iter().map(|arguments| json!({ "name": "t", "arguments": arguments })).collect();
        let made: Vec<(&str, Value)> = actual.iter().map(|arguments| ("t", arguments.clone())).collect();
        let total = expected.len() + actual.len();
        let holds = [
            ("any_order", most * 2 == total),
            ("subset", most == actual.len()),
            ("superset", most == expected.len()),
        ];
        for (mode, holds) in holds {
            if mode == "superset" && expected.is_empty() {
                continue;
            }
            let outcome = judged(json!({ "mode": mode, "arguments": "subset", "calls": patterns }), &made);
            prop_assert_eq!(outcome.passed(), holds, "{} {:?}", mode, outcome);
            let paired = outcome.value.unwrap() * f64::from(u32::try_from(total).unwrap()) / 2.0;
            prop_assert!(total == 0 || (paired - f64::from(u32::try_from(most).unwrap())).abs() < 1e-9);
        }
    }

    #[test]
    fn ordered_pairs_are_the_longest_common_subsequence(expected in "[abc]{0,7}", actual in "[abc]{0,7}") {
        let letters = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let (wanted, found) = (letters(&expected), letters(&actual));
        let f1 = lcs_f1(&wanted.iter().map(String::as_str).collect::<Vec<_>>(), &found.iter().map(String::as_str).collect::<Vec<_>>());
        let made: Vec<(&str, Value)> = found.iter().map(|name| (name.as_str(), json!({}))).collect();
        let outcome = judged(names(&json!("exact"), &expected), &made);
        prop_assert!((outcome.value.unwrap() - f1).abs() < 1e-12);
        prop_assert_eq!(outcome.passed(), expected == actual);
    }
}
