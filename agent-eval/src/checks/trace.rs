//! Checks of what an agent did: calls, state, spending, and how it ended.

use std::collections::BTreeSet;

use agent_core::{Content, Event, Result, Role, StopReason, json_equal};
use serde_json::{Map, Value};

use super::{BuiltCheck, build::invalid};
use crate::{Budget, CallMatcher, CheckContext, ExpectedCalls, Outcome, text::listed};

pub(super) fn calls(name: &'static str, expected: &ExpectedCalls) -> Result<BuiltCheck> {
    let matcher = CallMatcher::new(expected)?;
    Ok(BuiltCheck::of(name, move |cx| matcher.check(cx.calls())))
}

pub(super) fn forbidden_tools(names: &BTreeSet<String>) -> Result<BuiltCheck> {
    if names.is_empty() {
        return Err(invalid("it forbids nothing; list tools"));
    }
    let names = names.clone();
    Ok(BuiltCheck::of("forbidden_tools", move |cx| {
        let called: BTreeSet<&str> = tools(cx).filter(|name| names.contains(*name)).collect();
        Outcome::of(called.is_empty(), || format!("forbidden tools were called: {}", listed(called)))
    }))
}

pub(super) fn allowed_tools(names: &BTreeSet<String>) -> BuiltCheck {
    let names = names.clone();
    BuiltCheck::of("allowed_tools", move |cx| {
        let called: BTreeSet<&str> = tools(cx).filter(|name| !names.contains(*name)).collect();
        Outcome::of(called.is_empty(), || format!("tools were called that are not allowed: {}", listed(called)))
    })
}

/// The names of the tools that were asked for; a call that could not be read counts too.
fn tools<'a>(cx: &CheckContext<'a>) -> impl Iterator<Item = &'a str> {
    let contents = cx.events.iter().flat_map(|event| &event.messages).flat_map(|message| message.contents.iter());
    contents.filter_map(|content| match content {
        Content::ToolCall(call) => Some(call.name.as_str()),
        Content::InvalidToolCall { name, .. } => Some(name.as_str()),
        Content::Text(_)
        | Content::Reasoning { .. }
        | Content::Data { .. }
        | Content::Uri { .. }
        | Content::ToolResult(_)
        | Content::Native { .. }
        | Content::ApprovalRequest(_)
        | Content::ApprovalResponse { .. } => None,
    })
}

pub(super) fn budget(budget: Budget) -> Result<BuiltCheck> {
    if budget == Budget::default() {
        return Err(invalid("it limits nothing; give `turns`, `tool_calls`, `tokens` or `wall_ms`"));
    }
    Ok(BuiltCheck::of("budget", move |cx| {
        let wall = cx.wall.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
        let spent = [
            (
                "model calls",
                budget.turns.map(u64::from),
                Some(count(cx.events.iter().filter(|event| is_turn(event)).count())),
            ),
            ("tool calls", budget.tool_calls.map(u64::from), Some(count(tools(cx).count()))),
            ("tokens", budget.tokens, Some(cx.usage.total())),
            ("milliseconds", budget.wall_ms, wall),
        ];
        let over = spent.iter().filter_map(|(what, limit, spent)| {
            let (limit, spent) = ((*limit)?, (*spent)?);
            (spent > limit).then(|| format!("{spent} {what} of {limit}"))
        });
        let over: Vec<String> = over.collect();
        if !over.is_empty() {
            return Outcome::fail(format!("the budget is exceeded: {}", over.join(", ")));
        }
        // In a replay time means nothing: a budget of time alone was not looked at.
        let judged = spent.iter().any(|(_, limit, spent)| limit.is_some() && spent.is_some());
        if judged { Outcome::pass() } else { Outcome::unscored("time is not measured in a replay") }
    }))
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Whether a model spoke: each answer of a model is one event.
fn is_turn(event: &Event) -> bool {
    event.messages.iter().any(|message| message.role == Role::Assistant)
}

pub(super) fn no_duplicate_calls() -> BuiltCheck {
    BuiltCheck::of("no_duplicate_calls", |cx| {
        let calls: Vec<_> = cx.calls().collect();
        let repeated = calls.iter().enumerate().filter(|(at, call)| {
            calls[..*at].iter().any(|other| other.name == call.name && json_equal(&other.arguments, &call.arguments))
        });
        let repeated: BTreeSet<String> =
            repeated.map(|(_, call)| format!("{} {}", call.name, call.arguments)).collect();
        Outcome::of(repeated.is_empty(), || format!("called more than once: {}", listed(repeated)))
    })
}

pub(super) fn state_equals(name: &'static str, expected: &Map<String, Value>) -> Result<BuiltCheck> {
    if expected.is_empty() {
        return Err(invalid("it has no keys; give state keys and their values"));
    }
    let expected = expected.clone();
    Ok(BuiltCheck::of(name, move |cx| {
        let state = cx.session.state();
        let wrong =
            expected.iter().filter(|(key, value)| !state.get(*key).is_some_and(|found| json_equal(found, value)));
        let lines = wrong.map(|(key, value)| {
            let found =
                state.get(key).map(|found| format!("+ {key} = {found}")).unwrap_or(format!("+ {key} is not set"));
            (key, format!("- {key} = {value}\n{found}"))
        });
        let (keys, lines): (Vec<&String>, Vec<String>) = lines.unzip();
        if keys.is_empty() {
            return Outcome::pass();
        }
        Outcome::fail(format!("the state is not as expected: {}", listed(keys))).with_diff(lines.join("\n"))
    }))
}

pub(super) fn stop(stops: &[StopReason]) -> Result<BuiltCheck> {
    if stops.is_empty() {
        return Err(invalid("it has no reasons; list at least one"));
    }
    let stops = stops.to_vec();
    Ok(BuiltCheck::of("stop", move |cx| match cx.stop {
        Some(stop) => {
            Outcome::of(stops.contains(&stop), || format!("it ended: {stop}; expected is: {}", listed(&stops)))
        }
        None => Outcome::unscored("it has not ended, or its log does not say how it did"),
    }))
}

pub(super) fn max_iterations(most: u32) -> Result<BuiltCheck> {
    if most == 0 {
        return Err(invalid("every loop has an iteration; allow at least 1"));
    }
    Ok(BuiltCheck::of("max_iterations", move |cx| match cx.iterations.len() {
        0 => Outcome::unscored("there is no loop"),
        taken => Outcome::of(count(taken) <= u64::from(most), || {
            format!("the loop took {taken} iterations; {most} are allowed")
        }),
    }))
}
