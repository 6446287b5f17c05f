//! Requests as generateContent takes them.

use agent_core::{ChatOptions, ChatRequest, Format, Reasoning, ReasoningEffort, Result, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::contents;
use crate::{
    dialect::{Dialect, Feature},
    fields::{self, Fields},
    orders,
    unsupported::unsupported,
};

/// The service's name.
pub(super) const PROVIDER: &str = "gemini";

/// What structured outputs know of JSON Schema.
///
/// Sources: <https://ai.google.dev/api/generate-content#FIELDS.response_json_schema>,
/// <https://ai.google.dev/gemini-api/docs/structured-output>.
const DIALECT: Dialect = Dialect {
    provider: PROVIDER,
    restrictions: &["minItems", "maxItems", "minimum", "maximum"],
    formats: &["date-time", "date", "time"],
    features: &[Feature::OpenObjects, Feature::Tuples, Feature::Recursion],
};

/// The whole request, to a service of this name. The model is in the path.
pub(super) fn body(request: &ChatRequest, model: &str, service: &str) -> Result<Value> {
    let mut body = Map::new();
    let orders = orders::all(PROVIDER, request)?;
    let system = orders.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>();
    if !system.is_empty() {
        body.insert("systemInstruction".into(), json!({ "parts": system }));
    }
    body.insert("contents".into(), contents::of(&request.messages, (model, service))?.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(tool).collect::<Vec<_>>();
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
    }
    options(&request.options, &mut body)?;
    Ok(Value::Object(body))
}

fn options(options: &ChatOptions, body: &mut Map<String, Value>) -> Result<()> {
    let ChatOptions {
        model: _,
        temperature,
        top_p,
        max_output_tokens,
        seed,
        stop,
        reasoning,
        tool_choice,
        format,
        cache_prompt: _, // the service caches by itself
        extra,
    } = options;
    let mut config = Map::new();
    if seed.is_some_and(|seed| i32::try_from(seed).is_err()) {
        return Err(unsupported(PROVIDER, "the option `seed` with more than 31 bits"));
    }
    config.put("temperature", *temperature);
    config.put("topP", *top_p);
    config.put("maxOutputTokens", *max_output_tokens);
    config.put("seed", *seed);
    config.put("stopSequences", (!stop.is_empty()).then(|| stop.clone()));
    config.put("thinkingConfig", thinking(*reasoning));
    if let Format::JsonSchema { name: _, schema } = format {
        config.put("responseMimeType", Some("application/json"));
        config.put("responseJsonSchema", Some(DIALECT.schema(schema)?));
    }
    body.put("generationConfig", (!config.is_empty()).then_some(config));
    body.put("toolConfig", choice(tool_choice).map(|choice| json!({ "functionCallingConfig": choice })));
    fields::merge(body, extra);
    Ok(())
}

/// How much to think: a level for Gemini 3 and later, a budget before. Who asks for thoughts gets to read them.
fn thinking(reasoning: Reasoning) -> Option<Value> {
    let level = match reasoning {
        Reasoning::Auto => return None,
        Reasoning::Budget(0) | Reasoning::Effort(ReasoningEffort::None) => return Some(json!({ "thinkingBudget": 0 })),
        Reasoning::Budget(budget) => return Some(json!({ "thinkingBudget": budget, "includeThoughts": true })),
        Reasoning::Effort(ReasoningEffort::Minimal) => "MINIMAL",
        Reasoning::Effort(ReasoningEffort::Low) => "LOW",
        Reasoning::Effort(ReasoningEffort::Medium) => "MEDIUM",
        Reasoning::Effort(ReasoningEffort::High) => "HIGH",
    };
    Some(json!({ "thinkingLevel": level, "includeThoughts": true }))
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Required => Some(json!({ "mode": "ANY" })),
        ToolChoice::Tool(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
    }
}

/// Parameters are sent as they are, in the field that takes JSON Schema and not only the part of `OpenAPI`; agents check the
/// arguments.
fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, needs_approval: _ } = tool;
    json!({ "name": name, "description": description, "parametersJsonSchema": parameters })
}
