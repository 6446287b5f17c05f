//! Tools to keep the list.

use std::sync::Arc;

use agent_core::{BoxError, Tool, ToolContext, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::list::{Change, Item, Todos};
use crate::numbers::Numbers;

/// Where a run keeps the last id; all todo tools of a run share it.
const IDS: Uuid = Uuid::from_bytes(*b"todo ids of run ");

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// What is to be done, one short line each, in the order to do it.
    titles: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Complete {
    /// The ids of the todos that are done.
    ids: Vec<u64>,
}

/// Tools for a todo list: `todo_add` (several at once), `todo_complete` and `todo_list`.
///
/// The list is in the session's state, so it survives a fresh context, a stored session and a crash. Under the key
/// `todos` is a list of changes, only ever appended to: `{"add": {"turn": 0, "items": [{"id": 1, "title": "…"}]}}` and
/// `{"complete": {"ids": [1]}}`. So calls of one answer that run at once lose nothing of each other, and their ids
/// differ. Ids rise, and may have gaps where several sessions share a run.
pub fn todo_tools() -> Vec<Arc<dyn Tool>> {
    let add = tool_fn(
        "todo_add",
        "Adds todos, one for each title. Use it to plan work of several steps before you begin.",
        |args: Add, cx: ToolContext| async move { add(args.titles, &cx) },
    );
    let complete = tool_fn(
        "todo_complete",
        "Marks todos as done. Use it as soon as something is done, and not before.",
        |args: Complete, cx: ToolContext| async move { complete(args.ids, &cx) },
    );
    let list =
        tool_fn("todo_list", "Lists the todos and whether they are done.", |_: Value, cx: ToolContext| async move {
            Ok(Todos::of(&cx.session)?.shown(cx.session.turn().number))
        });
    vec![Arc::new(add), Arc::new(complete), Arc::new(list)]
}

fn add(titles: Vec<String>, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let titles: Vec<String> = titles.into_iter().map(|title| title.trim().to_owned()).collect();
    if titles.is_empty() || titles.iter().any(String::is_empty) {
        return Err("a todo needs a title; nothing was added".into());
    }
    let todos = Todos::of(&cx.session)?;
    let first = cx.run.scratch::<Numbers>(IDS).take(todos.last_id(), titles.len() as u64);
    let items: Vec<Item> = (first..).zip(titles).map(|(id, title)| Item { id, title }).collect();
    let lines: Vec<String> = items.iter().map(|item| format!("- {}: {}", item.id, item.title)).collect();
    let added = format!("Added:\n{}", lines.join("\n"));
    Ok(Change::Add { turn: cx.session.turn().number, items }.with(added))
}

fn complete(ids: Vec<u64>, cx: &ToolContext) -> Result<ToolOutput, BoxError> {
    let todos = Todos::of(&cx.session)?;
    let unknown = todos.unknown(&ids);
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.iter().map(u64::to_string).collect();
        let list = todos.shown(cx.session.turn().number);
        return Err(
            format!("no todo has the id {}; nothing was changed. The todos:\n{list}", unknown.join(", ")).into()
        );
    }
    let done: Vec<String> = ids.iter().map(u64::to_string).collect();
    Ok(Change::Complete { ids }.with(format!("Done: {}", done.join(", "))))
}
