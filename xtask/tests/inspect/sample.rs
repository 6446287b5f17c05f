//! Sessions to look at: real runs, whose ids and times are then made the same every time.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use agent_core::{
    ChatAgent, ChatAgentOptions, ChatMessage, Content, Draft, JsonlStore, MemoryStore, Role, RunContext, Runner,
    SessionStore, StopReason, ToolCall, ToolContext, Update, Usage,
    testing::{ScriptedAgent, ScriptedClient},
    tool_fn,
};
use agent_loop::{ContextMode, LoopAgent, LoopContext, LoopEvaluation, LoopOptions, evaluate_fn};
use futures::TryStreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

/// 2025-11-30T20:02:13Z, in milliseconds since 1970.
const START: u64 = 1_764_532_933_000;

/// A haiku that is refined: the second iteration repeats the first, the third asks to publish and is let.
pub(crate) async fn haiku(dir: &Path) -> PathBuf {
    let store = MemoryStore::new();
    let feedback = "Five, seven, five. Say DONE once the count is right.";
    let checker = evaluate_fn("checker", move |cx: &LoopContext<'_>| {
        if cx.last.text().contains("DONE") { LoopEvaluation::Satisfied } else { LoopEvaluation::feedback(feedback) }
    });
    let client = ScriptedClient::new()
        .reply(call("c1", "count", json!({ "line": "An old silent pond" })), tokens(120, 15))
        .reply(ChatMessage::assistant("An old silent pond"), tokens(150, 8))
        .reply(call("c2", "count", json!({ "line": "An old silent pond" })), tokens(210, 15))
        .reply(ChatMessage::assistant("An old silent pond"), tokens(240, 8))
        .reply(call("c3", "publish", json!({ "place": "board", "lines": 3 })), tokens(300, 40))
        .reply(
            ChatMessage::new(
                Role::Assistant,
                [
                    Content::Reasoning {
                        text: "It is out; that was the last thing to do.".to_owned(),
                        signature: None,
                    },
                    Content::Text(
                        "An old silent pond\nA frog jumps into the pond —\nSplash! Silence again. DONE".to_owned(),
                    ),
                ],
            ),
            Usage { cached_input_tokens: 300, reasoning_tokens: 12, ..tokens(380, 30) },
        );
    let count = tool_fn("count", "Counts syllables.", |_: Value, _: ToolContext| async { Ok("5") });
    let publish = tool_fn("publish", "Publishes.", |_: Value, _: ToolContext| async { Ok("published") });
    let options = ChatAgentOptions { output_key: Some("haiku".to_owned()), ..ChatAgentOptions::default() };
    let writer = ChatAgent::new("writer", client, options).tool(count).tool(publish.needs_approval());
    let runner =
        Runner::new(LoopAgent::new("refine", writer, LoopOptions::default()).evaluator(checker), store.clone());
    say(&runner, ChatMessage::user("Write a haiku about loops.")).await;
    say(&runner, ChatMessage::approve("c3")).await;
    stored(dir, "haiku", &store).await
}

/// Nested loops, the outer one with a fresh context, that end at their caps.
pub(crate) async fn nested(dir: &Path) -> PathBuf {
    let store = MemoryStore::new();
    let escalates = Draft::message(ChatMessage::assistant("good enough")).escalate();
    let body = ScriptedAgent::new("coder")
        .says("try one")
        .says("try two")
        .says("try three")
        .turn(escalates.set("quality", 3).append("log", "gave up"), StopReason::Escalated);
    let tests = evaluate_fn("tests", |cx: &LoopContext<'_>| {
        LoopEvaluation::feedback(format!("{} of 3 tests fail", 3 - cx.iteration))
    });
    let review = evaluate_fn("review", |_: &LoopContext<'_>| LoopEvaluation::feedback("no"));
    let inner = LoopAgent::new("fix", body, options(2, ContextMode::Shared)).evaluator(tests);
    let outer = LoopAgent::new("ship", inner, options(2, ContextMode::Fresh)).evaluator(review);
    say(&Runner::new(outer, store.clone()), ChatMessage::user("Fix it.")).await;
    stored(dir, "nested", &store).await
}

/// Texts that try to be more than texts.
pub(crate) async fn hostile(dir: &Path) -> PathBuf {
    let store = MemoryStore::new();
    let evil = "</script></pre><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let client = ScriptedClient::new()
        .reply(
            call("\"><b>", "a<b>c", json!({ "</details>": "'\"><svg onload=document.title='owned'>" })),
            tokens(1, 1),
        )
        .says("\u{1b}[31mred\u{1b}[0m\u{202e}turned\r<!-- ]]> &amp; &lt;");
    let tool = tool_fn("a<b>c", evil, |_: Value, _: ToolContext| async { Ok("<style>*{display:none}</style>") });
    let author = "<i>\"writer'&";
    let writer = ChatAgent::new(author, client, ChatAgentOptions::default()).tool(tool);
    let objects = evaluate_fn("</title>", move |_: &LoopContext<'_>| LoopEvaluation::Halt(evil.to_owned()));
    let agent = LoopAgent::new("<u>loop", writer, LoopOptions::default()).evaluator(objects);
    say(&Runner::new(agent, store.clone()), ChatMessage::user(evil)).await;
    stored(dir, "<h1>&\"evil", &store).await
}

fn options(iterations: u32, context: ContextMode) -> LoopOptions {
    let max_iterations = NonZeroU32::new(iterations).unwrap();
    LoopOptions { max_iterations, context, ..LoopOptions::default() }
}

const ID: &str = "a";

async fn say(runner: &Runner, message: ChatMessage) {
    runner.run(ID, message, RunContext::default()).try_collect::<Vec<Update>>().await.unwrap();
}

/// Puts the session's events into a file, with ids and times that are the same every time.
async fn stored(dir: &Path, id: &str, store: &MemoryStore) -> PathBuf {
    let mut events = store.events(ID, 0).await.unwrap();
    let mut runs: HashMap<Uuid, u64> = HashMap::new();
    for (at, event) in (0_u64..).zip(&mut events) {
        let known = runs.len() as u64;
        let run = *runs.entry(event.run).or_insert(known);
        // An hour between two runs, a quarter of a second between two events.
        event.id = uuid(START + run * 3_600_000 + at * 250, u8::try_from(at).unwrap());
        event.run = uuid(START + run * 3_600_000, u8::MAX);
    }
    let jsonl = JsonlStore::open(dir).unwrap();
    jsonl.append(id, 0, &events).await.unwrap();
    file_of(dir, id)
}

/// The only new file of the directory.
fn file_of(dir: &Path, id: &str) -> PathBuf {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let holds = |path: &PathBuf| JsonlStore::read_file(path).is_ok_and(|(found, _)| found == id);
    files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).find(holds).unwrap()
}

fn uuid(millis: u64, last: u8) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(millis, &[0, 0, 0, 0, 0, 0, 0, 0, 0, last]).into_uuid()
}

fn call(id: &str, name: &str, arguments: Value) -> ChatMessage {
    let call = ToolCall { id: id.to_owned(), name: name.to_owned(), arguments };
    ChatMessage::new(Role::Assistant, [Content::ToolCall(call)])
}

fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}
