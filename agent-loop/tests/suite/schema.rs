//! `MatchesSchema`.

use agent_core::{AgentExt, BoxError, ErrorKind, Session, StopReason, testing::ScriptedAgent};
use agent_loop::{LoopAgent, LoopEvaluation, LoopOptions, MatchesSchema};
use schemars::JsonSchema;
use serde_json::json;

use crate::support::Passes;

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Person {
    name: String,
    age: u8,
}

async fn evaluate(evaluator: &MatchesSchema, answer: &str) -> LoopEvaluation {
    Passes::of(&[answer]).await.ask(evaluator).await.unwrap()
}

async fn feedback(evaluator: &MatchesSchema, answer: &str) -> String {
    match evaluate(evaluator, answer).await {
        LoopEvaluation::Continue(Some(text)) => text,
        other => panic!("no feedback: {other:?}"),
    }
}

#[tokio::test]
async fn json_of_the_wanted_form_is_enough_fenced_or_not() {
    let person = MatchesSchema::of::<Person>();
    for answer in [r#"{"name": "Ada", "age": 36}"#, "\n```json\n{\"name\": \"Ada\", \"age\": 36}\n```\n"] {
        assert_eq!(evaluate(&person, answer).await, LoopEvaluation::Satisfied, "{answer}");
    }
}

#[tokio::test]
async fn violations_are_told_with_their_place() {
    let people = MatchesSchema::new(json!({
        "type": "array",
        "maxItems": 1,
        "items": {
            "type": "object",
            "properties": { "name": { "type": "string" }, "role": { "enum": ["maker", "critic"] } },
            "required": ["name"],
            "additionalProperties": false,
        },
    }));
    insta::assert_snapshot!(feedback(&people, r#"[{"name": 3, "role": "boss"}, {"a/b": 1}]"#).await, @r#"
    The answer does not match its JSON Schema:

    - the answer: [{"name":3,"role":"boss"},{"a/b":1}] has more than 1 item
    - `/0/name`: 3 is not of type "string"
    - `/0/role`: "boss" is not one of "maker" or "critic"
    - `/1`: Additional properties are not allowed ('a/b' was unexpected)
    - `/1`: "name" is a required property

    Answer with the corrected JSON and nothing else.
    "#);
}

#[tokio::test]
async fn many_or_long_violations_are_cut() {
    let numbers = MatchesSchema::new(json!({ "items": { "type": "number" } }));
    let answer = json!(vec!["x".repeat(1_000); 23]).to_string();
    let text = feedback(&numbers, &answer).await;
    assert_eq!(text.lines().filter(|line| line.starts_with("- `/")).count(), 20);
    assert!(text.contains("\n- and 3 more\n"), "{text}");
    assert!(text.contains("is not of type \"number\""), "what was expected is not cut off: {text}");
    assert!(text.len() < 8_000, "{} bytes", text.len());
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_told_the_schema() {
    insta::assert_snapshot!(feedback(&MatchesSchema::of::<Person>(), "Her name is Ada.").await, @r#"
    The answer is not JSON: expected value at line 1 column 1. Answer with JSON that matches this schema, and nothing else:

    {"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"age":{"format":"uint8","maximum":255,"minimum":0,"type":"integer"},"name":{"type":"string"}},"required":["name","age"],"title":"Person","type":"object"}
    "#);
}

#[tokio::test]
async fn a_schema_that_is_none_is_an_error_that_names_it() {
    let broken = MatchesSchema::new(json!({ "properties": { "age": { "type": "numbr" } } }));
    let error = Passes::of(&["{}"]).await.ask(&broken).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Evaluator);
    insta::assert_snapshot!(error, @r#"match an answer to a schema that is no JSON Schema: `/properties/age/type`: "numbr" is not valid under any of the schemas listed in the 'anyOf' keyword"#);
}

#[tokio::test]
async fn a_schema_elsewhere_is_not_loaded() {
    let remote = MatchesSchema::new(json!({ "$ref": "http://127.0.0.1:9/person.json" }));
    let error = Passes::of(&["{}"]).await.ask(&remote).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Evaluator);
    insta::assert_snapshot!(error, @"match an answer to a schema that is no JSON Schema: the schema: Resource 'http://127.0.0.1:9/person.json' is not present in a registry and retrieving it failed: `resolve-http` feature or a custom resolver is required to resolve external schemas via HTTP");
}

#[tokio::test]
async fn a_loop_goes_on_until_the_answer_fits() -> Result<(), BoxError> {
    let worker =
        ScriptedAgent::new("worker").says("Ada").says(r#"{"name": "Ada"}"#).says(r#"{"name": "Ada", "age": 36}"#);
    let agent = LoopAgent::new("form", worker.clone(), LoopOptions::default()).evaluator(MatchesSchema::of::<Person>());
    let response = agent.ask(&mut Session::new(), "Who?").await?;
    assert_eq!((response.stop, worker.runs()), (StopReason::Completed, 3));
    Ok(())
}
