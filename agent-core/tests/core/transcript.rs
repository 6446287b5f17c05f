use agent_core::{AgentExt, ChatMessage, Content, Role, RunContext, Session, ToolResult};
use serde_json::json;

use crate::support::{
    agent, answer, asks, call, event, invalid_call, replies, request, result, seen, session, text, thought,
};

/// What the model of agent `a` sees of this history, in which everything is said by events.
async fn shown(history: Vec<(&str, ChatMessage)>) -> String {
    let mut session = session("go");
    for (author, message) in history {
        let message = if author == "user" { message } else { message.by(author) };
        session.apply(&event(author, vec![message], vec![]));
    }
    shown_of(session).await
}

async fn shown_of(mut session: Session) -> String {
    let client = replies([ChatMessage::assistant("ok")]);
    agent("a", &client).complete(&mut session, &RunContext::default()).await.unwrap();
    seen(&client, 0)
}

#[tokio::test]
async fn results_of_interleaved_branches_stand_behind_their_calls() {
    let history = vec![
        ("b", asks([text("b looks"), call("b1", "look"), call("b2", "look")])),
        ("c", asks([call("c1", "look")])),
        ("c", result("c1", "c1 done")),
        ("b", result("b1", "b1 done")),
        ("c", ChatMessage::assistant("c is done")),
        ("b", result("b2", "b2 done")),
        ("b", ChatMessage::assistant("b is done")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(b): b looks + call b1 look + call b2 look
    tool(b): b1 = b1 done
    tool(b): b2 = b2 done
    assistant(c): call c1 look
    tool(c): c1 = c1 done
    assistant(c): c is done
    assistant(b): b is done
    ");
}

#[tokio::test]
async fn results_of_branches_that_use_the_same_id_stay_apart() {
    let history = vec![
        ("b", asks([call("x", "look")])),
        ("c", asks([call("x", "look")])),
        ("c", result("x", "for c")),
        ("b", result("x", "for b")),
        ("c", asks([call("x", "look")])),
        ("b", asks([call("x", "look")])),
        ("c", result("x", "for c again")),
        ("b", result("x", "for b again")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(b): call x look
    tool(b): x = for b
    assistant(c): call x look
    tool(c): x = for c
    assistant(c): call x look
    tool(c): x = for c again
    assistant(b): call x look
    tool(b): x = for b again
    ");
}

#[tokio::test]
async fn a_call_of_another_agent_that_is_open_has_a_result_made_up() {
    let history = vec![
        ("b", asks([call("b1", "look"), call("b2", "del")])),
        ("b", result("b1", "b1 done")),
        ("b", asks([request("b2", "del")])),
        ("a", ChatMessage::assistant("mine")),
        ("user", ChatMessage::user("next")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(b): call b1 look + call b2 del
    tool(b): b1 = b1 done
    tool: b2 ! no result yet: the call belongs to another agent and is still open
    assistant(a): mine
    user: next
    ");
}

#[tokio::test]
async fn results_without_a_call_are_left_out() {
    let history = vec![
        ("b", result("x", "nobody called")),
        ("b", asks([call("y", "look")])),
        ("b", result("y", "called")),
        ("b", result("y", "not called again")),
        ("user", ChatMessage::user("next")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(b): call y look
    tool(b): y = called
    user: next
    ");
}

#[tokio::test]
async fn a_result_behind_a_rewound_call_is_left_out() {
    let mut session = session("go");
    session.apply(&event("b", vec![asks([call("y", "look")]).by("b")], vec![]));
    session.apply(&agent_core::Event { rewind: Some(1), ..event("b", vec![result("y", "late").by("b")], vec![]) });
    insta::assert_snapshot!(shown_of(session).await, @"user: go");
}

#[tokio::test]
async fn approvals_are_not_shown() {
    let history = vec![
        ("a", asks([call("c1", "del"), call("c2", "del")])),
        ("a", asks([text("may I?"), request("c1", "del"), request("c2", "del")])),
        ("user", ChatMessage::new(Role::User, [answer("c1", true), text("but be careful"), answer("c2", false)])),
        ("a", result("c1", "done")),
        ("a", result("c2", "not run")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(a): call c1 del + call c2 del
    tool(a): c1 = done
    tool(a): c2 = not run
    assistant(a): may I?
    user: but be careful
    ");
}

#[tokio::test]
async fn an_unreadable_call_is_shown_as_one_without_arguments() {
    let history = vec![("a", asks([invalid_call("c1", "look"), call("c2", "look")])), ("a", result("c2", "done"))];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(a): call c1 look + call c2 look
    tool(a): c1 ! not run: the arguments of `look` could not be read: it was cut
    tool(a): c2 = done
    ");
}

#[tokio::test]
async fn messages_of_which_nothing_is_shown_are_left_out() {
    let history = vec![
        ("b", asks([thought("hm")])),
        ("b", asks([])),
        ("a", asks([thought("my own")])),
        ("user", ChatMessage::new(Role::User, [])),
        ("user", ChatMessage::user("next")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(a): <my own>
    user: next
    ");
}

#[tokio::test]
async fn several_results_in_one_message_become_messages_of_their_own() {
    let part = |id: &str, is_error| {
        Content::ToolResult(ToolResult { call_id: id.into(), contents: vec![text("r")], is_error })
    };
    let history = vec![
        ("b", asks([call("c1", "look"), call("c2", "look")])),
        ("b", ChatMessage::new(Role::Tool, [part("c2", true), part("c1", false)])),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    assistant(b): call c1 look + call c2 look
    tool(b): c1 = r
    tool(b): c2 ! r
    ");
}

#[tokio::test]
async fn everything_else_is_shown_as_it_is() {
    let native = Content::Native { provider: "p".into(), model: "m".into(), value: json!(1) };
    let picture = Content::Data { mime_type: "image/png".into(), data: vec![1, 2] };
    let link = Content::Uri { mime_type: None, uri: "file:///a".into() };
    let history = vec![
        ("user", ChatMessage::system("be brief")),
        ("user", ChatMessage::new(Role::User, [text("look"), picture, link])),
        ("b", asks([native, text("I see")])),
        ("loop", ChatMessage::user("do better")),
    ];
    insta::assert_snapshot!(shown(history).await, @"
    user: go
    system: be brief
    user: look + image/png of 2 bytes + file:///a
    assistant(b): p 1 + I see
    user(loop): do better
    ");
}
