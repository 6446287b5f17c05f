//! Requests as Messages write them.

use agent_core::{ChatOptions, ChatRequest, Format, Reasoning, ReasoningEffort, Result, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::turns::Turns;
use crate::{
    dialect::{Dialect, Feature},
    fields::{self, Fields},
    orders,
    unsupported::unsupported,
};

/// The service's name.
pub(super) const PROVIDER: &str = "anthropic";

/// The limit of an answer's words if the caller sets none, in tokens. The service demands one; every model since Claude 4
/// can write more.
const DEFAULT_MAX_TOKENS: u32 = 16_384;

/// What structured outputs know of JSON Schema.
///
/// Source: <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>.
const DIALECT: Dialect = Dialect {
    provider: PROVIDER,
    restrictions: &["minItems 0 or 1"],
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
    features: &[Feature::AllOf, Feature::AnyConstant],
};

/// The whole request, to a service of this name.
pub(super) fn body(request: &ChatRequest, model: &str, service: &str) -> Result<Value> {
    let options = &request.options;
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("max_tokens".into(), max_tokens(options).into());
    let orders = orders::all(PROVIDER, request)?;
    let mut system = orders.iter().map(|text| json!({ "type": "text", "text": text })).collect::<Vec<_>>();
    let mut tools = request.tools.iter().map(tool).collect::<Vec<_>>();
    if options.cache_prompt {
        // What comes before the conversation is worth keeping apart from it: other conversations begin alike. The
        // second mark, of the whole request, moves on with the conversation.
        if let Some(last) = system.last_mut().or(tools.last_mut()) {
            last["cache_control"] = json!({ "type": "ephemeral" });
        }
        body.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    }
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), Turns::of(&request.messages, (model, service))?.into());
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    body.insert("stream".into(), true.into());
    put_options(options, &mut body)?;
    if request.tools.is_empty() && options.tool_choice == ToolChoice::None {
        body.remove("tool_choice"); // refused without tools, and true without being said
    }
    Ok(Value::Object(body))
}

fn max_tokens(options: &ChatOptions) -> u32 {
    let budget = if let Reasoning::Budget(budget) = options.reasoning { budget } else { 0 };
    options.max_output_tokens.unwrap_or_else(|| DEFAULT_MAX_TOKENS.saturating_add(budget))
}

fn put_options(options: &ChatOptions, body: &mut Map<String, Value>) -> Result<()> {
    let ChatOptions {
        model: _,
        temperature,
        top_p,
        max_output_tokens: _,
        seed,
        stop,
        reasoning,
        tool_choice,
        format,
        cache_prompt: _,
        extra,
    } = options;
    if seed.is_some() {
        return Err(unsupported(PROVIDER, "the option `seed`"));
    }
    let (thinking, effort) = thinking(*reasoning)?;
    let mut output = Map::new();
    output.extend(effort.map(|effort| ("effort".to_owned(), effort.into())));
    if let Format::JsonSchema { name: _, schema } = format {
        let schema = DIALECT.schema(schema)?;
        output.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
    }
    body.put("temperature", *temperature);
    body.put("top_p", *top_p);
    body.put("stop_sequences", (!stop.is_empty()).then(|| stop.clone()));
    body.put("thinking", thinking);
    body.put("output_config", (!output.is_empty()).then_some(Value::Object(output)));
    body.put("tool_choice", choice(tool_choice));
    fields::merge(body, extra);
    Ok(())
}

/// How much to think, as older models take it (a budget) or newer ones (a grade).
fn thinking(reasoning: Reasoning) -> Result<(Option<Value>, Option<&'static str>)> {
    let effort = match reasoning {
        Reasoning::Auto => return Ok((None, None)),
        Reasoning::Budget(0) | Reasoning::Effort(ReasoningEffort::None) => {
            return Ok((Some(json!({ "type": "disabled" })), None));
        }
        Reasoning::Budget(budget) => return Ok((Some(json!({ "type": "enabled", "budget_tokens": budget })), None)),
        Reasoning::Effort(ReasoningEffort::Minimal) => {
            return Err(unsupported(PROVIDER, "`ReasoningEffort::Minimal`; its least is `Low`"));
        }
        Reasoning::Effort(ReasoningEffort::Low) => "low",
        Reasoning::Effort(ReasoningEffort::Medium) => "medium",
        Reasoning::Effort(ReasoningEffort::High) => "high",
    };
    Ok((Some(json!({ "type": "adaptive" })), Some(effort)))
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": name })),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, needs_approval: _ } = tool;
    json!({ "name": name, "description": description, "input_schema": parameters })
}
