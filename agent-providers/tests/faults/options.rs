//! What a client is asked to do, over a real connection.

use std::time::Duration;

use agent_core::{AgentExt, ChatAgent, ChatAgentOptions, ChatMessage, RunContext, Session, run_typed};
use agent_providers::{HttpOptions, OpenAi, OpenAiResponses, TimeOuts};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    outcome,
    protocols::{KEY, protocols},
    server::{Server, Step, head},
};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Order {
    customer: Customer,
    items: Vec<Item>,
    note: Option<String>,
    #[serde(default)]
    express: bool,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Customer {
    name: String,
    age: Option<u8>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Item {
    kind: Kind,
    count: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Bread,
    /// Of any sort.
    Cheese,
}

#[tokio::test]
async fn a_typed_answer_is_asked_for_in_the_dialect_of_each_protocol() {
    let text =
        r#"{"customer":{"name":"Ann","age":null},"items":[{"kind":"cheese","count":2}],"note":null,"express":true}"#;
    for protocol in protocols() {
        let script = vec![head(200, protocol.content_type, ""), Step::Send((protocol.says)(text).into())];
        let server = Server::start(vec![script]).await;
        let (client, _) = (protocol.client)(&server.url, TimeOuts::default());
        let agent = ChatAgent::new("clerk", client, ChatAgentOptions::default());
        let mut session = Session::new();
        session.push("Two cheeses for Ann, quickly.");
        let typed = run_typed::<Order>(&agent, &mut session, &RunContext::default()).await.unwrap();

        let customer = Customer { name: "Ann".into(), age: None };
        let items = vec![Item { kind: Kind::Cheese, count: 2 }];
        assert_eq!(typed.value, Order { customer, items, note: None, express: true }, "{}", protocol.name);
        let requests = server.requests();
        let (_, body) = requests[0].split_once("\r\n\r\n").unwrap();
        let body = serde_json::from_str::<Value>(body).unwrap();
        insta::assert_json_snapshot!(format!("typed-{}", protocol.name), body);
    }
}

#[tokio::test]
async fn an_agent_runs_on_each_protocol() {
    for protocol in protocols() {
        let script =
            vec![head(200, protocol.content_type, ""), Step::Send((protocol.says)("Good day – to you.").into())];
        let server = Server::start(vec![script]).await;
        let (client, _) = (protocol.client)(&server.url, TimeOuts::default());
        let agent = ChatAgent::new("greeter", client, ChatAgentOptions::default());
        let response = agent.ask(&mut Session::new(), ChatMessage::user("Hello")).await.unwrap();
        assert_eq!(response.text(), "Good day – to you.", "{}", protocol.name);
    }
}

#[tokio::test]
async fn the_longest_time_outs_are_none() {
    let time_outs = TimeOuts { connect: Duration::MAX, head: Duration::MAX, idle: Duration::MAX, whole: Duration::MAX };
    for protocol in protocols() {
        let script = vec![head(200, protocol.content_type, ""), Step::Send(protocol.stream.into())];
        let refusal = vec![head(500, "text/html", ""), Step::Send("no".into())];
        let page = vec![head(200, "text/html", ""), Step::Send("no".into())];
        let server = Server::start(vec![script, refusal, page]).await;
        let (client, _) = (protocol.client)(&server.url, time_outs);
        assert_eq!(outcome(&client).await.unwrap().message.text(), "Let me add – twice.", "{}", protocol.name);
        outcome(&client).await.unwrap_err();
        outcome(&client).await.unwrap_err();
    }
}

#[tokio::test]
async fn headers_of_the_callers_choice_are_sent_and_win() {
    let refusal = "{\"error\":{\"message\":\"who is 0123456789secret?\"}}";
    let server = Server::start(vec![vec![head(401, "application/json", ""), Step::Send(refusal.into())]]).await;
    let options = HttpOptions {
        base_url: Some(format!("{}/prefix/", server.url)),
        headers: vec![("x-title".into(), "tests".into()), ("authorization".into(), "Token 0123456789secret".into())],
        ..HttpOptions::default()
    };
    let client = OpenAi::new("m", KEY, options).unwrap();
    let error = outcome(&client).await.unwrap_err();

    let requests = server.requests();
    assert!(requests[0].starts_with("POST /prefix/chat/completions HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("\r\nx-title: tests\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("\r\nauthorization: Token 0123456789secret\r\n"), "{}", requests[0]);
    assert!(!requests[0].contains(KEY));
    assert!(!format!("{error:?} {client:?}").contains("0123456789secret"), "{error:?} {client:?}");
}

#[test]
fn a_client_is_made_of_variables_and_a_missing_one_is_named() {
    let vars = |set: &'static [(&str, &str)]| {
        move |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
    };
    let all = vars(&[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "m"), ("OPENAI_BASE_URL", "http://localhost:1/v1")]);
    let no_key = vars(&[("OPENAI_MODEL", "m")]);
    let no_model = vars(&[("OPENAI_API_KEY", "k")]);
    let debug = format!("{:?} {:?}", OpenAi::from_vars(all).unwrap(), OpenAiResponses::from_vars(all).unwrap());
    assert_eq!(debug.matches("openai@localhost:1").count(), 1, "{debug}");
    assert_eq!(debug.matches("openai-responses@localhost:1").count(), 1, "{debug}");
    let errors = [
        OpenAi::from_vars(no_key).unwrap_err(),
        OpenAi::from_vars(no_model).unwrap_err(),
        OpenAiResponses::from_vars(no_key).unwrap_err(),
        OpenAi::new("m", "two\nlines", HttpOptions::default()).unwrap_err(),
        OpenAi::new("m", KEY, HttpOptions { headers: vec![("a b".into(), "c".into())], ..HttpOptions::default() })
            .unwrap_err(),
    ];
    insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"));
}
