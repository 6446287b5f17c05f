use std::fs;

use agent_core::{
    ChatClient, ChatMessage, ChatRequest, ChatUpdate, Content, Delta, ErrorKind, Result, Role, ToolCall, ToolResult,
};
use futures::StreamExt;
use serde_json::json;

use super::{CassetteMode, Recorded};
use crate::{
    ProviderError, ProviderErrorKind,
    testing::{Script, ask, delta, done, outcome},
};

async fn updates(client: &impl ChatClient, request: ChatRequest) -> Vec<ChatUpdate> {
    client.stream(request).map(Result::unwrap).collect().await
}

fn no_service() -> Script {
    Script::new([])
}

#[tokio::test]
async fn a_replay_repeats_every_update_of_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sub/cassette.jsonl");
    let arguments = || Ok(ChatUpdate::Delta(Delta::ToolArguments { call_id: "a".into(), json: "{}".into() }));
    let reasoning = || Ok(ChatUpdate::Delta(Delta::Reasoning("hm".into())));
    let script = Script::new([
        vec![reasoning(), delta("o"), delta("ne"), arguments(), done("one")],
        vec![delta("two"), done("two")],
        vec![done("other")],
    ]);
    let recorded = Recorded::open(&path, CassetteMode::Record).unwrap();
    let trial = recorded.trial("case", 0, script);
    assert_eq!((trial.provider(), trial.model()), (Some("a script"), "scripted"));
    let mut live = Vec::new();
    for text in ["same", "same", "other"] {
        live.push(updates(&trial, ask(text)).await);
    }

    insta::assert_snapshot!(fs::read_to_string(&path).unwrap());
    assert_eq!(Recorded::open(&path, CassetteMode::Replay).unwrap().models(), ["scripted".to_owned()].into());
    assert_eq!(recorded.models(), ["scripted".to_owned()].into());
    let from_file = Recorded::open(&path, CassetteMode::Replay).unwrap().trial("case", 0, no_service());
    let text = fs::read_to_string(&path).unwrap();
    let from_text = Recorded::replay(&text).unwrap().replay_trial("case", 0);
    assert_eq!((from_text.model(), from_file.model()), ("scripted", "scripted"));
    assert_eq!((from_text.provider(), from_file.provider()), (None, Some("a script")));
    for client in [from_file, from_text] {
        // Another order, because parallel calls have none: equal requests are counted, others do not matter.
        assert_eq!(updates(&client, ask("other")).await, live[2]);
        assert_eq!(updates(&client, ask("same")).await, live[0]);
        assert_eq!(updates(&client, ask("same")).await, live[1]);
    }
}

#[tokio::test]
async fn a_call_that_is_not_in_the_cassette_is_an_error_that_shows_the_nearest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cassette.jsonl");
    let recorded = Recorded::open(&path, CassetteMode::Record).unwrap();
    let script = Script::new([vec![done("a")], vec![done("b")]]);
    let trial = recorded.trial("case", 0, script);
    updates(&trial, ask("count the words of this page")).await;
    updates(&trial, ask("something else")).await;

    let replay = Recorded::replay(&fs::read_to_string(&path).unwrap()).unwrap();
    let mut request = ask("count the lines of this page");
    request.options.temperature = Some(0.5);
    let errors = [
        outcome(&replay.replay_trial("case", 0), request.clone()).await,
        outcome(&replay.replay_trial("case", 1), ask("something else")).await,
        outcome(&Recorded::replay("").unwrap().replay_trial("case", 0), request).await,
        {
            let trial = replay.replay_trial("case", 0);
            updates(&trial, ask("something else")).await;
            outcome(&trial, ask("something else")).await
        },
    ];
    let texts = errors.map(|(_, answer)| {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        format!("{error:#}")
    });
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[tokio::test]
async fn another_model_is_another_call() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cassette.jsonl");
    let recorded = Recorded::open(&path, CassetteMode::Record).unwrap();
    let trial = recorded.trial("case", 0, Script::new([vec![done("a")], vec![done("b")]]));
    let mut request = ask("?");
    updates(&trial, request.clone()).await;
    request.options.model = Some("big".into());
    updates(&trial, request.clone()).await;

    let replay = Recorded::open(&path, CassetteMode::Replay).unwrap().trial("case", 0, no_service());
    assert_eq!(outcome(&replay, request).await.1.unwrap(), "b");
    assert_eq!(outcome(&replay, ask("?")).await.1.unwrap(), "a");
}

#[tokio::test]
async fn random_call_ids_do_not_matter() {
    let conversation = |first: &str, second: &str| {
        let call = |id: &str| ToolCall { id: id.into(), name: "f".into(), arguments: json!({}) };
        let result = |id: &str| {
            let result = ToolResult { call_id: id.into(), contents: vec![], is_error: false };
            ChatMessage::new(Role::Tool, [Content::ToolResult(result)])
        };
        let calls = [Content::ToolCall(call(first)), Content::ToolCall(call(second))];
        let messages = [ChatMessage::new(Role::Assistant, calls), result(first), result(second)];
        ChatRequest { messages: messages.into(), ..ChatRequest::default() }
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cassette.jsonl");
    let recorded = Recorded::open(&path, CassetteMode::Record).unwrap();
    updates(&recorded.trial("case", 0, Script::new([vec![done("a")]])), conversation("x", "y")).await;

    let replay = Recorded::open(&path, CassetteMode::Replay).unwrap();
    let answer = outcome(&replay.replay_trial("case", 0), conversation("p", "q")).await.1;
    assert_eq!(answer.unwrap(), "a");
    assert!(outcome(&replay.replay_trial("case", 0), conversation("p", "p")).await.1.is_err());
}

#[tokio::test]
async fn missing_calls_are_recorded_and_others_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cassette.jsonl");
    let open = || Recorded::open(&path, CassetteMode::RecordMissing).unwrap();
    updates(&open().trial("case", 0, Script::new([vec![done("a")]])), ask("1")).await;
    let trial = open().trial("case", 0, Script::new([vec![done("b")]]));
    assert_eq!(outcome(&trial, ask("1")).await.1.unwrap(), "a");
    assert_eq!(outcome(&trial, ask("2")).await.1.unwrap(), "b");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    drop(Recorded::open(&path, CassetteMode::Record).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[tokio::test]
async fn errors_pass_and_are_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cassette.jsonl");
    let recorded = Recorded::open(&path, CassetteMode::Record).unwrap();
    let error = ProviderError::new(ProviderErrorKind::Server, "no").into_error("ask");
    let trial = recorded.trial("case", 0, Script::new([vec![delta("a"), Err(error)]]));
    assert!(outcome(&trial, ask("?")).await.1.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[tokio::test]
async fn what_looks_like_a_key_is_not_recorded_and_does_not_matter() {
    const KEYS: [&str; 4] = [
        "sk-proj-abcdefghij0123456789",
        "AIzaSyA0123456789abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.e30.abcdefghijk",
        "opensesame",
    ];
    let request = |n: usize| {
        let mut request = ask(&format!("my key is {}, and 'Authorization: Bearer {}'", KEYS[n], KEYS[2]));
        request.options.extra.insert("metadata".into(), json!({ "api_key": KEYS[3] }));
        request
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cassette.jsonl");
    let recorded = Recorded::open(&path, CassetteMode::Record).unwrap();
    let (head, tail) = KEYS[0].split_at(10);
    let script = Script::new([vec![delta(head), delta(tail), done(&format!("keep {} safe", KEYS[0]))]]);
    updates(&recorded.trial("case", 0, script), request(0)).await;

    let text = fs::read_to_string(&path).unwrap();
    for key in KEYS {
        assert!(!text.contains(key), "{key} is in the cassette: {text}");
    }
    assert!(!text.contains(tail), "{text}");
    let answer = outcome(&Recorded::replay(&text).unwrap().replay_trial("case", 0), request(1)).await;
    assert_eq!(answer.1.unwrap(), "keep [redacted] safe");
}

#[test]
fn a_line_that_is_no_call_is_an_error_with_its_number() {
    let error = Recorded::replay("\n{}\n").unwrap_err();
    assert_eq!(error.to_string(), "read line 2 of the cassette in the program");
    let error = Recorded::open("/nonexistent/cassette.jsonl", CassetteMode::Replay).unwrap_err();
    assert_eq!(error.to_string(), "read the cassette /nonexistent/cassette.jsonl");
}
