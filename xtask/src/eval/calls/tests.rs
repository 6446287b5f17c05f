//! The cases of `evals/calls` ask for what their tools can do.

use agent_core::{RunContext, Session, ToolCall, ToolContext};
use agent_eval::FieldMatcher;
use serde_json::{Map, Value, json};

use super::{super::tests::load, tools::tools, tools_of};

#[test]
fn every_tool_that_a_case_speaks_of_is_offered() {
    for case in load("calls").cases {
        let offered = tools_of(&case).unwrap();
        let expected = case.expected_calls.iter().flat_map(|calls| &calls.calls).map(|call| &call.name);
        let lacking: Vec<&String> =
            expected.chain(&case.forbidden_tools).filter(|name| !offered.contains(name)).collect();
        assert_eq!(lacking, Vec::<&String>::new(), "{}", case.id);
    }
}

#[test]
fn each_kind_of_case_expects_as_many_calls_as_its_name_says() {
    for case in load("calls").cases {
        let calls = case.expected_calls.as_ref().unwrap().calls.len();
        let kind = |name: &str| case.tags.contains(name);
        let is_right = match calls {
            0 => kind("irrelevance"),
            1 => kind("simple") || kind("multiple"),
            _ => kind("parallel"),
        };
        assert!(is_right, "{}: {calls} calls, {:?}", case.id, case.tags);
    }
}

/// A call that meets what a case expects, where a matcher says what.
fn example(call: &agent_eval::ExpectedCall) -> Map<String, Value> {
    let mut arguments = call.arguments.clone();
    for (pointer, matcher) in &call.fields {
        let value = match matcher {
            // `6` and not `6.0`: some tools want whole numbers.
            FieldMatcher::Near { value, .. } => value.to_string().parse().unwrap(),
            FieldMatcher::OneOf(values) => values[0].clone(),
            FieldMatcher::Any | FieldMatcher::Regex(_) => json!("text"),
        };
        arguments.insert(pointer[1..].to_owned(), value);
    }
    arguments
}

#[tokio::test]
async fn every_expected_call_can_be_made() {
    let tools = tools();
    for case in load("calls").cases {
        for call in &case.expected_calls.as_ref().unwrap().calls {
            let tool = tools.iter().find(|tool| tool.spec().name == call.name).unwrap();
            let call =
                ToolCall { id: "1".into(), name: call.name.as_str().into(), arguments: Value::Object(example(call)) };
            let cx = ToolContext { call, session: Session::new(), run: RunContext::default() };
            let output = tool.call(cx).await.unwrap_or_else(|error| panic!("{}: {error}", case.id));
            assert!(!output.is_error && !output.contents.is_empty(), "{}: {output:?}", case.id);
        }
    }
}

#[test]
fn a_case_without_known_tools_is_an_error() {
    let mut case = load("calls").cases.remove(0);
    let says = |tools: Value| {
        case.metadata.insert("tools".into(), tools);
        tools_of(&case).unwrap_err().to_string()
    };
    let said = [json!(["get_whether"]), json!([]), json!("get_weather")].map(says);
    insta::assert_snapshot!(said.join("\n"), @r"
    give the case `weather-oslo` its tools: there is no tool `get_whether`
    give the case `weather-oslo` its tools: it names none; list them under `metadata.tools`
    give the case `weather-oslo` its tools: it names none; list them under `metadata.tools`
    ");
}
