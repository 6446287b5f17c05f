//! Todo tools and `TodosDone`.

use std::num::NonZeroU32;

use agent_core::{
    AgentExt, BoxError, ChatAgent, ChatAgentOptions, ChatMessage, Content, Role, RunContext, Session, StopReason,
    ToolCall, Usage, testing::ScriptedClient,
};
use agent_loop::{ContextMode, LoopAgent, LoopOptions, LoopOutcome, TodosDone, todo_tools};
use serde_json::{Value, json};

fn call(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
}

/// Calls of one answer.
fn calls(calls: impl IntoIterator<Item = Content>) -> ChatMessage {
    ChatMessage::new(Role::Assistant, calls)
}

fn agent(client: &ScriptedClient) -> ChatAgent {
    let agent = ChatAgent::new("worker", client.clone(), ChatAgentOptions::default());
    todo_tools().into_iter().fold(agent, ChatAgent::tool)
}

fn in_loop(client: &ScriptedClient, context: ContextMode, cap: u32) -> LoopAgent {
    let options = LoopOptions { max_iterations: NonZeroU32::new(cap).unwrap(), context, ..LoopOptions::default() };
    LoopAgent::new("work", agent(client), options).evaluator(TodosDone::new())
}

/// What the tools answered, in order.
fn results(session: &Session) -> Vec<String> {
    session.messages().iter().flat_map(ChatMessage::tool_results).map(agent_core::ToolResult::text).collect()
}

#[tokio::test]
async fn calls_of_one_answer_lose_nothing_of_each_other() -> Result<(), BoxError> {
    let adds =
        (0..20).map(|n| call(&n.to_string(), "todo_add", json!({ "titles": [format!("a{n}"), format!("b{n}")] })));
    let completes = (1..=40).map(|n| call(&n.to_string(), "todo_complete", json!({ "ids": [n] })));
    let more = call("x", "todo_add", json!({ "titles": ["last"] }));
    let client = ScriptedClient::new()
        .reply(calls(adds), Usage::default())
        .reply(calls(completes.chain([more])), Usage::default())
        .calls("y", "todo_list", json!({}))
        .says("done");
    let mut session = Session::new();
    agent(&client).ask(&mut session, "Plan.").await?;
    let list = results(&session).pop().unwrap();
    let (done, open): (Vec<&str>, Vec<&str>) = list.lines().partition(|line| line.starts_with("- [x]"));
    assert_eq!((done.len(), open), (40, vec!["- [ ] 41: last"]));
    Ok(())
}

#[tokio::test]
async fn a_loop_goes_on_until_nothing_is_open() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .says("I shall plan.")
        .calls("1", "todo_add", json!({ "titles": ["dig", "plant"] }))
        .says("Planned.")
        .calls("2", "todo_complete", json!({ "ids": [1] }))
        .says("Dug.")
        .calls("3", "todo_complete", json!({ "ids": [2] }))
        .says("Planted.");
    let mut session = Session::new();
    let response = in_loop(&client, ContextMode::Shared, 10).ask(&mut session, "A garden, please.").await?;
    assert_eq!((response.stop, response.text()), (StopReason::Completed, "Planted.".to_owned()));
    let feedback: Vec<String> =
        LoopOutcome::of(&session, "work").unwrap().iterations.into_iter().filter_map(|i| i.feedback).collect();
    insta::assert_snapshot!(feedback.join("\n---\n"), @r"
    There are no todos for this request. Write down what it takes with `todo_add`, do it, and complete each todo with `todo_complete` once it is done.
    ---
    These todos are still open:

    - 1: dig
    - 2: plant

    Do them, and complete each with `todo_complete` once it is done.
    ---
    These todos are still open:

    - 2: plant

    Do them, and complete each with `todo_complete` once it is done.
    ");
    insta::assert_snapshot!(results(&session).join("\n---\n"), @r"
    Added:
    - 1: dig
    - 2: plant
    ---
    Done: 1
    ---
    Done: 2
    ");
    insta::assert_snapshot!(session.state()["todos"], @r#"[{"add":{"items":[{"id":1,"title":"dig"},{"id":2,"title":"plant"}],"turn":0}},{"complete":{"ids":[1]}},{"complete":{"ids":[2]}}]"#);
    Ok(())
}

#[tokio::test]
async fn a_fresh_context_keeps_the_todos() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .calls("1", "todo_add", json!({ "titles": ["dig"] }))
        .says("Planned.")
        .calls("2", "todo_complete", json!({ "ids": [1] }))
        .says("Dug.");
    let mut session = Session::new();
    let response = in_loop(&client, ContextMode::Fresh, 10).ask(&mut session, "A garden, please.").await?;
    assert_eq!((response.stop, client.requests().len()), (StopReason::Completed, 4));
    assert_eq!(client.requests()[2].messages.len(), 2, "the first pass was forgotten");
    Ok(())
}

#[tokio::test]
async fn todos_survive_a_stored_session_and_ids_go_on() -> Result<(), BoxError> {
    let mut session = Session::new();
    let first = ScriptedClient::new().calls("1", "todo_add", json!({ "titles": ["dig"] })).says("Planned.");
    let response = in_loop(&first, ContextMode::Shared, 1).ask(&mut session, "A garden, please.").await?;
    assert_eq!(response.stop, StopReason::IterationLimit);

    let mut session: Session = serde_json::from_str(&serde_json::to_string(&session)?)?;
    let second = ScriptedClient::new()
        .calls("2", "todo_add", json!({ "titles": ["plant"] }))
        .calls("3", "todo_complete", json!({ "ids": [1, 2] }))
        .says("Done.");
    let response = in_loop(&second, ContextMode::Shared, 1).complete(&mut session, &RunContext::default()).await?;
    assert_eq!(response.stop, StopReason::Completed);
    assert_eq!(results(&session), ["Added:\n- 1: dig", "Added:\n- 2: plant", "Done: 1, 2"]);
    Ok(())
}

#[tokio::test]
async fn a_new_request_needs_todos_of_its_own_unless_none_are_allowed() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .calls("1", "todo_add", json!({ "titles": ["dig"] }))
        .calls("2", "todo_complete", json!({ "ids": [1] }))
        .says("Dug.")
        .says("Watered.")
        .says("Yes.");
    let mut session = Session::new();
    assert_eq!(in_loop(&client, ContextMode::Shared, 1).ask(&mut session, "Dig.").await?.stop, StopReason::Completed);
    let second = in_loop(&client, ContextMode::Shared, 1).ask(&mut session, "Water.").await?;
    assert_eq!(second.stop, StopReason::IterationLimit, "the todos of the first request say nothing of the second");
    let relaxed =
        LoopAgent::new("work", agent(&client), LoopOptions::default()).evaluator(TodosDone::new().allow_none());
    assert_eq!(relaxed.ask(&mut session, "Happy?").await?.stop, StopReason::Completed);
    Ok(())
}

#[tokio::test]
async fn wrong_calls_change_nothing_and_say_why() -> Result<(), BoxError> {
    let client = ScriptedClient::new()
        .calls("1", "todo_add", json!({ "titles": ["dig"] }))
        .calls("2", "todo_complete", json!({ "ids": [1, 7] }))
        .calls("3", "todo_add", json!({ "titles": ["plant", " "] }))
        .calls("4", "todo_list", json!({}))
        .says("Sorry.");
    let mut session = Session::new();
    agent(&client).ask(&mut session, "A garden, please.").await?;
    insta::assert_snapshot!(results(&session).join("\n---\n"), @r"
    Added:
    - 1: dig
    ---
    no todo has the id 7; nothing was changed. The todos:
    - [ ] 1: dig
    ---
    a todo needs a title; nothing was added
    ---
    - [ ] 1: dig
    ");
    Ok(())
}

#[tokio::test]
async fn a_state_key_that_holds_something_else_is_an_error() {
    let client = ScriptedClient::new().says("Hm.");
    let mut session = Session::new().with_state("todos", "buy milk");
    let error = in_loop(&client, ContextMode::Shared, 3).ask(&mut session, "Work.").await.unwrap_err();
    insta::assert_snapshot!(error, @"read the todos under the state key `todos`, which holds something else");
}

#[tokio::test]
async fn a_number_beyond_which_there_is_no_room_is_an_error() {
    let client = ScriptedClient::new().calls("1", "todo_add", json!({ "titles": ["dig", "sow"] })).says("Hm.");
    let stored = json!([{ "add": { "turn": 0, "items": [{ "id": u64::MAX, "title": "weed" }] } }]);
    let mut session = Session::new().with_state("todos", stored);
    agent(&client).ask(&mut session, "Work.").await.unwrap();
    insta::assert_snapshot!(results(&session).join("\n"), @"read the numbers under the state key `todos`: 18446744073709551615 was never given out; remove the key");
}

#[test]
fn the_tools_say_what_they_are_for() {
    let specs: Vec<String> = todo_tools()
        .iter()
        .map(|tool| format!("{}: {}\n{}", tool.spec().name, tool.spec().description, tool.spec().parameters))
        .collect();
    insta::assert_snapshot!(specs.join("\n"), @r#"
    todo_add: Adds todos, one for each title. Use it to plan work of several steps before you begin.
    {"properties":{"titles":{"description":"What is to be done, one short line each, in the order to do it.","items":{"type":"string"},"type":"array"}},"required":["titles"],"type":"object"}
    todo_complete: Marks todos as done. Use it as soon as something is done, and not before.
    {"properties":{"ids":{"description":"The ids of the todos that are done.","items":{"format":"uint64","minimum":0,"type":"integer"},"type":"array"}},"required":["ids"],"type":"object"}
    todo_list: Lists the todos and whether they are done.
    {"properties":{},"type":"object"}
    "#);
}
