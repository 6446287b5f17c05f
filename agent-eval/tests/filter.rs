//! Which cases are run.

use agent_eval::{EvalCase, EvalSet, Filter, Partition, Selection};
use proptest::prelude::*;
use serde_json::json;

fn set() -> EvalSet {
    serde_json::from_value(json!({
        "schema": "agent-eval/1", "name": "sql", "defaults": { "tags": ["db"] },
        "cases": [
            { "id": "join-slow", "input": { "text": "?" }, "tags": ["join"], "split": "test", "group": "a" },
            { "id": "join", "input": { "text": "?" }, "tags": ["join", "easy"], "split": "dev" },
            { "id": "sum", "input": { "text": "?" }, "tags": ["easy"] },
        ],
    }))
    .unwrap()
}

fn selected(filter: &str) -> Vec<String> {
    let (set, filter): (EvalSet, Filter) = (set(), filter.parse().unwrap());
    let cases: Vec<&EvalCase> = set.cases.iter().filter(|case| filter.matches(&set, case)).collect();
    cases.into_iter().map(|case| case.id.clone()).collect()
}

fn wrong(filter: &str) -> String {
    filter.parse::<Filter>().unwrap_err().to_string()
}

#[test]
fn terms_select_by_what_a_case_has() {
    assert_eq!(selected("all()"), ["join-slow", "join", "sum"]);
    assert_eq!(selected("none()"), [""; 0]);
    assert_eq!(selected("case(join)"), ["join-slow", "join"]);
    assert_eq!(selected("case(=join)"), ["join"]);
    assert_eq!(selected("case( ~ oin )"), ["join-slow", "join"]);
    assert_eq!(selected("case(/^(sum|.*slow)$/)"), ["join-slow", "sum"]);
    assert_eq!(selected("tag(easy)"), ["join", "sum"]);
    assert_eq!(selected("tag(eas)"), [""; 0]);
    assert_eq!(selected("tag(~eas)"), ["join", "sum"]);
    assert_eq!(selected("tag(db)"), ["join-slow", "join", "sum"]);
    assert_eq!(selected("split(test)"), ["join-slow"]);
    assert_eq!(selected("group(a)"), ["join-slow"]);
    assert_eq!(selected("set(sql)"), ["join-slow", "join", "sum"]);
    assert_eq!(selected("set(sq)"), [""; 0]);
}

#[test]
fn not_binds_stronger_than_and_and_that_stronger_than_or() {
    assert_eq!(selected("tag(join) & !case(/slow/)"), ["join"]);
    assert_eq!(selected("not tag(join) or tag(join) and split(dev)"), ["join", "sum"]);
    assert_eq!(selected("not (tag(join) or tag(easy))"), [""; 0]);
    assert_eq!(selected("case(sum)|case(slow)&tag(easy)"), ["sum"]);
    assert_eq!(selected("(case(sum)|case(slow))&tag(easy)"), ["sum"]);
    assert_eq!(selected("!!case(sum)"), ["sum"]);
    assert_eq!(selected(r"case(/a\/b|sum/)"), ["sum"]);
}

#[test]
fn a_broken_filter_is_shown_with_its_place() {
    insta::assert_snapshot!(wrong("tag(sql) & cse(join)"), @r#"
read the filter: unknown function `cse`; did you mean `case`? known are `all`, `case`, `group`, `none`, `set`, `split`, `tag`
  tag(sql) & cse(join)
             ^
"#);
    insta::assert_snapshot!(wrong("tagged"), @r#"
read the filter: unknown function `tagged`; known are `all`, `case`, `group`, `none`, `set`, `split`, `tag`
  tagged
  ^
"#);
    insta::assert_snapshot!(wrong("tag"), @r#"
read the filter: expected `(` after `tag`
  tag
     ^
"#);
    insta::assert_snapshot!(wrong("tag()"), @r#"
read the filter: expected a text, `=text`, `~text` or `/regex/`
  tag()
      ^
"#);
    insta::assert_snapshot!(wrong("tag(a"), @r#"
read the filter: expected `)`
  tag(a
       ^
"#);
    insta::assert_snapshot!(wrong("(tag(a)"), @r#"
read the filter: expected `)`
  (tag(a)
         ^
"#);
    insta::assert_snapshot!(wrong("tag(a) tag(b)"), @r#"
read the filter: expected `and`, `or` or the end
  tag(a) tag(b)
         ^
"#);
    insta::assert_snapshot!(wrong("tag(a) &"), @r#"
read the filter: expected one of `all`, `case`, `group`, `none`, `set`, `split`, `tag`
  tag(a) &
          ^
"#);
    insta::assert_snapshot!(wrong("tag(ä) & case(/(/)"), @r#"
read the filter: no regular expression: unclosed group
  tag(ä) & case(/(/)
                 ^
"#);
    insta::assert_snapshot!(wrong("case(/a)"), @r#"
read the filter: this regular expression has no end; expected `/`
  case(/a)
        ^
"#);
    insta::assert_snapshot!(wrong("all(x)"), @r#"
read the filter: `all` takes nothing; expected `)`
  all(x)
      ^
"#);
    insta::assert_snapshot!("hash:5/4".parse::<Partition>().unwrap_err(), @r#"
read the filter: expected a partition `hash:m/n` with m from 1 to n, such as `hash:1/4`
  hash:5/4
  ^
"#);
}

#[test]
fn a_selection_wants_all_of_its_parts() {
    let set = set();
    let selected = |selection: &Selection| set.cases.iter().filter(|case| selection.matches(&set, case)).count();
    assert_eq!(selected(&Selection::default()), 3);
    let substrings = vec!["sql::sum".to_owned(), "slow".to_owned()];
    let mut selection = Selection { substrings, ..Selection::default() };
    assert_eq!(selected(&selection), 2);
    selection.filters = vec!["tag(easy)".parse().unwrap()];
    assert_eq!(selected(&selection), 1);
    let parts = (1..=4).map(|index| {
        selection.partition = Partition::new(index, 4);
        selected(&selection)
    });
    assert_eq!(parts.sum::<usize>(), 1);
}

#[test]
fn a_partition_stays_the_same_in_every_version() {
    let part: Partition = "hash:1/2".parse().unwrap();
    let ids = ["a", "b", "c", "d", "e", "f"];
    assert_eq!(ids.map(|id| part.contains("sql", id)), [false, false, true, true, false, false]);
    assert_eq!(part.to_string(), "hash:1/2");
}

proptest! {
    #[test]
    fn each_case_is_in_one_part_of_a_partition(set in ".{0,8}", case in ".{0,8}", count in 1_u64..20) {
        let parts = (1..=count).filter(|index| Partition::new(*index, count).unwrap().contains(&set, &case));
        prop_assert_eq!(parts.count(), 1);
    }

    #[test]
    fn no_filter_panics(text in "[a-z()/|&!=~ä ]{0,20}") {
        if let Err(error) = text.parse::<Filter>() {
            prop_assert!(error.to_string().ends_with('^'));
        }
    }
}

#[test]
fn a_filter_of_any_size_is_read_or_refused() {
    let wide = vec!["case(a)"; 100_000];
    for word in ["|", "&", " or "] {
        assert!(wide.join(word).parse::<Filter>().is_ok());
    }
    for (open, close) in [("(", ")"), ("!", ""), ("not ", ""), ("!(", ")")] {
        let nested = |count: usize| format!("{}all(){}", open.repeat(count), close.repeat(count)).parse::<Filter>();
        assert!(nested(50).is_ok());
        let error = nested(100_000).unwrap_err();
        assert_eq!(error.message, "more than 100 parentheses and negations in one another");
    }
}
